"""A firm with a matter and its records, and every kind of document that may not be cited there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import psycopg

from .world import World

READ = ("matters:read",)
PERSON = UUID("aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa")
QUOTE = "ninety (90) days' written notice"
BLOCKS = ("Lease, page 1", f"The Tenant shall give {QUOTE}.", "Initials")


def put_pages(
    connection: psycopg.Connection[Any],
    firm_id: UUID,
    document_id: UUID,
    pages: dict[int, Sequence[str]],
) -> None:
    """Write pages through the package, on a connection of any role that may."""
    with connection.transaction():
        connection.execute(
            "select citeledger.set_context(%s::uuid, null, array['matters:read'])", (firm_id,)
        )
        connection.execute(
            "select citeledger.replace_document_pages(%s::uuid, %s::jsonb)",
            (
                document_id,
                json.dumps([{"page_number": n, "blocks": list(b)} for n, b in pages.items()]),
            ),
        )


@dataclass(frozen=True, slots=True)
class Records:
    """The ids of it all. Every document has the same page."""

    world: World
    matter: UUID
    matter_number: str
    walled: UUID
    record: UUID
    not_there: dict[str, tuple[UUID, UUID]]
    """By the reason: a matter and a document, together not there for a caller without a person."""

    @property
    def firm_id(self) -> UUID:
        """The firm."""
        return self.world.firm_id

    def span(self, document: UUID | None = None, **changes: Any) -> dict[str, Any]:
        """Return the span of the quote, as JSON has it; a change to ... takes the key out."""
        start = BLOCKS[1].index(QUOTE)
        span = {
            "document_id": str(document or self.record),
            "page_number": 1,
            "block_index": 1,
            "char_start": start,
            "char_end": start + len(QUOTE),
            "quote": QUOTE,
        } | changes
        return {key: value for key, value in span.items() if value is not ...}

    @classmethod
    def make(cls, superuser: psycopg.Connection[Any]) -> Records:
        """Make two firms, as the superuser in autocommit mode."""
        world = World.make(superuser, "Quill & Partners")
        other = World.make(superuser, "Another firm")
        number = "2026/01 é&?#%"
        matter = world.project(matter_number=number)
        wrong, walled = world.project(), world.project()
        world.member(walled, PERSON)
        foreign_matter = other.project()
        record = world.document(matter)
        documents = {
            "deleted": (matter, world.document(matter, deleted_at="2026-01-01")),
            "privileged": (matter, world.document(matter, is_privileged=True)),
            "work product": (matter, world.document(matter, document_kind="work_product")),
            "of another matter": (matter, world.document(wrong)),
            "asked for in another matter": (wrong, record),
            "of no matter": (matter, world.document()),
            "in a walled matter": (walled, world.document(walled)),
            "of another firm": (matter, other.document(foreign_matter)),
        }
        documents["of another firm, in its matter"] = (
            foreign_matter,
            documents["of another firm"][1],
        )
        for document in {record, *(d for _, d in documents.values())}:
            foreign = document == documents["of another firm"][1]
            firm = other.firm_id if foreign else world.firm_id
            put_pages(superuser, firm, document, {1: BLOCKS})
        documents["random"] = (matter, uuid4())
        documents["random, in a random matter"] = (uuid4(), uuid4())
        return cls(world, matter, number, walled, record, documents)
