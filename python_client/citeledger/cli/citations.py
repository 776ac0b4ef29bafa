"""``citeledger citations``: what a document cites, and who cites it."""

from __future__ import annotations

from typing import Annotated

import typer

from .connection import Access, DatabaseUrl, Firm, Permissions, User, acting
from .ids import given_id
from .output import AsJson, print_facts, print_json, print_line, print_table


def citations(
    document: Annotated[str, typer.Argument(metavar="DOCUMENT", help="The id of the document.")],
    database_url: DatabaseUrl = None,
    firm: Firm = None,
    user: User = None,
    permission: Permissions = None,
    as_json: AsJson = False,
) -> None:
    """Show what a document cites, in printed order, and which documents cite it.

    Example:

        citeledger citations 01234567-89ab-cdef-0123-456789abcdef
    """
    document_id = given_id("DOCUMENT", document)
    with acting(Access(database_url, firm, user, permission)) as bound:
        found = bound.get_citations(document_id)
    if as_json:
        print_json(found)
        return
    resolved = sum(reference.resolved for reference in found.references)
    print_facts(
        (
            ("title", found.title),
            ("DOI", found.doi),
            ("cites", f"{len(found.references)}, of which {resolved} are here"),
            ("cited by", len(found.cited_by)),
        )
    )
    if found.references:
        print_line("")
        print_table(
            ("cites", "title", "document"),
            [(r.doi, r.title, r.document_id) for r in found.references],
        )
    if found.cited_by:
        print_line("")
        print_table(
            ("cited by", "title", "document"),
            [(c.doi, c.title, c.document_id) for c in found.cited_by],
        )
