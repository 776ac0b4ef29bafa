"""Sources that come after the finalize: what keeping ledger and verdict right costs each of them.

Both sides insert single sources by the same statement as the application; ours into a turn that is
finalized, where each gets its entry and a new verdict at once. When all are in, the other turns are
finalized too, and the ledgers must be equal.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..figure import Aim, Figure, Measured
from ..lab import begin
from ..ledger_data import same_ledger
from ..timing import in_turn
from ..wire import text
from .backfill import array

if TYPE_CHECKING:
    from uuid import UUID

    from ..lab import Lab
    from ..wire import Wire

WARM = 1


def late_inserts(lab: Lab, *, one_transaction: bool) -> Measured:
    """Compare single inserts into a turn that is finalized with those into one that is not."""
    database, count, rounds = lab.ledger(), lab.scale.late, lab.scale.few
    ids = database.open_turns(2 * (rounds + WARM))
    finalized, still_open = ids[::2], ids[1::2]
    with database.app() as app, database.app() as other:
        for wire in (app, other):
            wire.prepare(
                "source",
                "insert into citeledger.message_citations (message_id, source_text, verified,"
                " verification_method, verification_confidence)"
                " values ($1, 'Notice of ninety days.', true, 'exact_match', 0.9)",
            )
        app.prepare("finalize_turns", "select citeledger.finalize_turns($1)")
        begin(app)
        app.execute("finalize_turns", [array(finalized)])
        app.execute("commit")
        database.settle_down()

        our_turns, their_turns = iter(finalized), iter(still_open)

        def insert(wire: Wire, message_id: UUID) -> float:
            step = ("source", [text(message_id)])
            if one_transaction:
                begin(wire)
                return wire.timed(*[step] * count, ("commit", ()))
            seconds = 0.0
            for _ in range(count):
                begin(wire)
                seconds += wire.timed(step, ("commit", ()))
            return seconds

        pairs = in_turn(
            lambda: insert(app, next(our_turns)),
            lambda: insert(other, next(their_turns)),
            rounds,
            warm=WARM,
        )
        # The open ones get theirs now, and then all are alike.
        begin(other)
        other.prepare("finalize_turns", "select citeledger.finalize_turns($1)")
        other.execute("finalize_turns", [array(still_open)])
        other.execute("commit")
    same_ledger(database.superuser, finalized, still_open)
    how = "in one transaction" if one_transaction else "each in its own transaction"
    return Measured(pairs, f"{count:,} sources added to a turn of 10, {how}")


FIGURES = (
    Figure(
        "late_insert_cost",
        "single inserts of sources into a finalized turn, one transaction",
        "into a turn that is not",
        Aim("at most", 6),
        partial(late_inserts, one_transaction=True),
    ),
    Figure(
        "late_insert_cost_own_transactions",
        "single inserts of sources into a finalized turn, a transaction each",
        "into a turn that is not",
        None,
        partial(late_inserts, one_transaction=False),
    ),
)
