"""The exceptions of the client, read from the same catalogue as the error documentation.

The database raises standard SQLSTATEs. ``errors.toml`` lists every raise of the package with its
SQLSTATE, and names the exception that it becomes here. What the catalogue does not name (a lost
connection, a cancelled query, a serialization failure) is about the connection or the transaction,
not about citeledger, and passes through as psycopg's own exception.
"""

from __future__ import annotations

import tomllib
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import psycopg

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = [
    "CatalogueEntry",
    "CiteLedgerError",
    "IntegrityError",
    "InvalidArgument",
    "NotFound",
    "PermissionDenied",
    "SchemaVersionError",
    "WrongIsolation",
    "WrongState",
    "catalogue",
    "translate",
    "translated",
]


class CiteLedgerError(Exception):
    """Something that citeledger refused.

    ``sqlstate`` is None when the client refused before any SQL was sent.
    """

    def __init__(
        self,
        message: str,
        *,
        sqlstate: str | None = None,
        detail: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Keep the parts of a PostgreSQL error apart."""
        super().__init__(message)
        self.sqlstate = sqlstate
        self.message = message
        self.detail = detail
        self.hint = hint

    def __str__(self) -> str:
        """Give message, detail and hint, as psql shows them."""
        lines = [self.message]
        if self.detail:
            lines.append(f"DETAIL:  {self.detail}")
        if self.hint:
            lines.append(f"HINT:  {self.hint}")
        return "\n".join(lines)


class PermissionDenied(CiteLedgerError):  # noqa: N818 - the names say what happened
    """The context lacks a permission, or the role lacks a grant (42501)."""


class NotFound(CiteLedgerError):  # noqa: N818
    """What was asked for is not there for this caller (P0002)."""


class InvalidArgument(CiteLedgerError):  # noqa: N818
    """An argument is malformed (class 22), found by the client or by the database."""


class IntegrityError(CiteLedgerError):
    """A constraint refused a row (class 23)."""

    def __str__(self) -> str:
        """Give the message alone: PostgreSQL's detail may print the values of the row."""
        return self.message


class WrongState(CiteLedgerError):  # noqa: N818
    """The object, or the client, is in a state that does not allow this (55000)."""


class WrongIsolation(CiteLedgerError):  # noqa: N818
    """The transaction's isolation level does not allow this (25000)."""


class SchemaVersionError(CiteLedgerError):
    """The database has no citeledger, or one that this client does not know."""


_CLASSES: Mapping[str, type[CiteLedgerError]] = {
    c.__name__: c
    for c in (
        PermissionDenied,
        NotFound,
        InvalidArgument,
        IntegrityError,
        WrongState,
        WrongIsolation,
        SchemaVersionError,
    )
}


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """One raise of the package, as ``errors.toml`` describes it."""

    key: str
    sqlstate: str
    """The SQLSTATE; empty for what only the client raises."""
    condition: str
    """PostgreSQL's name of the SQLSTATE; empty for what only the client raises."""
    exception: type[CiteLedgerError] | None
    """The exception in Python; None for a warning."""
    message: str
    """The exact message, with the placeholders of ``format()`` where it has any."""
    raised_by: tuple[str, ...]
    meaning: str
    remedy: str


@dataclass(frozen=True, slots=True)
class _Catalogue:
    entries: tuple[CatalogueEntry, ...]
    by_sqlstate: Mapping[str, type[CiteLedgerError]]
    by_class: Mapping[str, type[CiteLedgerError]]


def _entry(key: str, table: Mapping[str, Any]) -> CatalogueEntry:
    return CatalogueEntry(
        key=key,
        sqlstate=table["sqlstate"],
        condition=table["condition"],
        exception=_CLASSES[table["exception"]] if table["exception"] else None,
        message=table["message"],
        raised_by=tuple(table["raised_by"]),
        meaning=table["meaning"],
        remedy=table["remedy"],
    )


@cache
def _load() -> _Catalogue:
    data = tomllib.loads(files(__package__).joinpath("errors.toml").read_text(encoding="utf-8"))
    mapping = {code: _CLASSES[name] for code, name in data["mapping"].items()}
    return _Catalogue(
        entries=tuple(_entry(key, table) for key, table in data["errors"].items()),
        by_sqlstate={code: c for code, c in mapping.items() if len(code) == 5},
        by_class={code: c for code, c in mapping.items() if len(code) == 2},
    )


def catalogue() -> tuple[CatalogueEntry, ...]:
    """Return every raise that the catalogue lists, in its order."""
    return _load().entries


def exception_for(sqlstate: str | None) -> type[CiteLedgerError] | None:
    """Return the class that a SQLSTATE becomes, or None for one that is not citeledger's."""
    if sqlstate is None:
        return None
    loaded = _load()
    return loaded.by_sqlstate.get(sqlstate) or loaded.by_class.get(sqlstate[:2])


def translate(error: psycopg.Error) -> CiteLedgerError | None:
    """Return psycopg's error as the client's own, or None when it is not citeledger's."""
    cls = exception_for(error.sqlstate)
    if cls is None:
        return None
    diag = error.diag
    return cls(
        diag.message_primary or str(error),
        sqlstate=error.sqlstate,
        detail=diag.message_detail,
        hint=diag.message_hint,
    )


@contextmanager
def translated() -> Iterator[None]:
    """Raise psycopg's errors inside the block as the client's own, with the original as cause."""
    try:
        yield
    except psycopg.Error as error:
        own = translate(error)
        if own is None:
            raise
        raise own from error
