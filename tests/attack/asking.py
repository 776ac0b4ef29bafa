"""How the attacks ask: a query whose answer or error is compared as text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from attack.scene import Connection


def said(connection: Connection, query: str, arguments: Any = None) -> str:
    """Return what a query answers, or raises, as text; what it did is undone."""
    try:
        with connection.transaction(force_rollback=True):
            cursor = connection.execute(query, arguments)
            return repr(cursor.fetchall() if cursor.description else cursor.statusmessage)
    except psycopg.Error as error:
        return f"{error.sqlstate} {error.diag.message_primary} {error.diag.message_detail}"


def sqlstate(connection: Connection, query: str, arguments: Any = None) -> str | None:
    """Return the SQLSTATE that a query raises, or None; what it did is undone."""
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(query, arguments)
    except psycopg.Error as error:
        return error.sqlstate
    return None


@contextmanager
def heard(connection: Connection) -> Iterator[list[str]]:
    """Collect the notices and warnings of a connection during the block."""
    found: list[str] = []

    def handler(diagnostic: psycopg.errors.Diagnostic) -> None:
        found.append(f"{diagnostic.severity} {diagnostic.message_primary}")

    connection.add_notice_handler(handler)
    try:
        yield found
    finally:
        connection.remove_notice_handler(handler)
