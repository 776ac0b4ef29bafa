"""Builds small worlds: a firm, its matters, chats, turns and sources, with sensible defaults.

Plain SQL with an explicit firm_id, so that it works on any connection that may write the row: the
superuser's without a context, or an application's within one.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
from psycopg import sql

# What an unverified, a verified and a failed check look like.
UNVERIFIED = (False, None, None)


def insert(connection: psycopg.Connection[Any], table: str, **values: Any) -> UUID:
    """Insert one row into a table of the package; return its id."""
    columns = list(values)
    statement = sql.SQL("insert into citeledger.{} ({}) values ({}) returning id").format(
        sql.Identifier(table),
        sql.SQL(", ").join(map(sql.Identifier, columns)),
        sql.SQL(", ").join(map(sql.Placeholder, columns)),
    )
    with psycopg.Cursor(connection) as cursor:
        row = cursor.execute(statement, values).fetchone()
    assert row is not None
    identifier = row[0]
    assert isinstance(identifier, UUID)
    return identifier


def set_context(
    connection: psycopg.Connection[Any],
    firm_id: UUID | None,
    user_id: UUID | None = None,
    permissions: Sequence[str] = ("matters:read",),
) -> None:
    """Set the context of the connection's transaction."""
    connection.execute(
        "select citeledger.set_context(%s::uuid, %s::uuid, %s::text[])",
        (firm_id, user_id, list(permissions)),
    )


@dataclass(frozen=True, slots=True)
class World:
    """A firm, and a hand to add rows to it on one connection."""

    connection: psycopg.Connection[Any]
    firm_id: UUID

    @classmethod
    def make(cls, connection: psycopg.Connection[Any], name: str = "Quill & Partners") -> World:
        """Make a firm; the connection's role must be allowed to (superuser, owner)."""
        return cls(connection, insert(connection, "firms", name=name))

    def on(self, connection: psycopg.Connection[Any]) -> World:
        """Give the same firm, seen from another connection."""
        return World(connection, self.firm_id)

    def _insert(self, table: str, values: dict[str, Any], overrides: dict[str, Any]) -> UUID:
        return insert(self.connection, table, firm_id=self.firm_id, **(values | overrides))

    def project(self, **overrides: Any) -> UUID:
        """Add a matter with a number of its own."""
        number = f"M-{secrets.token_hex(4)}"
        return self._insert("projects", {"matter_number": number, "name": "A matter"}, overrides)

    def member(self, project_id: UUID, user_id: UUID) -> None:
        """Put a person behind the wall of a matter, which raises the wall."""
        self.connection.execute(
            "insert into citeledger.project_members (firm_id, project_id, user_id)"
            " values (%s, %s, %s)",
            (self.firm_id, project_id, user_id),
        )

    def chat(self, project_id: UUID | None = None, **overrides: Any) -> UUID:
        """Add a chat, of a matter when one is given."""
        return self._insert("chats", {"project_id": project_id, "title": "A chat"}, overrides)

    def message(self, chat_id: UUID, role: str = "assistant", **overrides: Any) -> UUID:
        """Add a message, by default an open turn of the assistant."""
        return self._insert(
            "messages", {"chat_id": chat_id, "role": role, "content": "An answer."}, overrides
        )

    def turn(self, project_id: UUID | None = None, **overrides: Any) -> UUID:
        """Add an assistant's turn in a chat of its own."""
        return self.message(self.chat(project_id), **overrides)

    def document(self, project_id: UUID | None = None, **overrides: Any) -> UUID:
        """Add a live document of the record."""
        return self._insert("documents", {"project_id": project_id, "title": "A lease"}, overrides)

    def citation(
        self, message_id: UUID, method: str | None = "exact_match", **overrides: Any
    ) -> UUID:
        """Add a citation of a document, verified by a method; None for an unverified one."""
        values = {
            "message_id": message_id,
            "source_text": "The tenant shall give notice.",
            "verified": method not in (None, "failed"),
            "verification_method": method,
            "verification_confidence": None if method is None else 1,
        }
        return self._insert("message_citations", values, overrides)

    def caselaw(
        self, message_id: UUID, method: str | None = "exact_match", **overrides: Any
    ) -> UUID:
        """Add a citation of an opinion, verified by a method; None for an unverified one."""
        values = {
            "message_id": message_id,
            "opinion_id": 1001,
            "cluster_id": 2001,
            "source_text": "Notice is measured from receipt.",
            "verified": method not in (None, "failed"),
            "verification_method": method,
            "verification_confidence": None if method is None else 0.9,
        }
        return self._insert("message_caselaw_citations", values, overrides)

    def tool(self, message_id: UUID, source_kind: str = "web_search", **overrides: Any) -> UUID:
        """Add what a tool brought into the turn."""
        values = {
            "message_id": message_id,
            "source_kind": source_kind,
            "label": "A result",
            "url": "https://search.example/1",
            "provider": "example-search",
            "tool": "search",
        }
        return self._insert("message_tool_sources", values, overrides)

    def finalize(self, message_id: UUID) -> Any:
        """Call finalize_turn as it is; return its report."""
        with psycopg.Cursor(self.connection) as cursor:
            row = cursor.execute("select citeledger.finalize_turn(%s)", (message_id,)).fetchone()
        assert row is not None
        return row[0]
