"""The few statements of the command line's own; everything else is a call of the client.

Each runs on the connection of a block of the client, in its transaction and context, and names the
firm of the context on every table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, LiteralString
from uuid import UUID

import psycopg
from psycopg.rows import tuple_row

from citeledger.arguments import text_argument
from citeledger.errors import NotFound, translated

if TYPE_CHECKING:
    from citeledger.client import Bound

_NOT_FOUND: Final = "P0002"


def _rows(bound: Bound, statement: LiteralString, *parameters: object) -> list[tuple[Any, ...]]:
    for value in parameters:
        if isinstance(value, str):
            text_argument("text", value)
    # Ids come as text: the connection is the caller's, whose loaders may be others.
    with translated(), psycopg.Cursor(bound.connection, row_factory=tuple_row) as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall()


def firm_is_known(bound: Bound) -> bool:
    """Say whether the firm of the context is one; a role that may not look is not told."""
    ((may_look,),) = _rows(
        bound, "select pg_catalog.has_table_privilege('citeledger.firms', 'select')"
    )
    return not may_look or bool(
        _rows(bound, "select from citeledger.firms where id = citeledger.current_firm_id()")
    )


def matter_of(bound: Bound, number: str) -> UUID:
    """Return the id of the matter of a number, if the context may see it."""
    found = _rows(
        bound,
        "select id::text from citeledger.projects"
        " where firm_id = citeledger.current_firm_id() and matter_number = %s",
        number,
    )
    if not found:
        raise NotFound(
            "matter not found",
            sqlstate=_NOT_FOUND,
            detail="No matter of this number is in the firm of the context, or a wall hides it.",
            hint="Check --matter, --firm, and --user for a walled matter. A matter is made by "
            "inserting into citeledger.projects.",
        )
    return UUID(found[0][0])


def _hold(bound: Bound, *what: str) -> None:
    _rows(
        bound,
        "select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended("
        "pg_catalog.concat_ws('/', citeledger.current_firm_id(), %s::text), 0))",
        "/".join(what),
    )


def hold_title(bound: Bound, matter_id: UUID, title: str) -> None:
    """Let no other ingest put a document of this title into this matter until the block ends."""
    _hold(bound, "citeledger ingest", str(matter_id), title)


def hold_works(bound: Bound) -> None:
    """Let no other run record Crossref's works for this firm until the block ends.

    Two that find no document of a DOI would each make one, and the DOI would be ambiguous.
    """
    _hold(bound, "citeledger crossref")


def live_documents(
    bound: Bound, matter_id: UUID, *, title: str | None = None, document_id: UUID | None = None
) -> list[UUID]:
    """Return the live documents of a matter that have the title, or the id."""
    found = _rows(
        bound,
        "select id::text from citeledger.documents"
        " where firm_id = citeledger.current_firm_id() and project_id = %s::uuid"
        " and deleted_at is null and (title = %s::text or id = %s::uuid)"
        " order by id",
        matter_id,
        title,
        document_id,
    )
    return [UUID(row[0]) for row in found]


def insert_record(
    bound: Bound, matter_id: UUID, title: str, kind: str, doi: str | None, privileged: bool
) -> UUID:
    """Insert a document of a matter; return its id."""
    ((identifier,),) = _rows(
        bound,
        "insert into citeledger.documents (project_id, title, document_kind, doi, is_privileged)"
        " values (%s::uuid, %s::text, %s::text, %s::text, %s::boolean) returning id::text",
        matter_id,
        title,
        kind,
        doi,
        privileged,
    )
    return UUID(identifier)


def describe_document(
    bound: Bound,
    document_id: UUID,
    *,
    title: str | None,
    kind: str | None,
    doi: str | None,
    privileged: bool | None,
) -> None:
    """Change what is given of a document's description; None leaves it."""
    _rows(
        bound,
        "update citeledger.documents set title = coalesce(%s::text, title),"
        " document_kind = coalesce(%s::text, document_kind), doi = coalesce(%s::text, doi),"
        " is_privileged = coalesce(%s::boolean, is_privileged)"
        " where firm_id = citeledger.current_firm_id() and id = %s::uuid returning 1",
        title,
        kind,
        doi,
        privileged,
        document_id,
    )


def documents_of_doi(bound: Bound, doi: str) -> tuple[bool, list[UUID]]:
    """Say whether the text is a DOI, and return the live documents that have it."""
    found = _rows(
        bound,
        "select k.doi_key is not null, d.id::text"
        " from (select citeledger.normalize_doi(%s::text)) as k (doi_key)"
        " left join citeledger.documents as d"
        " on d.firm_id = citeledger.current_firm_id() and d.doi_key = k.doi_key"
        " and d.deleted_at is null order by d.id",
        doi,
    )
    return found[0][0], [UUID(row[1]) for row in found if row[1] is not None]


def insert_publication(bound: Bound, title: str, doi: str, year: int | None) -> UUID:
    """Insert a publication that belongs to no matter; return its id."""
    ((identifier,),) = _rows(
        bound,
        "insert into citeledger.documents (title, document_kind, doi, source, publication_year)"
        " values (%s::text, 'publication', %s::text, 'crossref', %s::integer) returning id::text",
        title,
        doi,
        year,
    )
    return UUID(identifier)


def crossref_edges(bound: Bound) -> int:
    """Count the firm's references between documents that Crossref's lists give."""
    ((edges,),) = _rows(
        bound,
        "select pg_catalog.count(*) from citeledger.document_citations"
        " where firm_id = citeledger.current_firm_id() and source = 'crossref'",
    )
    return int(edges)


def pending_turns(bound: Bound) -> int:
    """Count the firm's turns that finalize_pending is for."""
    ((turns,),) = _rows(
        bound,
        "select pg_catalog.count(*) from citeledger.messages as m"
        " where m.firm_id = citeledger.current_firm_id() and m.role = 'assistant'"
        " and m.finalized_at is not null and (not exists ("
        "select from citeledger.work_product_fiduciary_gate as g"
        " where g.firm_id = citeledger.current_firm_id() and g.message_id = m.id)"
        " or exists (select from citeledger.finalize_failure as f"
        " where f.firm_id = citeledger.current_firm_id() and f.message_id = m.id))",
    )
    return int(turns)
