"""``citeledger check``: whether everything in the database still holds together."""

from __future__ import annotations

import typer

from citeledger.client import CiteLedger

from .connection import Access, AllFirms, DatabaseUrl, Firm, Permissions, User, connected
from .exits import Exit
from .firms import chosen_firms
from .output import AsJson, print_json, print_line, print_table, progress


def check(
    all_firms: AllFirms = False,
    database_url: DatabaseUrl = None,
    firm: Firm = None,
    user: User = None,
    permission: Permissions = None,
    as_json: AsJson = False,
) -> None:
    """Check that ledgers mirror their sources, verdicts their counts, and edges their documents.

    It reads, and changes nothing. Without a firm it sweeps every firm of the database, for which
    the role must be a member of citeledger_admin. What it finds is listed, and the exit code is 1.

    Examples:

        citeledger check
        citeledger check --firm 01234567-89ab-cdef-0123-456789abcdef --json
    """
    access = Access(database_url, firm, user, permission)
    problems: list[dict[str, str]] = []
    with connected(access.database_url) as connection:
        client = CiteLedger(connection)
        firms = chosen_firms(client, access, all_firms=all_firms, default_all=True)
        with progress("firms") as bar:
            task = bar.add_task("check", total=len(firms))
            for one in firms:
                with client.context(**access.identity(one)) as bound:
                    found = bound.check_integrity()
                problems += [
                    {
                        "firm_id": str(one),
                        "problem": item.problem,
                        "table_name": item.table_name,
                        "row_key": item.row_key,
                    }
                    for item in found
                ]
                bar.advance(task)
    if as_json:
        print_json({"firms": len(firms), "problems": problems})
    elif problems:
        print_table(
            ("firm", "problem", "table", "row"), [tuple(found.values()) for found in problems]
        )
    else:
        print_line(f"{len(firms)} firm{'' if len(firms) == 1 else 's'} checked: nothing found.")
    if problems:
        raise typer.Exit(Exit.NO)
