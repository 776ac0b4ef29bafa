"""Which firms a command is for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from citeledger.errors import NotFound, PermissionDenied
from citeledger.ingest import queries

from .exits import CommandError

if TYPE_CHECKING:
    from uuid import UUID

    from citeledger.client import Bound, CiteLedger

    from .connection import Access


def require_firm(bound: Bound) -> None:
    """Refuse a firm that is none: nothing would be found in it, and all would seem well."""
    if not queries.firm_is_known(bound):
        raise NotFound(
            "firm not found",
            sqlstate="P0002",
            detail="No firm of the database has the id of the context.",
            hint="Check --firm.",
        )


def chosen_firms(
    client: CiteLedger, access: Access, *, all_firms: bool, default_all: bool
) -> list[UUID | str]:
    """Return the firms of a sweep: every one, or the one that the options name."""
    if all_firms:
        return [*client.firm_ids()]
    if default_all and not access.firm:
        try:
            return [*client.firm_ids()]
        except PermissionDenied as error:
            raise PermissionDenied(
                error.message,
                sqlstate=error.sqlstate,
                detail=error.detail,
                hint="Without --firm or CITELEDGER_FIRM_ID every firm is checked, for which the "
                "login needs citeledger_admin.",
            ) from error
    if not access.firm:
        raise CommandError(
            "for which firm? Give --firm, set CITELEDGER_FIRM_ID, or give --all-firms"
        )
    with client.context(**access.identity()) as bound:
        require_firm(bound)
    return [access.firm]
