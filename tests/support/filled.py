"""Fills a database: two firms with a row in every table, so that no loss goes unseen."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from .records import put_pages
from .world import World, insert, set_context

# Different ways to print a DOI: their keys are computed by the database, and stored.
DOIS = (
    "10.1234/plain",
    "https://doi.org/10.1234/UPPER%2Fcase?ref=1",
    "doi:10.1002/(SICI)1097-4571(199806)49:8<693::AID-ASI4>3.0.CO;2-O",
    "10.1234/&lt;angle&gt;.",
    "10.1234/größe-ı-İ",
)
PAGE = (
    "Pachtvertrag, Seite 1",
    "Kündigung: drei Monate — „schriftlich“.",
    "e\u0301 \u00e9 \U0001f4dc",
)


def fill(superuser: psycopg.Connection[Any]) -> list[UUID]:
    """Make two firms on a superuser's connection in autocommit mode; return them."""
    return [_firm(superuser, name) for name in ("Quill & Partners", "Hafenrecht")]


def _firm(superuser: psycopg.Connection[Any], name: str) -> UUID:
    world = World.make(superuser, name)
    matter, walled = world.project(), world.project()
    world.member(walled, uuid4())
    documents = [world.document(matter, doi=doi) for doi in DOIS]
    record = documents[0]
    for document in documents:
        put_pages(superuser, world.firm_id, document, {1: PAGE, 2: PAGE[:1]})
    with superuser.transaction():
        set_context(superuser, world.firm_id)
        superuser.execute(
            "select citeledger.record_references(%s, %s)",
            (record, [*DOIS[1:], "10.9999/elsewhere"]),
        )
    _turns(superuser, world, matter, record)
    _concepts(superuser, world.firm_id, record)
    return world.firm_id


def _turns(superuser: psycopg.Connection[Any], world: World, matter: UUID, record: UUID) -> None:
    """Add turns: of each grade, still open, one changed after its verdict, one that failed."""
    for method in ("exact_match", "paraphrase_judge", None):
        message = world.turn(matter)
        citation = world.citation(
            message,
            method,
            source_document_id=record,
            source_page=1,
            source_block=1,
            source_offset_start=0,
            source_offset_end=9,
            source_text="Kündigung",
        )
        world.caselaw(message, method)
        world.tool(message, "web_search")
        _finalize(superuser, message)
    # The last one's judge comes late: what the ledger said before is kept as a revision.
    superuser.execute(
        "update citeledger.message_citations set verified = true,"
        " verification_method = 'ensemble_strict', verification_confidence = 0.75 where id = %s",
        (citation,),
    )
    world.citation(world.turn(matter))
    with superuser.transaction():
        superuser.execute("set transaction isolation level repeatable read")
        message = world.turn(matter)
        world.citation(message)
        _finalize(superuser, message)


def _finalize(superuser: psycopg.Connection[Any], message: UUID) -> None:
    superuser.execute(
        "update citeledger.messages set finalized_at = now() where id = %s", (message,)
    )


def _concepts(superuser: psycopg.Connection[Any], firm_id: UUID, record: UUID) -> None:
    superuser.execute(
        "insert into citeledger.kg_relation_types (firm_id, relation_type) values (%s, 'limits')",
        (firm_id,),
    )
    chunk = insert(
        superuser, "chunks", firm_id=firm_id, document_id=record, chunk_index=0, content=PAGE[1]
    )
    entities = [
        insert(superuser, "kg_entities", firm_id=firm_id, name=name, entity_type="concept")
        for name in ("Kündigung", "Frist")
    ]
    for entity in entities:
        superuser.execute(
            "insert into citeledger.kg_entity_mentions (firm_id, entity_id, chunk_id)"
            " values (%s, %s, %s)",
            (firm_id, entity, chunk),
        )
    insert(
        superuser,
        "kg_relationships",
        firm_id=firm_id,
        source_entity_id=entities[0],
        target_entity_id=entities[1],
        relation_type="limits",
        chunk_id=chunk,
        evidence="drei Monate",
    )


def tables(superuser: psycopg.Connection[Any]) -> list[str]:
    """Return the names of all tables of the package."""
    found = superuser.execute(
        "select c.relname from pg_catalog.pg_class as c"
        " where c.relnamespace = 'citeledger'::regnamespace and c.relkind in ('r', 'p')"
        " order by c.relname"
    )
    return [row[0] for row in found.fetchall()]


def contents(dsn: str) -> dict[str, list[str]]:
    """Return every row of every table, as text under settings of its own, sorted."""
    options = "-c timezone=UTC -c datestyle=ISO -c extra_float_digits=1"
    with psycopg.connect(make_conninfo(dsn, options=options)) as superuser:
        return {
            table: [
                row[0]
                for row in superuser.execute(
                    # jsonb, so that columns may stand in another order.
                    sql.SQL("select to_jsonb(t)::text from citeledger.{} as t order by 1").format(
                        sql.Identifier(table)
                    )
                ).fetchall()
            ]
            for table in tables(superuser)
        }


def problems(superuser: psycopg.Connection[Any]) -> list[Any]:
    """Return what check_integrity says of every firm, and stored DOI keys that are not the DOI's.

    The one turn of each firm that failed is tried again first, as a job would.
    """
    found: list[Any] = []
    for (firm_id,) in superuser.execute("select id from citeledger.firms").fetchall():
        with superuser.transaction():
            set_context(superuser, firm_id)
            superuser.execute("select citeledger.finalize_pending()")
            found += superuser.execute("select * from citeledger.check_integrity()").fetchall()
    for table, doi in (("documents", "doi"), ("document_references", "cited_doi")):
        found += superuser.execute(
            sql.SQL(
                "select 'doi_key', {}::text, t.id from citeledger.{} as t"
                " where t.doi_key is distinct from citeledger.normalize_doi(t.{})"
            ).format(table, sql.Identifier(table), sql.Identifier(doi))
        ).fetchall()
    return found
