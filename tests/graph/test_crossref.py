"""Real works, as Crossref gives them, in two orders; the edges are those of an oracle in Python."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from psycopg.types.json import Jsonb

from graph.oracle import edges_of, key_of
from support.deploy import REPOSITORY
from support.world import set_context

if TYPE_CHECKING:
    from .conftest import Connection, Graph

WORKS = REPOSITORY.parent / "shared" / "data" / "crossref_works.json.gz"


@pytest.fixture(scope="module")
def works() -> list[Any]:
    """Read the works, or say that they are not on this machine."""
    if not WORKS.is_file():
        pytest.skip(f"there are no real works at {WORKS}")
    with gzip.open(WORKS) as file:
        read = json.load(file)
    if isinstance(read, dict):
        read = next(value for value in read.values() if isinstance(value, list))
    assert isinstance(read, list)
    assert read
    return read


def dois_of(work: dict[str, Any]) -> list[str]:
    return [r["DOI"] for r in work.get("reference") or () if isinstance(r.get("DOI"), str)]


@pytest.mark.parametrize("order", ["as given", "reversed", "lists last"])
def test_the_edges_are_the_oracles(
    graph: Graph, app: Connection, works: list[dict[str, Any]], order: str
) -> None:
    # The works cite few of each other: every seventh of what they cite is there too.
    cited = sorted({key for work in works for doi in dois_of(work) if (key := key_of(doi))})
    works = [*works, *({"DOI": f"https://doi.org/{quote(key)}"} for key in cited[::7])]
    dois = {str(n): work["DOI"] for n, work in enumerate(works)}
    lists = {str(n): dois_of(work) for n, work in enumerate(works)}
    expected = edges_of(dois, lists)
    assert len(expected) > 1000
    numbers = list(range(len(works)))
    if order == "reversed":
        numbers.reverse()
    set_context(app, graph.world.firm_id)
    ids: dict[int, Any] = {}

    def put(number: int) -> None:
        row = app.execute(
            "insert into citeledger.documents (title, doi, document_kind)"
            " values (%s, %s, 'publication') returning id",
            (str(number), works[number]["DOI"]),
        ).fetchone()
        assert row is not None
        ids[number] = row[0]

    def record(number: int) -> None:
        row = app.execute(
            "select citeledger.record_crossref_work(%s, %s)", (ids[number], Jsonb(works[number]))
        ).fetchone()
        assert row is not None
        keys = {key_of(doi) for doi in lists[str(number)]} - {None}
        assert row[0]["references_found"] == len(keys)

    if order == "lists last":
        for number in numbers:
            put(number)
        for number in numbers:
            record(number)
    else:
        for number in numbers:
            put(number)
            record(number)
    app.commit()
    assert graph.edges() == expected
    graph.nothing_to_do()
