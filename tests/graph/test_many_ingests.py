"""Many sessions that put in, change and take out documents and lists of one firm at random."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import psycopg

from support.world import set_context

if TYPE_CHECKING:
    from conftest import Database

    from .conftest import Graph

SESSIONS = 4
TRANSACTIONS = 25
DOIS = [f"10.1000/{n}" for n in range(12)]


def ingest(db: Database, graph: Graph, seed: int) -> list[str]:
    """Run transactions of one to three calls; return the SQLSTATEs that they ended with."""
    chance = random.Random(seed)
    failed: list[str] = []
    with db.connect("t_admin") as connection:
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        for _ in range(TRANSACTIONS):
            try:
                with connection.transaction():
                    set_context(connection, graph.world.firm_id)
                    # The graph first, as the guide says; then whatever comes.
                    for _ in range(chance.randint(1, 3)):
                        step(connection, chance, seed)
            except psycopg.Error as error:
                failed.append(error.sqlstate or "none")
    return failed


def step(connection: psycopg.Connection[Any], chance: random.Random, seed: int) -> None:
    kind = chance.randrange(6)
    doi = chance.choice(DOIS)
    if kind < 2:
        connection.execute(
            "insert into citeledger.documents (title, doi) values (%s, %s)",
            (f"{seed}-{chance.random()}", doi),
        )
    elif kind < 4:
        connection.execute(
            "select citeledger.record_references(d.id, %s)"
            " from (select d.id from citeledger.documents as d"
            " order by md5(d.id::text || %s) limit 1) as d",
            (chance.sample(DOIS, 5), str(chance.random())),
        )
    elif kind == 4:
        connection.execute(
            "update citeledger.documents set deleted_at = case when deleted_at is null then now()"
            " end where doi_key = %s",
            (doi,),
        )
    else:
        connection.execute(
            "select citeledger.corpus_delete(array(select d.id from citeledger.documents as d"
            " order by md5(d.id::text || %s) limit 1))",
            (str(chance.random()),),
        )


def test_many_ingests(db: Database, graph: Graph) -> None:
    with ThreadPoolExecutor(max_workers=SESSIONS) as pool:
        failed = list(pool.map(lambda seed: ingest(db, graph, seed), range(SESSIONS)))
    # A document may be gone when its list comes; there is never a deadlock.
    assert {state for states in failed for state in states} <= {"P0002"}
    graph.nothing_to_do()
