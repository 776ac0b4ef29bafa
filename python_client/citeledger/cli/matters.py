"""The option that names a matter, by its number or by its id."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final
from uuid import UUID

import typer

from citeledger.ingest import queries

if TYPE_CHECKING:
    from citeledger.client import Bound

_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)

Matter = Annotated[
    str,
    typer.Option(
        "--matter",
        metavar="NUMBER",
        help="The matter's number, or its id, with which no table has to be read.",
    ),
]


def matter_id(bound: Bound, matter: str) -> UUID:
    """Return the id of the matter that the option names."""
    return UUID(matter) if _ID.fullmatch(matter) else queries.matter_of(bound, matter)
