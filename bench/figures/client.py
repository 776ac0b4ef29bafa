"""What the Python client adds to psycopg: the same statement, run bare, with its row fetched.

Both run inside a transaction whose context is set, prepared, and are timed from the call to what it
returns: the client a report of frozen dataclasses, psycopg the JSON's text.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from citeledger import CiteLedger, calls

from ..figure import Aim, Figure, Measured
from ..ledger_data import FIRM, NotEqualError, same_ledger
from ..server import APP, set_context
from ..timing import in_turn

if TYPE_CHECKING:
    from ..lab import Lab

WARM = 10


def overhead(lab: Lab) -> Measured:
    """Compare CiteLedger.finalize_turn with the bare statement."""
    database, rounds = lab.ledger(), lab.scale.rounds
    ids = database.open_turns(2 * (rounds + WARM))
    ours, theirs = iter(ids[::2]), iter(ids[1::2])
    database.settle_down()
    with (
        lab.bench.connect(APP, database.name) as a,
        lab.bench.connect(APP, database.name) as b,
    ):
        client = CiteLedger(a, prepare_threshold=0)
        bare = b.cursor()

        def by_client() -> float:
            set_context(a, FIRM)
            message_id = next(ours)
            start = time.perf_counter()
            report = client.finalize_turn(message_id)
            seconds = time.perf_counter() - start
            a.commit()
            if report.entries_written != 10:
                raise NotEqualError(str(report))
            return seconds

        def by_psycopg() -> float:
            set_context(b, FIRM)
            message_id = next(theirs)
            start = time.perf_counter()
            bare.execute(calls.FINALIZE_TURN.sql, (message_id,), prepare=True)
            bare.fetchall()
            seconds = time.perf_counter() - start
            b.commit()
            return seconds

        pairs = in_turn(by_client, by_psycopg, rounds, warm=WARM)
    same_ledger(database.superuser, ids[::2], ids[1::2])
    return Measured(pairs, "10 sources a turn")


FIGURES = (
    Figure(
        "client_overhead",
        "CiteLedger.finalize_turn",
        "bare psycopg running the same SQL",
        Aim("at most", 1.15),
        overhead,
    ),
)
