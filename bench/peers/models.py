"""Mapped classes of the tables that the peers use, and their sessions.

The peers differ from ours in what they do not do: no row security (their role passes it), no
permission, no lock, no guard, no revision. They use the package's own tables, so that the rows,
the constraints, the indexes and the durability are the same.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from uuid import UUID, uuid4

from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import URL, FetchedValue
from sqlalchemy.ext.asyncio import (
    AsyncEngine,
    AsyncSession,
    async_sessionmaker,
    create_async_engine,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    """Every mapped class; all are in the package's schema."""

    __table_args__ = {"schema": "citeledger"}  # noqa: RUF012 - as SQLAlchemy has it


class Keyed:
    """What every table of the peers begins with."""

    firm_id: Mapped[UUID] = mapped_column(primary_key=True)
    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)


class Chat(Keyed, Base):
    """A chat."""

    __tablename__ = "chats"
    project_id: Mapped[UUID | None]


class Message(Keyed, Base):
    """A message; an assistant's is a turn."""

    __tablename__ = "messages"
    chat_id: Mapped[UUID]
    role: Mapped[str]
    created_at: Mapped[datetime]


class Citation(Keyed, Base):
    """A span quoted from a document."""

    __tablename__ = "message_citations"
    message_id: Mapped[UUID]
    source_document_id: Mapped[UUID | None]
    source_page: Mapped[int | None]
    source_block: Mapped[int | None]
    source_offset_start: Mapped[int | None]
    source_offset_end: Mapped[int | None]
    source_text: Mapped[str]
    verified: Mapped[bool]
    verification_method: Mapped[str | None]
    verification_confidence: Mapped[Decimal | None]
    created_at: Mapped[datetime]


class Caselaw(Keyed, Base):
    """A span quoted from an opinion."""

    __tablename__ = "message_caselaw_citations"
    message_id: Mapped[UUID]
    opinion_id: Mapped[int]
    cluster_id: Mapped[int]
    source_offset_start: Mapped[int | None]
    source_offset_end: Mapped[int | None]
    source_text: Mapped[str]
    verified: Mapped[bool]
    verification_method: Mapped[str | None]
    verification_confidence: Mapped[float | None]
    partial: Mapped[bool]
    created_at: Mapped[datetime]


class ToolSource(Keyed, Base):
    """What a tool brought."""

    __tablename__ = "message_tool_sources"
    message_id: Mapped[UUID]
    source_kind: Mapped[str]
    label: Mapped[str]
    subtitle: Mapped[str | None]
    url: Mapped[str | None]
    external_ref: Mapped[str | None]
    provider: Mapped[str | None]
    tool: Mapped[str | None]
    created_at: Mapped[datetime]


class Entry(Keyed, Base):
    """An entry of the ledger."""

    __tablename__ = "citation_ledger_entry"
    project_id: Mapped[UUID | None]
    chat_id: Mapped[UUID]
    message_id: Mapped[UUID]
    source_kind: Mapped[str]
    message_citation_id: Mapped[UUID | None]
    message_caselaw_citation_id: Mapped[UUID | None]
    message_tool_source_id: Mapped[UUID | None]
    verification_status: Mapped[str]
    confidence: Mapped[float | None]
    provider: Mapped[str | None]
    retrieved_at: Mapped[datetime | None]
    treatment_id: Mapped[UUID | None]
    created_at: Mapped[datetime] = mapped_column(server_default=FetchedValue())


class Gate(Keyed, Base):
    """A verdict."""

    __tablename__ = "work_product_fiduciary_gate"
    message_id: Mapped[UUID]
    chat_id: Mapped[UUID]
    project_id: Mapped[UUID | None]
    gate_status: Mapped[str]
    pass_count: Mapped[int]
    supported_count: Mapped[int]
    fail_count: Mapped[int]
    total_assertions: Mapped[int]
    unrecognized_count: Mapped[int]
    confidence: Mapped[float | None]
    computed_at: Mapped[datetime] = mapped_column(server_default=FetchedValue())
    created_at: Mapped[datetime] = mapped_column(server_default=FetchedValue())


class Document(Keyed, Base):
    """A document."""

    __tablename__ = "documents"
    project_id: Mapped[UUID | None]
    title: Mapped[str]
    doi: Mapped[str | None]
    is_privileged: Mapped[bool]
    deleted_at: Mapped[datetime | None]


class Reference(Keyed, Base):
    """One line of a document's list of references."""

    __tablename__ = "document_references"
    document_id: Mapped[UUID]
    position: Mapped[int]
    cited_doi: Mapped[str]
    source: Mapped[str]


class Edge(Base):
    """One document citing another."""

    __tablename__ = "document_citations"
    firm_id: Mapped[UUID] = mapped_column(primary_key=True)
    citing_document_id: Mapped[UUID] = mapped_column(primary_key=True)
    cited_document_id: Mapped[UUID] = mapped_column(primary_key=True)
    cited_doi: Mapped[str]
    source: Mapped[str]


class Peer:
    """An engine of one connection, and sessions from it."""

    def __init__(self, dsn: str, firm_id: UUID) -> None:
        """Say where; the connection is opened by the first session."""
        given = conninfo_to_dict(dsn)
        url = URL.create(
            "postgresql+psycopg",
            username=str(given["user"]),
            database=str(given["dbname"]),
            query={"host": str(given["host"]), "port": str(given["port"])},
        )
        self.engine: AsyncEngine = create_async_engine(
            url, pool_size=1, max_overflow=0, connect_args={"prepare_threshold": 0}
        )
        self.sessions = async_sessionmaker(self.engine, expire_on_commit=False)
        self.firm_id = firm_id

    def session(self) -> AsyncSession:
        """Give a session of its own for one piece of work."""
        return self.sessions()

    async def close(self) -> None:
        """Close the connection."""
        await self.engine.dispose()
