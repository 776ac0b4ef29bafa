"""For whom the door acts: fixed when it starts, and by nothing that a tool is called with."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from citeledger.arguments import optional_uuid_argument, uuid_argument

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

DSN: Final = "CITELEDGER_DSN"
FIRM: Final = "CITELEDGER_FIRM_ID"
USER: Final = "CITELEDGER_USER_ID"
PERMISSIONS: Final = "CITELEDGER_PERMISSIONS"


@dataclass(frozen=True, slots=True)
class Principal:
    """The context of every call."""

    firm_id: UUID
    user_id: UUID | None = None
    permissions: tuple[str, ...] = ("matters:read",)


@dataclass(frozen=True, slots=True)
class Configuration:
    """What the door is started with."""

    dsn: str
    principal: Principal


def configuration(arguments: Sequence[str], environment: Mapping[str, str]) -> Configuration:
    """Read the command line and the environment; the command line is asked first.

    The DSN is taken from the environment alone: it may hold a password, and anybody on the machine
    can read a command line. What is missing ends the program; an id of another form raises
    InvalidArgument, which repeats no value.
    """
    parser = ArgumentParser(
        prog="python -m citeledger.mcp",
        description="Serves citeledger's read-only tools over stdio, for one firm and one person.",
        epilog=f"The database is {DSN} in the environment, a connection string of a login that "
        "has citeledger_reader.",
        allow_abbrev=False,
    )
    parser.add_argument("--firm-id", help=f"the firm; else {FIRM}")
    parser.add_argument("--user-id", help=f"the person, who may be behind walls; else {USER}")
    parser.add_argument(
        "--permissions",
        help=f"separated by commas; else {PERMISSIONS}, else matters:read",
    )
    given = parser.parse_args(arguments)
    dsn = environment.get(DSN, "")
    if not dsn:
        parser.error(f"{DSN} is not set")
    firm = given.firm_id or environment.get(FIRM, "")
    if not firm:
        parser.error(f"neither --firm-id nor {FIRM} is set")
    user = given.user_id or environment.get(USER) or None
    permissions = given.permissions
    if permissions is None:
        permissions = environment.get(PERMISSIONS, "matters:read")
    return Configuration(
        dsn,
        Principal(
            uuid_argument("firm_id", firm),
            optional_uuid_argument("user_id", user),
            tuple(p.strip() for p in permissions.split(",") if p.strip()),
        ),
    )
