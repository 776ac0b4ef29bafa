"""Above read committed documents may still leave the graph, by a mark or for good."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import psycopg
import pytest

from support.races import Session
from support.world import World, set_context

Opened = Callable[..., Session]
WITHDRAWN = "update citeledger.documents set deleted_at = now() where id = %s"
ANOTHER_DOI = "update citeledger.documents set doi = '10.1000/other' where id = %s"


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


# One of two holders of a DOI leaves: what was ambiguous matches the other, and an edge appears. Who
# leaves above read committed waits for no lock of the graph, so another may add the same edge.


@pytest.fixture
def holders(app: psycopg.Connection[Any], world: World) -> tuple[UUID, UUID, UUID]:
    """Give a document with a list, and two with one DOI, which it names.

    It names another that one of them will have. There is no edge yet.
    """
    citing = world.document(doi=None)
    first, second = (world.document(doi="10.1000/held") for _ in range(2))
    set_context(app, world.firm_id)
    app.execute(
        "select citeledger.record_references(%s, array['10.1000/held', '10.1000/other'])",
        (citing,),
    )
    app.commit()
    return citing, first, second


def test_an_edge_that_a_withdrawal_added_meanwhile_is_no_error(
    su: psycopg.Connection[Any], opened: Opened, holders: tuple[UUID, UUID, UUID]
) -> None:
    citing, leaving, staying = holders
    above = opened(isolation=psycopg.IsolationLevel.REPEATABLE_READ)
    above.run(WITHDRAWN, (leaving,))
    ordinary = opened()
    ordinary.start(ANOTHER_DOI, (staying,))
    ordinary.blocked()
    above.commit()
    ordinary.result()
    ordinary.commit()

    # Neither saw the other's change: the edge to what was withdrawn meanwhile is left, unseen.
    assert edges(su) == 2
    named = (
        "select array_agg((r ->> 'document_id')::uuid)"
        " from jsonb_array_elements(citeledger.get_citations(%s) -> 'references') as r"
        " where (r ->> 'resolved')::boolean"
    )
    walked = "select array_agg(document_id) from citeledger.walk_citations(array[%s]) where hop > 0"
    for statement in (named, walked):
        assert opened().value(statement, (citing,)) == [staying]
    admin = opened("t_admin")
    admin.run("select citeledger.resolve_references(false)")
    admin.commit()
    found = su.execute(
        "select cited_document_id, cited_doi from citeledger.document_citations"
    ).fetchall()
    assert found == [(staying, "10.1000/other")]


@pytest.mark.parametrize(
    "level",
    [psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE],
    ids=lambda level: level.name.lower(),
)
def test_a_withdrawal_that_meets_a_newer_edge_is_to_run_again(
    opened: Opened, holders: tuple[UUID, UUID, UUID], level: psycopg.IsolationLevel
) -> None:
    _, leaving, staying = holders
    above = opened(isolation=level)
    above.run("select count(*) from citeledger.documents")
    ordinary = opened()
    ordinary.run(ANOTHER_DOI, (staying,))
    ordinary.commit()
    above.start(WITHDRAWN, (leaving,))
    assert isinstance(above.error(), psycopg.errors.SerializationFailure)


def test_an_edge_that_a_deletion_updates_meanwhile_goes_with_its_list(
    su: psycopg.Connection[Any], opened: Opened, holders: tuple[UUID, UUID, UUID]
) -> None:
    """By its key: who leaves above read committed updates edges without the lock of the graph."""
    citing, leaving, _ = holders
    app = opened()
    app.run(WITHDRAWN, (leaving,))
    app.commit()
    # So that whoever looks at the edge has something to update.
    su.execute("update citeledger.document_citations set source = 'older'")
    su.commit()
    above = opened("postgres", isolation=psycopg.IsolationLevel.REPEATABLE_READ)
    above.run("delete from citeledger.documents where id = %s", (leaving,))
    ordinary = opened()
    ordinary.start("select citeledger.record_references(%s, '{}')", (citing,))
    ordinary.blocked()
    above.commit()
    ordinary.result()
    ordinary.commit()
    assert edges(su) == 0
