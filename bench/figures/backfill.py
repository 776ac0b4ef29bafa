"""finalize_turns over many turns against one insert of ready entries and one of ready verdicts.

The floor's rows lie ready in two tables of the same database, analyzed, so that ``insert … select``
has nothing to compute. Both sides start from a checkpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..figure import Aim, Figure, Measured
from ..lab import begin
from ..ledger_data import FIRM, read_turns, same_ledger
from ..timing import in_turn

if TYPE_CHECKING:
    from uuid import UUID

    from ..lab import Database, Lab

ENTRY = (
    "firm_id, chat_id, project_id, message_id, source_kind, message_citation_id,"
    " message_caselaw_citation_id, message_tool_source_id, verification_status, confidence,"
    " provider, retrieved_at"
)
GATE = (
    "firm_id, chat_id, project_id, message_id, gate_status, pass_count, supported_count,"
    " fail_count, total_assertions, unrecognized_count, confidence"
)
WARM = 1


def array(ids: list[UUID]) -> bytes:
    """Write ids as an array is written."""
    return ("{" + ",".join(map(str, ids)) + "}").encode()


def lay_ready(database: Database, message_ids: list[UUID], number: int) -> None:
    """Put the rows of these turns into two tables of their own."""
    connection = database.superuser
    entries, gates = f"bench.entries_{number}", f"bench.gates_{number}"
    for table, like, columns in (
        (entries, "citation_ledger_entry", ENTRY),
        (gates, "work_product_fiduciary_gate", GATE),
    ):
        connection.execute(
            f"create table {table} as select {columns} from citeledger.{like} limit 0"
        )
    turns = read_turns(connection, message_ids)
    with connection.cursor() as cursor:
        with cursor.copy(f"copy {entries} ({ENTRY}) from stdin") as copy:
            for turn in turns:
                place = (FIRM, turn.chat_id, turn.project_id, turn.message_id)
                for e in turn.entries:
                    copy.write_row(
                        (*place, e.source_kind, e.citation, e.caselaw, e.tool, e.status,
                         e.confidence, e.provider, e.retrieved_at)
                    )  # fmt: skip
        with cursor.copy(f"copy {gates} ({GATE}) from stdin") as copy:
            for turn in turns:
                copy.write_row((FIRM, turn.chat_id, turn.project_id, turn.message_id, *turn.gate))
    connection.execute(f"analyze {entries}")
    connection.execute(f"analyze {gates}")
    connection.execute("grant usage on schema bench to bench_floor")
    connection.execute(f"grant select on {entries}, {gates} to bench_floor")


def backfill(lab: Lab) -> Measured:
    """Compare one call over many turns with the two statements."""
    database, count, rounds = lab.ledger(), lab.scale.backfill, lab.scale.few
    sides: list[tuple[list[UUID], list[UUID]]] = []
    for number in range(rounds + WARM):
        ids = database.open_turns(2 * count)
        sides.append((ids[::2], ids[1::2]))
        lay_ready(database, ids[1::2], number)
    # As after a migration: the tables are known to the planner.
    database.superuser.execute("vacuum (analyze)")

    with database.app() as app, database.floor() as floor:
        app.prepare("finalize_turns", "select citeledger.finalize_turns($1)")
        for number in range(rounds + WARM):
            for name, table, columns in (
                (f"entries_{number}", "citation_ledger_entry", ENTRY),
                (f"gates_{number}", "work_product_fiduciary_gate", GATE),
            ):
                floor.prepare(
                    name,
                    f"insert into citeledger.{table} ({columns})"
                    f" select {columns} from bench.{name}",
                )
        our_rounds, their_rounds = iter(sides), iter(range(rounds + WARM))

        def ours() -> float:
            database.settle_down()
            begin(app)
            return app.timed(("finalize_turns", [array(next(our_rounds)[0])]), ("commit", ()))

        def by_hand() -> float:
            database.settle_down()
            number = next(their_rounds)
            floor.execute("begin")
            return floor.timed((f"entries_{number}", ()), (f"gates_{number}", ()), ("commit", ()))

        pairs = in_turn(ours, by_hand, rounds, warm=WARM)
    for our_ids, their_ids in sides:
        same_ledger(database.superuser, our_ids, their_ids)
    return Measured(pairs, f"{count:,} turns of 10 sources in one call")


FIGURES = (
    Figure(
        "backfill_vs_floor",
        "finalize_turns over many turns",
        "insert … select of as many ready entries and verdicts",
        Aim("at most", 1.40, 1.20),
        backfill,
    ),
)
