"""Above read committed documents may still leave the graph, by a mark or for good."""

from __future__ import annotations

from typing import Any

import psycopg

from support.world import World, set_context


def edges(su: psycopg.Connection[Any]) -> int:
    row = su.execute("select count(*) from citeledger.document_citations").fetchone()
    assert row is not None
    return int(row[0])


def two_documents(
    su: psycopg.Connection[Any], app: psycopg.Connection[Any], world: World
) -> tuple[Any, Any]:
    citing = world.document(doi="10.1000/citing")
    cited = world.document(doi="10.1000/cited")
    set_context(app, world.firm_id)
    app.execute("select citeledger.record_references(%s, array['10.1000/cited'])", (citing,))
    app.commit()
    assert edges(su) == 1
    return citing, cited


def test_a_document_is_withdrawn_under_repeatable_read(
    su: psycopg.Connection[Any], app: psycopg.Connection[Any], world: World
) -> None:
    _, cited = two_documents(su, app, world)
    app.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    set_context(app, world.firm_id)
    app.execute("update citeledger.documents set deleted_at = now() where id = %s", (cited,))
    app.commit()
    assert edges(su) == 0


def test_a_document_is_deleted_under_repeatable_read(
    su: psycopg.Connection[Any], app: psycopg.Connection[Any], world: World
) -> None:
    _, cited = two_documents(su, app, world)
    with su.transaction():
        su.execute("set transaction isolation level repeatable read")
        su.execute("delete from citeledger.documents where id = %s", (cited,))
    assert edges(su) == 0
