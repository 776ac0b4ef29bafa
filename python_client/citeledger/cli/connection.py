"""The options that say which database and for whom, and the connection that they lead to."""

from __future__ import annotations

import logging
import os
import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, TypedDict

import psycopg
import typer
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from citeledger.client import CiteLedger

from .exits import CommandError, Exit
from .ids import given_id
from .secrets import remember

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from citeledger.client import Bound

_PANEL: Final = "Database and context"
_PATIENCE: Final = 10
"""Seconds to wait for a server, where neither the URL nor libpq's variables say how many."""
_DRIVER: Final = re.compile(r"^(postgres(?:ql)?)\+\w+(?=://)")
_PORTS: Final = re.compile(r"[0-9,]*", re.ASCII)
READ: Final = "matters:read"

DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database-url",
        envvar="DATABASE_URL",
        metavar="URL",
        help="postgresql://user@host/db, or libpq's key=value pairs. Without it, libpq's own "
        "variables (PGHOST, PGUSER, PGDATABASE, PGPASSWORD, PGPASSFILE, ...) decide. Others can "
        "see a command's arguments: keep a password in the environment or in a password file.",
        rich_help_panel=_PANEL,
    ),
]
Firm = Annotated[
    str | None,
    typer.Option(
        "--firm",
        envvar="CITELEDGER_FIRM_ID",
        metavar="ID",
        help="The firm to act for.",
        rich_help_panel=_PANEL,
    ),
]
User = Annotated[
    str | None,
    typer.Option(
        "--user",
        envvar="CITELEDGER_USER_ID",
        metavar="ID",
        help="The person to act as, which a walled matter asks for.",
        rich_help_panel=_PANEL,
    ),
]
Permissions = Annotated[
    list[str] | None,
    typer.Option(
        "--permission",
        metavar="NAME",
        help=f"A permission of the context; can be given again. Default: {READ}.",
        rich_help_panel=_PANEL,
    ),
]
AllFirms = Annotated[
    bool,
    typer.Option(
        "--all-firms",
        help="Every firm of the database, one after the other. The role must be a member of "
        "citeledger_admin.",
        rich_help_panel=_PANEL,
    ),
]


class Identity(TypedDict):
    """The arguments of CiteLedger.context."""

    firm_id: str
    user_id: str | None
    permissions: Sequence[str]


@dataclass(frozen=True, slots=True)
class Access:
    """Which database, and for whom: the options of a command, together."""

    database_url: str | None
    firm: str | None = None
    user: str | None = None
    permissions: Sequence[str] | None = None

    def identity(self, firm: object = None) -> Identity:
        """Return the context to act in: of the given firm, or of the one that the options name."""
        chosen = self.firm if firm is None else str(firm)
        if not chosen:
            raise CommandError("for which firm? Give --firm, or set CITELEDGER_FIRM_ID")
        given_id("--firm (CITELEDGER_FIRM_ID)", chosen)
        if self.user:
            given_id("--user (CITELEDGER_USER_ID)", self.user)
        given = (READ,) if self.permissions is None else self.permissions
        return {
            "firm_id": chosen,
            "user_id": self.user or None,
            "permissions": [name for name in given if name],
        }


def conninfo(database_url: str | None) -> str:
    """Return what to connect with; the password in it is never printed from here on."""
    remember(os.environ.get("PGPASSWORD"))
    try:
        given = conninfo_to_dict(_DRIVER.sub(r"\1", database_url or ""))
    except (psycopg.Error, UnicodeError):
        # libpq's own message repeats a part of the text, which may be a part of the password.
        raise _unreadable() from None
    for key in ("password", "sslpassword"):
        remember(_text(given.get(key)))
    if not _PORTS.fullmatch(_text(given.get("port"))):
        raise _unreadable()
    # Where a part of the password has become a host or a name, the server's answer would show it.
    if any("@" in _text(given.get(key)) for key in ("host", "hostaddr")) or (
        "://" in (database_url or "") and "@" in _text(given.get("dbname"))
    ):
        raise _unreadable()
    changes: dict[str, Any] = {}
    if "connect_timeout" not in given and "PGCONNECT_TIMEOUT" not in os.environ:
        changes["connect_timeout"] = _PATIENCE
    if "application_name" not in given and "PGAPPNAME" not in os.environ:
        changes["application_name"] = "citeledger"
    return make_conninfo(**(given | changes))


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _unreadable() -> CommandError:
    return CommandError(
        "the database URL cannot be read",
        hint="Write postgresql://user@host:5432/db, with @ : / ? # % [ ] of a password "
        "percent-encoded, or key=value pairs such as 'host=... dbname=...'",
    )


@contextmanager
def connected(database_url: str | None) -> Iterator[psycopg.Connection[Any]]:
    """Open a connection in autocommit mode: every context block is a transaction of its own."""
    logging.getLogger("psycopg").addHandler(logging.NullHandler())
    try:
        # A pooler in transaction mode keeps no prepared statement.
        connection = psycopg.connect(
            conninfo(database_url), autocommit=True, prepare_threshold=None
        )
    except psycopg.OperationalError as error:
        msg = f"no connection to the database: {error}"
        raise CommandError(msg, code=Exit.UNREACHABLE) from error
    except psycopg.ProgrammingError:
        raise _unreadable() from None
    with connection:
        yield connection


@contextmanager
def acting(access: Access) -> Iterator[Bound]:
    """Give the client in its context, for one transaction: committed at the end of the block."""
    identity = access.identity()
    with (
        connected(access.database_url) as connection,
        CiteLedger(connection).context(**identity) as bound,
    ):
        yield bound
