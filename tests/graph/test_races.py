"""Two ingests at once, in any order: no edge is lost or left over, and nobody sees a deadlock.

After each the fixture ``consistent`` counts the edges anew from what was committed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import UUID

import psycopg
import pytest

from support.races import Session
from support.world import World

if TYPE_CHECKING:
    from .conftest import Graph

Opened = Callable[..., Session]
RECORD = "select citeledger.record_references(%s, %s)"
pytestmark = pytest.mark.usefixtures("consistent")

# What happens to B while A's list, which names it, is recorded: what B is before, who does it, how.
CHANGES: dict[str, tuple[dict[str, Any] | None, str, str]] = {
    "inserted": (
        None,
        "t_app",
        "insert into citeledger.documents (title, doi) values ('B', '10.1000/b')"
        " returning %s::uuid",
    ),
    "given its DOI": (
        {"doi": None},
        "t_app",
        "update citeledger.documents set doi = '10.1000/b' where id = %s",
    ),
    "restored": (
        {"doi": "10.1000/b", "deleted_at": "2026-01-01"},
        "t_app",
        "update citeledger.documents set deleted_at = null where id = %s",
    ),
    "withdrawn": (
        {"doi": "10.1000/b"},
        "t_app",
        "update citeledger.documents set deleted_at = now() where id = %s",
    ),
    "given another DOI": (
        {"doi": "10.1000/b"},
        "t_app",
        "update citeledger.documents set doi = '10.1000/c' where id = %s",
    ),
    "given none": (
        {"doi": "10.1000/b"},
        "t_app",
        "update citeledger.documents set doi = null where id = %s",
    ),
    "joined by another": (
        {"doi": "10.1000/b"},
        "t_app",
        "insert into citeledger.documents (title, doi) values ('B2', '10.1000/b')"
        " returning %s::uuid",
    ),
    "deleted": (
        {"doi": "10.1000/b"},
        "t_admin",
        "select citeledger.corpus_delete(array[%s::uuid])",
    ),
    "deleted past the functions": (
        {"doi": "10.1000/b"},
        "deployer",
        "delete from citeledger.documents where id = %s",
    ),
}


def start(graph: Graph, before: dict[str, Any] | None) -> tuple[UUID, UUID | None]:
    citing = graph.world.document(title="A", doi="10.1000/a")
    return citing, None if before is None else graph.world.document(title="B", **before)


def changer(opened: Opened, user: str) -> Session:
    session = opened(user)
    if user == "deployer":
        session.run("set local role citeledger_owner")
    return session


@pytest.mark.parametrize(("before", "user", "statement"), CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_the_list_comes_first(
    graph: Graph,
    opened: Opened,
    before: dict[str, Any] | None,
    user: str,
    statement: str,
    end: str,
) -> None:
    citing, cited = start(graph, before)
    first, second = opened(), changer(opened, user)
    first.run(RECORD, (citing, ["10.1000/b"]))
    second.start(statement, (cited,))
    second.blocked()
    getattr(first, end)()
    assert second.error() is None
    second.commit()


@pytest.mark.parametrize(("before", "user", "statement"), CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_the_document_comes_first(
    graph: Graph,
    opened: Opened,
    before: dict[str, Any] | None,
    user: str,
    statement: str,
    end: str,
) -> None:
    citing, cited = start(graph, before)
    first, second = changer(opened, user), opened()
    first.run(statement, (cited,))
    second.start(RECORD, (citing, ["10.1000/b"]))
    second.blocked()
    getattr(first, end)()
    assert second.error() is None
    second.commit()


@pytest.mark.parametrize(("before", "user", "statement"), CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("other", CHANGES.values(), ids=CHANGES)
def test_two_changes_of_one_document(
    graph: Graph,
    opened: Opened,
    before: dict[str, Any] | None,
    user: str,
    statement: str,
    other: tuple[dict[str, Any] | None, str, str],
) -> None:
    citing, cited = start(graph, before)
    graph.record(citing, "10.1000/b", "10.1000/c")
    first, second = changer(opened, user), changer(opened, other[1])
    first.run(statement, (cited,))
    second.start(other[2], (cited,))
    second.blocked()
    first.commit()
    assert second.error() is None
    second.commit()


def test_a_document_of_a_loader_without_a_firm(graph: Graph, opened: Opened) -> None:
    """It comes to the lock with its row only, and looks for lists that name it after that."""
    citing, _ = start(graph, None)
    first, second = opened(), opened("postgres")
    second.run("select set_config('citeledger.firm_id', '', true)")
    first.run(RECORD, (citing, ["10.1000/b"]))
    second.start(
        "insert into citeledger.documents (firm_id, title, doi) values (%s, 'B', '10.1000/b')",
        (graph.world.firm_id,),
    )
    second.blocked()
    first.commit()
    assert second.error() is None
    second.commit()
    assert graph.edges() == {("A", "B")}


def test_exactly_one_edge_whichever_order(graph: Graph, opened: Opened) -> None:
    citing, _ = start(graph, None)
    first, second = opened(), opened()
    first.run(RECORD, (citing, ["10.1000/b"]))
    second.start(CHANGES["inserted"][2], (None,))
    second.blocked()
    first.commit()
    second.result()
    second.commit()
    assert graph.edges() == {("A", "B")}


def test_lists_that_share_dois_in_opposite_order(graph: Graph, opened: Opened) -> None:
    dois = [f"10.1000/{n}" for n in range(40)]
    for doi in dois[::2]:
        graph.document(doi)
    a, b = graph.world.document(title="A"), graph.world.document(title="B")
    first, second = opened(), opened()
    first.run(RECORD, (a, dois))
    second.start(RECORD, (b, dois[::-1]))
    second.blocked()
    # More of the same in the same transaction.
    first.run(RECORD, (b, dois[5:]))
    first.commit()
    assert second.error() is None
    second.run(RECORD, (a, dois[::-1][5:]))
    second.commit()
    assert len(graph.edges()) == 20 + 18


def test_two_lists_of_one_document(graph: Graph, opened: Opened) -> None:
    """The later one replaces the earlier one whole."""
    citing = graph.document("10.1000/a")
    for n in range(4):
        graph.document(f"10.2000/{n}")
    first, second = opened(), opened()
    first.run(RECORD, (citing, ["10.2000/0", "10.2000/1"]))
    second.start(RECORD, (citing, ["10.2000/2", "10.2000/3"]))
    second.blocked()
    first.commit()
    assert second.error() is None
    second.commit()
    assert graph.edges() == {("10.1000/a", "10.2000/2"), ("10.1000/a", "10.2000/3")}


def test_ingests_of_many_calls(graph: Graph, opened: Opened) -> None:
    """Each inserts documents and records their lists, one naming the other's."""
    first, second = opened(), opened()
    put = "insert into citeledger.documents (title, doi) values (%s, %s) returning id"
    a = first.value(put, ("A", "10.1000/a"))
    second.start(put, ("C", "10.1000/c"))
    second.blocked()
    first.run(RECORD, (a, ["10.1000/b", "10.1000/c", "10.1000/d"]))
    b = first.value(put, ("B", "10.1000/b"))
    first.run(RECORD, (b, ["10.1000/d"]))
    first.commit()
    c = second.result()[0][0]
    second.run(RECORD, (c, ["10.1000/b", "10.1000/a"]))
    second.run(put, ("D", "10.1000/d"))
    second.commit()
    assert graph.edges() == {
        ("A", "B"),
        ("A", "C"),
        ("A", "D"),
        ("B", "D"),
        ("C", "A"),
        ("C", "B"),
    }


ENTITY = "insert into citeledger.kg_entities (name, entity_type) values (%s, 'concept')"

# What an ingest may begin with, before it records a list: each locks rows that others may want.
BEGINNINGS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "a document without a DOI": ("insert into citeledger.documents (title) values (%s)", ("New",)),
    "a new title": ("update citeledger.documents set title = 'B2' where doi = %s", ("10.1000/b",)),
    "pages": (
        "select citeledger.replace_document_pages(d.id, '[]') from citeledger.documents as d"
        " where d.doi = %s",
        ("10.1000/b",),
    ),
    "a chunk": (
        "insert into citeledger.chunks (document_id, chunk_index, content)"
        " select d.id, 0, 'Rent' from citeledger.documents as d where d.doi = %s",
        ("10.1000/b",),
    ),
    "a type of relationship": (
        "insert into citeledger.kg_relation_types (relation_type) values (%s)",
        ("owes",),
    ),
    "an entity": (ENTITY, ("Rent",)),
}


@pytest.mark.parametrize(("statement", "parameters"), BEGINNINGS.values(), ids=BEGINNINGS)
@pytest.mark.parametrize("other", BEGINNINGS.values(), ids=BEGINNINGS)
def test_whatever_an_ingest_begins_with(
    graph: Graph,
    opened: Opened,
    statement: str,
    parameters: tuple[Any, ...],
    other: tuple[str, tuple[Any, ...]],
) -> None:
    """One ingest waits at its first write for the whole of the other, and so never in a circle."""
    a, b = graph.document("10.1000/a"), graph.document("10.1000/b")
    first, second = opened(), opened()
    first.run(statement, parameters)
    second.start(*other)
    second.blocked()
    first.run(RECORD, (a, ["10.1000/b"]))
    first.run("update citeledger.documents set title = 'A2' where id = %s", (a,))
    first.commit()
    # Both may begin with the same row; that is theirs to settle and no deadlock.
    error = second.error()
    if error is not None:
        assert isinstance(error, psycopg.errors.UniqueViolation)
        second.rollback()
        return
    second.run(RECORD, (b, ["10.1000/a"]))
    second.commit()
    assert len(graph.edges()) == 2


def test_a_matter_that_goes_while_its_documents_come(graph: Graph, opened: Opened) -> None:
    matter = graph.world.project()
    first, second = opened(), opened("t_admin")
    first.run("insert into citeledger.documents (title) values ('Of no matter')")
    second.start("delete from citeledger.projects where id = %s", (matter,))
    second.blocked()
    first.run(
        "insert into citeledger.documents (project_id, title) values (%s, 'Of the matter')",
        (matter,),
    )
    first.commit()
    assert second.error() is None
    second.commit()


def test_entities_in_opposite_order(graph: Graph, opened: Opened) -> None:
    """Two ingests that name the same concepts, each in its own order."""
    first, second = opened(), opened()
    first.run(ENTITY, ("Rent",))
    second.start(ENTITY + " on conflict do nothing", ("Deposit",))
    second.blocked()
    first.run(ENTITY, ("Deposit",))
    first.commit()
    assert second.error() is None
    second.run(ENTITY + " on conflict do nothing", ("Rent",))
    second.commit()


def test_mentions_of_the_same_chunk(graph: Graph, opened: Opened) -> None:
    """Evidence too waits for its turn: it holds its entity and its chunk."""
    entity, chunk = graph.entity("Rent"), graph.chunk(graph.document(None))
    first, second = opened(), opened()
    first.run(MENTION, (entity, chunk))
    second.start(
        "insert into citeledger.kg_relationships"
        " (source_entity_id, target_entity_id, relation_type, chunk_id, evidence, confidence)"
        " select %s, null, 'owes', null, null, null where false",
        (entity,),
    )
    second.blocked()
    first.commit()
    assert second.error() is None
    second.commit()


def test_resolving_while_a_list_comes(graph: Graph, opened: Opened) -> None:
    citing = graph.document("10.1000/a")
    graph.document("10.1000/b")
    first, second = opened(), opened("t_admin")
    first.run(RECORD, (citing, ["10.1000/b"]))
    second.start("select citeledger.resolve_references(false)")
    second.blocked()
    first.commit()
    assert second.result()[0][0]["matched"] == 1
    second.commit()


def test_firms_do_not_wait_for_each_other(graph: Graph, opened: Opened) -> None:
    other = World.make(graph.connection, "Another firm")
    theirs = other.document(title="Theirs", doi="10.1000/a")
    citing = graph.document("10.1000/a")
    first, second = opened(), opened("t_app", other.firm_id)
    first.run(RECORD, (citing, ["10.1000/b"]))
    second.run(RECORD, (theirs, ["10.1000/b"]))
    second.commit()
    first.commit()


MENTION = "insert into citeledger.kg_entity_mentions (entity_id, chunk_id) values (%s, %s)"


def test_the_collector_leaves_what_an_ingest_is_giving_evidence(
    graph: Graph, opened: Opened
) -> None:
    entity, bare = graph.entity("Rent"), graph.entity("Bare")
    chunk = graph.chunk(graph.document(None))
    ingest, collector = opened("postgres"), opened("t_admin")
    # A loader of no firm: it does not queue, so the collector meets what it holds.
    ingest.run("select set_config('citeledger.firm_id', '', true)")
    ingest.run(
        "insert into citeledger.kg_entity_mentions (firm_id, entity_id, chunk_id)"
        " values (%s, %s, %s)",
        (graph.world.firm_id, entity, chunk),
    )
    # It does not wait, so there is no circle with a loader that comes to the graph's lock later.
    swept = collector.value("select citeledger.graph_gc(false)")
    assert swept["entities"] == 1
    ingest.start(
        "insert into citeledger.documents (firm_id, title, doi) values (%s, 'B', '10.1000/b')",
        (graph.world.firm_id,),
    )
    ingest.blocked()
    collector.commit()
    assert ingest.error() is None
    ingest.commit()
    rows = graph.connection.execute("select id from citeledger.kg_entities").fetchall()
    assert rows == [(entity,)]
    assert bare != entity


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_an_ingest_that_comes_after_the_collector(graph: Graph, opened: Opened, end: str) -> None:
    """It finds its entity gone and fails by the foreign key, or goes on."""
    entity = graph.entity("Rent")
    chunk = graph.chunk(graph.document(None))
    collector, ingest = opened("t_admin"), opened()
    collector.run("select citeledger.graph_gc(false)")
    ingest.start(MENTION, (entity, chunk))
    ingest.blocked()
    getattr(collector, end)()
    error = ingest.error()
    if end == "rollback":
        assert error is None
        ingest.commit()
    else:
        assert isinstance(error, psycopg.errors.ForeignKeyViolation)
        ingest.rollback()
