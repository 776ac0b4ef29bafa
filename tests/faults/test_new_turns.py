"""A new turn is settled in one statement, or step by step where that fails: to the same end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import psycopg
import pytest

from faults.injected import STEP_BY_STEP
from faults.turns import (
    assert_consistent,
    entries,
    failures,
    verdict,
    warnings_of,
)
from support.world import World, set_context

if TYPE_CHECKING:
    from collections.abc import Callable

Connection = psycopg.Connection[Any]

METHODS = (
    "exact_match",
    "tolerant_match",
    "paraphrase_judge",
    "ensemble_strict",
    "ensemble_majority",
    "failed",
    None,
)


def every_kind(world: World, turn: UUID) -> None:
    for number, method in enumerate(METHODS):
        for confidence in (None, 0.1, 0.7, number / 7):
            share = None if method is None or confidence is None else confidence
            world.citation(turn, method, verification_confidence=share)
            world.caselaw(turn, method, verification_confidence=share)
    world.tool(turn)
    world.tool(turn, source_kind="kb_document")


def nothing(world: World, turn: UUID) -> None:
    """A turn that cites nothing."""


def supported(world: World, turn: UUID) -> None:
    world.citation(turn, "paraphrase_judge", verification_confidence=0.33)
    world.citation(turn, "exact_match", verification_confidence=0.34)


def one_tool(world: World, turn: UUID) -> None:
    world.tool(turn)


def written(su: Connection, turn: UUID) -> tuple[list[Any], list[Any]]:
    """Return what was written of a turn, but for ids and times."""
    entries = su.execute(
        "select e.source_kind, e.verification_status, e.confidence, e.provider, e.project_id,"
        " e.retrieved_at is null, e.message_citation_id is null,"
        " e.message_caselaw_citation_id is null, e.message_tool_source_id is null"
        " from citeledger.citation_ledger_entry as e where e.message_id = %s order by 2, 3, 1",
        (turn,),
    ).fetchall()
    gate = su.execute(
        "select g.gate_status, g.pass_count, g.supported_count, g.fail_count, g.total_assertions,"
        " g.unrecognized_count, g.confidence, g.project_id"
        " from citeledger.work_product_fiduciary_gate as g where g.message_id = %s",
        (turn,),
    ).fetchall()
    return sorted(map(repr, entries)), gate


@pytest.mark.parametrize("sources", [every_kind, nothing, supported, one_tool])
def test_at_once_and_step_by_step_are_the_same(
    world: World, su: Connection, app: Connection, sources: Callable[[World, UUID], None]
) -> None:
    matter = world.project()
    at_once, among_many, by_steps = (world.turn(matter) for _ in range(3))
    for turn in (at_once, among_many, by_steps):
        sources(world, turn)
    set_context(app, world.firm_id)
    first = world.on(app).finalize(at_once)
    app.execute("select citeledger.finalize_turns(%s)", ([among_many, world.turn(matter)],))
    app.commit()
    su.execute(STEP_BY_STEP)
    set_context(app, world.firm_id)
    second = world.on(app).finalize(by_steps)
    app.commit()
    assert written(su, at_once) == written(su, by_steps)
    assert written(su, among_many) == written(su, by_steps)
    assert first["failures"] == second["failures"] == []
    assert first["entries_written"] == second["entries_written"]


def test_many_new_turns_at_once(world: World, su: Connection, app: Connection) -> None:
    turns = [world.turn() for _ in range(3)]
    for sources, turn in zip((every_kind, nothing, supported), turns, strict=True):
        sources(world, turn)
    set_context(app, world.firm_id)
    app.execute("select citeledger.finalize_turns(%s)", (turns,))
    app.commit()
    found = su.execute(
        "select g.gate_status from citeledger.work_product_fiduciary_gate as g"
        " where g.message_id = any(%s) order by array_position(%s, g.message_id)",
        (turns, turns),
    ).fetchall()
    assert [row[0] for row in found] == ["flagged", "fiduciary_grade", "supported_only"]


def test_a_turn_that_has_something_is_not_taken_for_new(
    world: World, su: Connection, app: Connection
) -> None:
    """Entries without a verdict, and a verdict without entries: both go step by step."""
    assembled, counted = world.turn(), world.turn()
    supported(world, assembled)
    set_context(app, world.firm_id)
    app.execute("select citeledger.assemble_ledger_entries(%s)", (assembled,))
    app.execute("select citeledger.compute_and_record_gate(%s)", (counted,))
    for turn in (assembled, counted):
        report = world.on(app).finalize(turn)
        assert (report["entries_written"], report["failures"]) == (0, [])
    app.commit()
    assert [row[0] for row in written(su, assembled)[1]] == ["supported_only"]
    assert [row[0] for row in written(su, counted)[1]] == ["fiduciary_grade"]


def test_a_status_that_nobody_knows_flags_a_new_turn(
    world: World, su: Connection, app: Connection
) -> None:
    """Only a table that lost its check can hold one."""
    su.execute(
        "alter table citeledger.message_citations drop constraint message_citations_method_is_known"
    )
    turn = world.turn()
    world.citation(turn, "guessed")
    world.citation(turn, "exact_match")
    set_context(app, world.firm_id)
    with warnings_of(app) as warnings:
        gate = world.on(app).finalize(turn)["gate"]
    assert (gate["gate_status"], gate["unrecognized_count"]) == ("flagged", 1)
    assert gate["total_assertions"] == 1
    assert [w.message for w in warnings] == ["unrecognized verification status: guessed"]

    many = [world.turn() for _ in range(3)]
    for number, other in enumerate(many):
        world.citation(other, f"guessed_{number % 2}")
    with warnings_of(app) as warnings:
        app.execute("select citeledger.finalize_turns(%s)", (many,))
    assert [verdict(app, other) for other in many] == ["flagged"] * 3
    assert [w.message for w in warnings] == [
        "unrecognized verification status: guessed_0, guessed_1"
    ]


def test_new_and_old_turns_in_one_call(world: World, su: Connection, app: Connection) -> None:
    """Those that have something go step by step, beside those that go at once."""
    turns = [world.turn() for _ in range(4)]
    fresh, assembled, counted, failed = turns
    for turn in turns:
        supported(world, turn)
    su.execute(
        "insert into citeledger.finalize_failure (firm_id, message_id, stage, sqlstate)"
        " values (%s, %s, 'lock', '55P03')",
        (world.firm_id, failed),
    )
    set_context(app, world.firm_id)
    app.execute("select citeledger.assemble_ledger_entries(%s)", (assembled,))
    app.execute("select citeledger.compute_and_record_gate(%s)", (counted,))
    app.commit()
    assert verdict(su, counted) == "flagged"

    set_context(app, world.firm_id)
    done = app.execute("select citeledger.finalize_turns(%s)", (turns,)).fetchone()
    app.commit()
    assert done == (4,)
    assert written(su, assembled) == written(su, fresh)
    assert written(su, counted) == written(su, fresh)
    assert written(su, failed) == written(su, fresh)
    assert failures(su, failed) == []
    assert_consistent(su, world.firm_id)


def test_new_entries_beside_a_verdict_that_was_there(
    world: World, su: Connection, app: Connection
) -> None:
    turn = world.turn()
    supported(world, turn)
    set_context(app, world.firm_id)
    app.execute("select citeledger.compute_and_record_gate(%s)", (turn,))
    report = world.on(app).finalize(turn)
    app.commit()
    assert report["entries_written"] == 2
    assert report["gate"]["gate_status"] == verdict(su, turn) == "supported_only"
    assert_consistent(su, world.firm_id)


def test_the_report_of_a_new_turn_is_what_is_stored(
    world: World, su: Connection, app: Connection
) -> None:
    turn = world.turn(world.project())
    every_kind(world, turn)
    set_context(app, world.firm_id)
    report = world.on(app).finalize(turn)
    app.commit()
    stored = su.execute(
        "select to_jsonb(g) - 'firm_id' from citeledger.work_product_fiduciary_gate as g"
        " where g.message_id = %s",
        (turn,),
    ).fetchone()
    assert (report["gate"],) == stored
    assert report["entries_written"] == entries(su, turn) == 8 * len(METHODS) + 2
    assert report["finalized"] is True


def test_the_entries_of_a_turn_lie_side_by_side(
    world: World, su: Connection, app: Connection
) -> None:
    """Whichever way they were written, in the primary key: by 48 bits of the turn's id."""
    alone, *many, assembled, late = (world.turn() for _ in range(5))
    for turn in (alone, *many, assembled):
        every_kind(world, turn)
    set_context(app, world.firm_id)
    for turn in (alone, late):
        world.on(app).finalize(turn)
    app.execute("select citeledger.finalize_turns(%s)", (many,))
    app.execute("select citeledger.assemble_ledger_entries(%s)", (assembled,))
    app.commit()
    for _ in range(2):
        world.citation(late, "exact_match")
    found = su.execute(
        "select e.message_id, count(*), count(distinct left(e.id::text, 14)),"
        " bool_and(left(e.id::text, 14) = left(e.message_id::text, 14)),"
        " bool_and(e.id::text ~ '^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-')"
        " from citeledger.citation_ledger_entry as e where e.firm_id = %s group by e.message_id",
        (world.firm_id,),
    ).fetchall()
    entries_of = {row[0]: tuple(row[1:]) for row in found}
    whole = (8 * len(METHODS) + 2, 1, True, True)
    assert entries_of == {
        alone: whole, many[0]: whole, many[1]: whole, assembled: whole, late: (2, 1, True, True)
    }  # fmt: skip


TRIGGERS = {
    "entries kept back": "if new.verification_status = 'unverified' then return null; end if;",
    "entries changed": "new.project_id := null;",
}


@pytest.mark.parametrize("does", TRIGGERS.values(), ids=TRIGGERS)
def test_a_trigger_of_the_installation_makes_no_verdict_better(
    world: World, su: Connection, app: Connection, does: str
) -> None:
    """What it keeps back is missing, what it changes is counted."""
    su.execute(
        f"create function public.trap() returns trigger language plpgsql as"
        f" $$begin {does} return new; end$$;"
        " create trigger trap before insert on citeledger.citation_ledger_entry"
        " for each row execute function public.trap()"
    )
    matter = world.project()
    turns = [world.turn(matter) for _ in range(3)]
    for turn in turns:
        supported(world, turn)
        world.citation(turn, None)
    set_context(app, world.firm_id)
    world.on(app).finalize(turns[0])
    app.execute("select citeledger.finalize_turns(%s)", (turns[1:],))
    app.commit()
    counts = su.execute(
        "select g.gate_status, g.pass_count, g.supported_count, g.fail_count, g.project_id"
        " from citeledger.work_product_fiduciary_gate as g where g.message_id = any(%s)",
        (turns,),
    ).fetchall()
    assert counts == [("flagged", 1, 1, 1, matter)] * 3
