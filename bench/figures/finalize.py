"""finalize_turn against the same rows by hand, alone, with many clients, and as ledgers grow.

Where a single turn is timed, the transaction has begun on both sides, and on ours the context is
set: a turn's transaction has both before it comes to this, having read and written the turn's
sources. What is timed is the writing and the commit. The throughput is of whole transactions.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from .. import floors
from ..figure import Aim, Figure, Growth, Measured, Point
from ..lab import begin
from ..ledger_data import NotEqualError, ledger_of, read_turns, same_ledger
from ..timing import Spread, in_turn
from ..wire import text

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from ..lab import Database, Lab
    from ..wire import Wire

WARM = 10
FINALIZE = "select citeledger.finalize_turn($1)"


def prepare(wire: Wire) -> None:
    """Prepare our side on an application's connection."""
    wire.prepare("finalize", FINALIZE)


def finalizer(wire: Wire, message_ids: list[UUID]) -> Callable[[], float]:
    """Give what finalizes the next of the turns and says how long that took."""
    turns = iter(message_ids)

    def once() -> float:
        begin(wire)
        return wire.timed(("finalize", [text(next(turns))]), ("commit", ()))

    return once


def by_hand(
    wire: Wire, database: Database, message_ids: list[UUID], *, sealed: bool = False
) -> Callable[[], float]:
    """Give what writes the next of the turns by hand and says how long that took."""
    turns = read_turns(database.superuser, message_ids)
    steps = iter([(*floors.steps(turn), *([floors.seal(turn)] * sealed)) for turn in turns])

    def once() -> float:
        wire.execute("begin")
        return wire.timed(*next(steps), ("commit", ()))

    return once


def against_floor(lab: Lab, sources: int, rounds: int) -> Measured:
    """Compare finalize_turn with the floor on turns of so many sources in the largest ledger."""
    database = lab.ledger()
    ids = database.open_turns(2 * (rounds + WARM), sources)
    ours, theirs = ids[::2], ids[1::2]
    database.settle_down()
    with database.app() as app, database.floor() as floor:
        prepare(app)
        floors.prepare(floor, sources)
        pairs = in_turn(finalizer(app, ours), by_hand(floor, database, theirs), rounds, warm=WARM)
    same_ledger(database.superuser, ours, theirs)
    return Measured(pairs, f"{sources} sources a turn, {lab.scale.ledger:,} entries in the ledger")


def against_sealing_floor(lab: Lab) -> Measured:
    """Compare with a floor that also sets ``finalized_at``, where no trigger finalizes."""
    rounds, entries = lab.scale.rounds, lab.scale.ledgers[0]
    a = lab.ledger(entries)
    b = lab.copied("by_hand", a, ("drop trigger messages_finalize_updated on citeledger.messages",))
    a.next_turn = b.next_turn = max(a.next_turn, b.next_turn)
    ids = a.open_turns(rounds + WARM)
    b.open_turns(rounds + WARM)
    a.settle_down()
    with a.app() as app, b.floor() as floor:
        prepare(app)
        floors.prepare(floor, 10)
        pairs = in_turn(finalizer(app, ids), by_hand(floor, b, ids, sealed=True), rounds, warm=WARM)
    if ledger_of(a.superuser, ids) != ledger_of(b.superuser, ids):
        raise NotEqualError("the ledgers differ")
    return Measured(pairs, f"10 sources a turn, {entries:,} entries in the ledger")


def in_ledgers(lab: Lab, large: int, small: int) -> Measured:
    """Compare finalize_turn in a large ledger with the same in a small one."""
    rounds = lab.scale.rounds
    a, b = lab.ledger(large), lab.ledger(small)
    if a is b:
        ids = a.open_turns(2 * (rounds + WARM))
        ids_a, ids_b = ids[::2], ids[1::2]
    else:
        # Of the same numbers, so of the same sources.
        a.next_turn = b.next_turn = max(a.next_turn, b.next_turn)
        ids_a, ids_b = a.open_turns(rounds + WARM), b.open_turns(rounds + WARM)
    for database in (a, b):
        database.settle_down()
    with a.app() as app_a, b.app() as app_b:
        prepare(app_a)
        prepare(app_b)
        pairs = in_turn(finalizer(app_a, ids_a), finalizer(app_b, ids_b), rounds, warm=WARM)
    if ledger_of(a.superuser, ids_a) != ledger_of(b.superuser, ids_b):
        raise NotEqualError("the same turns have different ledgers")
    return Measured(pairs, f"{large:,} entries against {small:,}, 10 sources a turn")


def grown(lab: Lab, position: int) -> Measured:
    """Compare a ledger of the run, counted from the largest, with its smallest."""
    return in_ledgers(lab, lab.scale.ledgers[position], lab.scale.ledgers[0])


def grown_to_a_million(lab: Lab) -> Measured:
    """Compare a ledger of a million, the last but one of a full run, with the smallest."""
    return grown(lab, -2 if lab.scale.name == "full" else -1)


def without_page_images(lab: Lab) -> Measured:
    """Compare the same where the log holds no images of pages, as long after a checkpoint."""
    with lab.bench.superuser() as superuser:
        try:
            superuser.execute("alter system set full_page_writes = off")
            superuser.execute("select pg_reload_conf()")
            return grown_to_a_million(lab)
        finally:
            superuser.execute("alter system reset full_page_writes")
            superuser.execute("select pg_reload_conf()")


def growth_by_sources(lab: Lab) -> Growth:
    """Measure turns of one source to a thousand."""
    ours, theirs = [], []
    for sources in lab.scale.turn_sizes:
        rounds = max(5, min(lab.scale.rounds // 5, 20_000 // sources))
        pairs = against_floor(lab, sources, rounds).pairs
        ours.append(Point(sources, Spread.of(pairs.a)))
        theirs.append(Point(sources, Spread.of(pairs.b)))
    return Growth(
        "finalize_by_sources", "A turn with more sources", "sources in the turn", "milliseconds",
        {"finalize_turn": ours, "the same rows by hand": theirs},
    )  # fmt: skip


def growth_by_ledger(lab: Lab) -> Growth:
    """Measure the same turn in ledgers of every size of the run, in turn."""
    rounds = max(10, lab.scale.rounds // 3)
    points = []
    for entries in lab.scale.ledgers:
        measured = in_ledgers(lab, entries, lab.scale.ledgers[0])
        points.append(Point(entries, Spread.of(measured.pairs.a[-rounds:])))
    return Growth(
        "finalize_by_ledger", "The same turn in a larger ledger", "entries in the ledger",
        "milliseconds", {"finalize_turn": points},
    )  # fmt: skip


def _alone(lab: Lab) -> Measured:
    return against_floor(lab, 10, lab.scale.rounds)


FIGURES = (
    Figure(
        "finalize_vs_floor",
        "finalize_turn, 10 sources",
        "the same entries and verdict inserted by hand",
        Aim("at most", 1.30, 1.20),
        _alone,
    ),
    Figure(
        "finalize_vs_sealing_floor",
        "finalize_turn, 10 sources",
        "the same by hand, and the message's finalized_at set",
        None,
        against_sealing_floor,
    ),
)
LEDGER_FIGURES = (
    Figure(
        "finalize_1e6_vs_1e4",
        "finalize_turn with 10^6 entries in the ledger",
        "with 10^4",
        Aim("at most", 1.20),
        grown_to_a_million,
    ),
    Figure(
        "finalize_1e6_vs_1e4_without_page_images",
        "the same with full_page_writes off",
        "with 10^4, likewise",
        None,
        without_page_images,
    ),
    Figure(
        "finalize_1e7_vs_1e4",
        "finalize_turn with 10^7 entries in the ledger",
        "with 10^4",
        Aim("at most", 1.30),
        partial(grown, position=-1),
        full_only=True,
    ),
)
