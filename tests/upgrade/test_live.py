"""An upgrade under the hands of the applications: their pools go on, and no turn is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from psycopg_pool import ConnectionPool

from citeledger import CiteLedger
from support.deploy import checked
from support.filled import problems
from support.world import World, set_context

from .conftest import LONG_DOI, QUOTE, Installation, upgrade

if TYPE_CHECKING:
    Installed = Callable[..., Installation]

CLIENTS = 4
# Turns of each client after the upgrade; before it each does one, and others all along.
ROUNDS = 5


def turn(client: CiteLedger, firm: UUID, matter: UUID, document: UUID) -> UUID:
    """Do what an application does in a turn, in one transaction; return the turn."""
    with client.context(firm_id=firm, permissions=["matters:read"]) as bound:
        world = World(bound.connection, firm)
        message = world.turn(matter)
        world.citation(message, source_document_id=document)
        world.caselaw(message, None)
        world.tool(message)
        report = bound.finalize_turn(message)
        assert report.finalized
        assert not report.failures
        bound.record_references(document, [LONG_DOI, "10.1000/second"])
        span = {"document_id": str(document), "page_number": 1, "quote": QUOTE}
        assert bound.cite(matter, span).verified
        assert len(bound.get_citations(document).references) == 2
    return message


@pytest.mark.parametrize("way", ["sqitch", "one file"])
def test_pools_go_on_through_an_upgrade(installed: Installed, way: str) -> None:
    installation = installed(way)
    firm = installation.firms[0]
    with installation.connect() as superuser:
        row = superuser.execute(
            "select d.project_id, d.id from citeledger.documents as d"
            " where d.firm_id = %s and d.title = 'Citing'",
            (firm,),
        ).fetchone()
    assert row is not None
    matter, document = row
    begun, done = threading.Barrier(CLIENTS + 1), threading.Event()

    def work(pool: ConnectionPool) -> list[UUID]:
        client = CiteLedger(pool)
        turns = [turn(client, firm, matter, document)]
        begun.wait(30)
        while not done.is_set():
            turns.append(turn(client, firm, matter, document))
        turns.extend(turn(client, firm, matter, document) for _ in range(ROUNDS))
        return turns

    with (
        ConnectionPool(
            installation.server.dsn("t_app", installation.name), min_size=2, max_size=2
        ) as pool,
        ThreadPoolExecutor(CLIENTS) as threads,
    ):
        running = [threads.submit(work, pool) for _ in range(CLIENTS)]
        try:
            begun.wait(30)
            outcome = upgrade(installation, way)
        finally:
            done.set()
        turns = [message for each in running for message in each.result(60)]
    checked(outcome)

    assert len(set(turns)) == len(turns) > CLIENTS * (1 + ROUNDS)
    with installation.connect() as superuser:
        set_context(superuser, firm)
        found = superuser.execute(
            "select g.message_id, g.gate_status, g.pass_count, g.fail_count"
            " from citeledger.work_product_fiduciary_gate as g"
            " where g.firm_id = %s and g.message_id = any(%s)",
            (firm, turns),
        ).fetchall()
    assert {row[0] for row in found} == set(turns)
    assert {row[1:] for row in found} == {("flagged", 1, 1)}
    # Only now: what it tries again is a turn that failed before the upgrade.
    with installation.connect(autocommit=True) as superuser:
        assert problems(superuser) == []
