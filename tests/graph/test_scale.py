"""Fifty thousand references in one call: within the default lock table, and in seconds."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING

import pytest

from support.world import set_context

if TYPE_CHECKING:
    from .conftest import Connection, Graph

MANY = 50_000
SLOW = 60.0
# It takes two seconds; without a plan that holds without statistics it takes minutes.


@pytest.mark.usefixtures("consistent")
def test_fifty_thousand_references(graph: Graph, app: Connection) -> None:
    graph.connection.execute(
        "insert into citeledger.documents (firm_id, title, doi)"
        " select %s, n::text, '10.1000/' || n from generate_series(1, 2000) as n",
        (graph.world.firm_id,),
    )
    citing = graph.document("10.1000/citing")
    dois = [f"10.1000/{n}" for n in range(1, MANY + 1)]
    set_context(app, graph.world.firm_id)
    start = time.monotonic()
    for spelled in (dois, [f"https://doi.org/{doi}" for doi in dois[::-1]]):
        row = app.execute(
            "select citeledger.record_references(%s, %s)", (citing, spelled)
        ).fetchone()
        assert row is not None
        assert (row[0]["references_found"], row[0]["matched"]) == (MANY, 2000)
    row = app.execute(
        "select count(*) from pg_catalog.pg_locks where pid = pg_catalog.pg_backend_pid()"
    ).fetchone()
    assert row is not None
    assert row[0] < 64
    app.commit()
    # What they name goes, and comes back.
    for deleted in ("now()", "null"):
        graph.connection.execute(
            f"update citeledger.documents set deleted_at = {deleted} where firm_id = %s"
            " and title <> '10.1000/citing'",
            (graph.world.firm_id,),
        )
    assert time.monotonic() - start < SLOW
    assert len(graph.edges()) == 2000


def test_references_that_no_index_could_hold(graph: Graph) -> None:
    citing = graph.document("10.1000/" + secrets.token_hex(1500))
    report = graph.record(
        citing,
        "10.1000/" + secrets.token_hex(1500),
        "10.1000/" + "a" * 20_000,
        "10.1000/" + secrets.token_hex(1020),
    )
    assert (report["references_found"], report["unusable"]) == (1, 2)


def test_lists_made_to_be_slow(graph: Graph) -> None:
    """What is dropped at the end of a DOI is dropped in one go."""
    citing = graph.document("10.1000/a")
    start = time.monotonic()
    report = graph.record(
        citing,
        *(f"10.1000/{n}" + ")" * 8000 for n in range(60)),
        *(f"10.2000/{n}" + ").(" * 2500 for n in range(60)),
        *(f"10.3000/{n}&" + "amp;" * 2000 for n in range(15)),
        *("doi:" * 2000 + f"10.4000/{n}" for n in range(15)),
    )
    assert report["references_found"] == 150
    assert time.monotonic() - start < SLOW
