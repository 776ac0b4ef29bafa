"""What a team would write with an ORM instead: the finalize of a turn, and the trace of a chat.

The peers are in ``bench.peers``. Both sides are timed from a client: ours by psycopg, prepared.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING

from .. import ledger_data
from ..figure import Aim, Figure, Measured
from ..ledger_data import FIRM, NotEqualError, same_ledger
from ..peers.finalize import Finalizer
from ..peers.trace import Tracer
from ..server import APP, FLOOR, set_context
from ..timing import in_turn

if TYPE_CHECKING:
    from ..lab import Lab

WARM = 10


def finalize(lab: Lab) -> Measured:
    """Compare the ORM's finalize with ours, each a whole transaction; A is the peer."""
    database = lab.ledger()
    rounds = max(10, lab.scale.rounds // 3)
    ids = database.open_turns(2 * (rounds + WARM))
    ours, theirs = iter(ids[::2]), iter(ids[1::2])
    database.settle_down()
    with asyncio.Runner() as runner, lab.bench.connect(APP, database.name) as app:
        peer = Finalizer(lab.bench.dsn(FLOOR, database.name), FIRM)
        cursor = app.cursor()

        def by_orm() -> float:
            return runner.run(peer.finalize(next(theirs)))

        def by_call() -> float:
            start = time.perf_counter()
            set_context(app, FIRM)
            cursor.execute("select citeledger.finalize_turn(%s)", (next(ours),), prepare=True)
            cursor.fetchall()
            app.commit()
            return time.perf_counter() - start

        pairs = in_turn(by_orm, by_call, rounds, warm=WARM)
        runner.run(peer.close())
    same_ledger(database.superuser, ids[::2], ids[1::2])
    return Measured(pairs, f"10 sources a turn, {lab.scale.ledger:,} entries in the ledger")


def trace(lab: Lab) -> Measured:
    """Compare the ORM's trace of one long chat with ours; A is the peer."""
    database = lab.empty("trace")
    turns = lab.scale.trace_turns
    # A chat of its own: every turn of the ledger is moved into the first chat.
    ledger_data.grow(database.superuser, 0, turns)
    database.superuser.execute("set session_replication_role = replica")
    for table in ("messages", "citation_ledger_entry", "work_product_fiduciary_gate"):
        database.superuser.execute(f"update citeledger.{table} set chat_id = bench.id('chat', 0)")
    for table in ("citation_ledger_entry", "work_product_fiduciary_gate"):
        database.superuser.execute(
            f"update citeledger.{table} set project_id = bench.id('matter', 0)"
        )
    database.superuser.execute("reset session_replication_role")
    database.superuser.execute("vacuum (full, analyze)")
    database.check_integrity()
    row = database.superuser.execute("select bench.id('chat', 0)").fetchone()
    assert row is not None
    (chat_id,) = row
    rounds = max(10, min(30, lab.scale.rounds))
    with asyncio.Runner() as runner, lab.bench.connect(APP, database.name) as app:
        peer = Tracer(lab.bench.dsn(FLOOR, database.name), FIRM)
        cursor = app.cursor()

        def by_orm() -> float:
            return runner.run(peer.trace(chat_id))

        def by_call() -> float:
            start = time.perf_counter()
            set_context(app, FIRM)
            cursor.execute("select citeledger.ledger_trace(%s)", (chat_id,), prepare=True)
            traced = cursor.fetchall()[0][0]
            app.commit()
            seconds = time.perf_counter() - start
            by_call.last = traced  # type: ignore[attr-defined]
            return seconds

        by_orm()
        by_call()
        ours = json.loads(json.dumps(by_call.last))  # type: ignore[attr-defined]
        if not peer.says_the_same(ours) or len(ours["gates"]) != turns:
            raise NotEqualError("the traces differ")
        pairs = in_turn(by_orm, by_call, rounds)
        runner.run(peer.close())
    return Measured(pairs, f"a chat of {turns} turns with 10 sources each")


FIGURES = (
    Figure(
        "orm_vs_finalize",
        "SQLAlchemy's async ORM doing the same",
        "finalize_turn",
        Aim("at least", 4, 5),
        finalize,
    ),
)
TRACE_FIGURES = (
    Figure(
        "trace_vs_peer",
        "the ORM's queries by kind, assembled in Python",
        "ledger_trace",
        Aim("at least", 3),
        trace,
    ),
)
