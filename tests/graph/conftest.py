"""Fixtures of the graph's tests: sessions in the firm, and the rule that holds after each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
import pytest

from graph.oracle import edges_of
from support.races import Race, Session
from support.world import World, insert, set_context

Connection = psycopg.Connection[Any]


@dataclass(frozen=True, slots=True)
class Graph:
    """The graph of one firm, seen by the superuser in autocommit mode."""

    world: World

    @property
    def connection(self) -> Connection:
        return self.world.connection

    def document(self, doi: str | None, **overrides: Any) -> UUID:
        """Add a document, titled by its DOI."""
        return self.world.document(title=doi or "No DOI", doi=doi, **overrides)

    def record(self, document: UUID, *dois: str) -> dict[str, Any]:
        """Record a list."""
        with self.connection.transaction():
            set_context(self.connection, self.world.firm_id)
            row = self.connection.execute(
                "select citeledger.record_references(%s, %s)", (document, list(dois))
            ).fetchone()
        assert row is not None
        report = row[0]
        assert isinstance(report, dict)
        return report

    def edges(self) -> set[tuple[str, str]]:
        """Return the edges, by the titles of the documents."""
        rows = self.connection.execute(
            "select a.title, b.title from citeledger.document_citations as e"
            " join citeledger.documents as a on a.firm_id = e.firm_id"
            " and a.id = e.citing_document_id"
            " join citeledger.documents as b on b.firm_id = e.firm_id"
            " and b.id = e.cited_document_id where e.firm_id = %s",
            (self.world.firm_id,),
        ).fetchall()
        return set(rows)

    def expected_edges(self) -> set[tuple[str, str]]:
        """Say what the edges are to be, counted anew from the lists and the documents."""
        documents = self.connection.execute(
            "select d.id, d.title, d.doi from citeledger.documents as d"
            " where d.firm_id = %s and d.deleted_at is null",
            (self.world.firm_id,),
        ).fetchall()
        titles = {str(row[0]): row[1] for row in documents}
        lists: dict[str, list[str]] = {}
        for document, doi in self.connection.execute(
            "select r.document_id, r.cited_doi from citeledger.document_references as r"
            " where r.firm_id = %s",
            (self.world.firm_id,),
        ).fetchall():
            if str(document) in titles:
                lists.setdefault(str(document), []).append(doi)
        dois = {str(row[0]): row[2] for row in documents}
        return {(titles[a], titles[b]) for a, b in edges_of(dois, lists)}

    def entity(self, name: str) -> UUID:
        """Add an entity without evidence."""
        return insert(
            self.connection,
            "kg_entities",
            firm_id=self.world.firm_id,
            name=name,
            entity_type="concept",
        )

    def chunk(self, document: UUID, index: int = 0) -> UUID:
        """Add a chunk."""
        return insert(
            self.connection,
            "chunks",
            firm_id=self.world.firm_id,
            document_id=document,
            chunk_index=index,
            content="Rent is due.",
        )

    def nothing_to_do(self) -> None:
        """Hold: every edge is what the lists and the documents say, and nothing is amiss."""
        assert self.edges() == self.expected_edges()
        with self.connection.transaction():
            set_context(self.connection, self.world.firm_id)
            row = self.connection.execute("select citeledger.resolve_references()").fetchone()
            assert row is not None
            assert (row[0]["rows_written"], row[0]["rows_removed"]) == (0, 0)
            problems = self.connection.execute(
                "select * from citeledger.check_integrity()"
            ).fetchall()
            assert problems == []


@pytest.fixture
def graph(world: World) -> Graph:
    """Give the graph of the world's firm."""
    return Graph(world)


@pytest.fixture
def consistent(graph: Graph) -> Iterator[None]:
    """After the test: the graph is what the committed lists and documents say."""
    yield
    graph.nothing_to_do()


@pytest.fixture
def opened(racing: Race, world: World) -> Callable[..., Session]:
    """Give a maker of sessions that are in the world's firm, by default the app's."""

    def make(
        user: str = "t_app",
        firm_id: UUID | None = None,
        isolation: psycopg.IsolationLevel = psycopg.IsolationLevel.READ_COMMITTED,
    ) -> Session:
        return racing.session(
            user,
            isolation=isolation,
            before=lambda connection: set_context(connection, firm_id or world.firm_id),
        )

    return make
