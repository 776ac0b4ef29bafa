"""Injected faults: a step that fails leaves the turn committed, logged, warned about, unjudged.

Each fault is met on every way into finalize: by function, by column, as a set, by a late source.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import UUID

import psycopg
import pytest

from faults.injected import HISTORY, IN_ONE_ROW, STEP_BY_STEP, WHOLE, Fault, raising
from faults.turns import (
    assert_consistent,
    assert_no_stale_verdict,
    entries,
    failures,
    is_finalized,
    settle_pending,
    sources,
    verdict,
    warnings_of,
)
from support.world import World, set_context

if TYPE_CHECKING:
    from conftest import Database

Connection = psycopg.Connection[Any]


def by_function(app: Connection, message_id: UUID) -> None:
    app.execute("select citeledger.finalize_turn(%s)", (message_id,))


def by_column(app: Connection, message_id: UUID) -> None:
    app.execute("update citeledger.messages set finalized_at = now() where id = %s", (message_id,))


def by_set(app: Connection, message_id: UUID) -> None:
    app.execute("select citeledger.finalize_turns(%s)", ([message_id],))


WAYS = {"finalize_turn": by_function, "update": by_column, "finalize_turns": by_set}


@pytest.fixture(params=list(WAYS.values()), ids=list(WAYS))
def way(request: pytest.FixtureRequest) -> Callable[[Connection, UUID], None]:
    found: Callable[[Connection, UUID], None] = request.param
    return found


def three_sources(world: World) -> UUID:
    """Add a turn with one source of each kind, all of them fine."""
    turn = world.turn(world.project())
    world.citation(turn)
    world.caselaw(turn)
    world.tool(turn)
    return turn


@pytest.mark.parametrize("fault", WHOLE, ids=str)
def test_a_step_that_fails_keeps_the_turn_and_gives_no_verdict(
    world: World, su: Connection, app: Connection, way: Callable[..., None], fault: Fault
) -> None:
    """The point of the guards: an answer is never lost because its bookkeeping broke."""
    turn = three_sources(world)
    su.execute(fault.inject)
    set_context(app, world.firm_id)
    with warnings_of(app) as warnings:
        way(app, turn)
        app.commit()

    assert is_finalized(su, turn)
    assert verdict(su, turn) is None
    assert failures(su, turn) == [(fault.stage, fault.sqlstate)]
    assert [w.message for w in warnings] == [f"a turn could not be finalized: {fault.stage} failed"]
    assert fault.sqlstate in warnings[0].detail
    assert "secret" not in str(warnings[0])


@pytest.mark.parametrize("fault", WHOLE, ids=str)
def test_the_job_finalizes_after_the_repair_and_clears_the_log(
    world: World, su: Connection, app: Connection, fault: Fault
) -> None:
    """finalize_pending is the way back: it must find the turn, judge it, and forget the failure."""
    turn = three_sources(world)
    su.execute(fault.inject)
    set_context(app, world.firm_id)
    by_function(app, turn)
    app.commit()
    assert settle_pending(app, world.firm_id) == 0, "still broken"
    assert failures(su, turn) == [(fault.stage, fault.sqlstate)]

    su.execute(fault.repair)
    assert settle_pending(app, world.firm_id) == 1
    assert failures(su, turn) == []
    assert verdict(su, turn) == "fiduciary_grade"
    assert_consistent(su, world.firm_id)
    assert settle_pending(app, world.firm_id) == 0, "nothing is left to do"


@pytest.mark.parametrize("fault", WHOLE, ids=str)
def test_a_late_source_that_cannot_be_assembled_withdraws_the_old_verdict(
    world: World, su: Connection, app: Connection, fault: Fault
) -> None:
    """The source is committed, so the verdict that does not know it must not stay."""
    turn = three_sources(world)
    set_context(app, world.firm_id)
    by_function(app, turn)
    app.commit()
    assert verdict(su, turn) == "fiduciary_grade"

    su.execute(fault.inject)
    set_context(app, world.firm_id)
    with warnings_of(app) as warnings:
        world.on(app).citation(turn, None)
        app.commit()
    assert sources(su, turn) == 4
    assert verdict(su, turn) is None
    assert failures(su, turn) == [(fault.stage, fault.sqlstate)]
    assert warnings

    su.execute(fault.repair)
    assert settle_pending(app, world.firm_id) == 1
    assert verdict(su, turn) == "flagged"
    assert_consistent(su, world.firm_id)


@pytest.mark.parametrize("fault", [f for f in WHOLE if f.stage == "gate"], ids=str)
def test_a_verdict_that_cannot_be_computed_again_is_withdrawn(
    world: World, su: Connection, app: Connection, fault: Fault
) -> None:
    """A downgrade that reaches the ledger must not leave the old verdict to be shown."""
    turn = three_sources(world)
    set_context(app, world.firm_id)
    by_function(app, turn)
    app.commit()

    su.execute(fault.inject)
    set_context(app, world.firm_id)
    app.execute(
        "update citeledger.message_citations set verified = false where message_id = %s", (turn,)
    )
    app.commit()
    assert verdict(su, turn) is None
    assert failures(su, turn) == [(fault.stage, fault.sqlstate)]

    su.execute(fault.repair)
    assert settle_pending(app, world.firm_id) == 1
    assert verdict(su, turn) == "flagged"
    assert_consistent(su, world.firm_id)


def test_a_downgrade_whose_history_cannot_be_kept_withdraws_the_verdict(
    world: World, su: Connection, app: Connection
) -> None:
    """Refreshing an entry writes a revision; when that fails, the entry is stale and so is all."""
    turn = three_sources(world)
    set_context(app, world.firm_id)
    by_function(app, turn)
    app.commit()

    su.execute(HISTORY.inject)
    set_context(app, world.firm_id)
    app.execute(
        "update citeledger.message_citations set verified = false where message_id = %s", (turn,)
    )
    app.commit()
    assert verdict(su, turn) is None
    assert failures(su, turn) == [(HISTORY.stage, HISTORY.sqlstate)]

    su.execute(HISTORY.repair)
    assert settle_pending(app, world.firm_id) == 1
    assert verdict(su, turn) == "flagged"
    assert_consistent(su, world.firm_id)


def test_a_turn_that_arrives_finalized_is_kept_too(
    world: World, su: Connection, app: Connection
) -> None:
    """INSERT with finalized_at set is a way into finalize as well."""
    fault = next(f for f in WHOLE if f.stage == "gate" and f.sqlstate == "53100")
    chat = world.chat()
    su.execute(fault.inject)
    set_context(app, world.firm_id)
    turn = world.on(app).message(chat, finalized_at="2026-01-01")
    app.commit()
    assert is_finalized(su, turn)
    assert verdict(su, turn) is None
    assert failures(su, turn) == [("gate", "53100")]


@pytest.mark.parametrize("fault", IN_ONE_ROW, ids=str)
def test_a_row_that_fails_in_the_middle_of_a_set_is_skipped_and_flags(
    world: World, su: Connection, app: Connection, way: Callable[..., None], fault: Fault
) -> None:
    """Class 22 and 23 are the row's own fault: the others get their entries all the same."""
    turn = three_sources(world)
    world.citation(turn)
    world.tool(turn, provider="trapped")
    world.tool(turn)
    world.caselaw(turn)
    su.execute(fault.inject)
    set_context(app, world.firm_id)
    with warnings_of(app) as warnings:
        way(app, turn)
        app.commit()

    assert is_finalized(su, turn)
    assert sources(su, turn) == 7
    assert entries(su, turn) == 6
    assert failures(su, turn) == [(fault.stage, fault.sqlstate)]
    assert [w.message for w in warnings] == ["sources of a turn got no ledger entry"]
    # A tool's source asserts nothing; the verdict is of the four citations.
    assert verdict(su, turn) == "fiduciary_grade"

    su.execute(fault.repair)
    settle_pending(app, world.firm_id)
    assert entries(su, turn) == 7
    assert_consistent(su, world.firm_id)


def test_a_citation_without_an_entry_counts_as_failed(
    world: World, su: Connection, app: Connection, way: Callable[..., None]
) -> None:
    """What was asserted and is not in the ledger resolves to nothing: the turn is flagged."""
    turn = three_sources(world)
    world.caselaw(turn, verification_confidence=0.25)
    su.execute(
        "alter table citeledger.citation_ledger_entry add constraint trap"
        " check (confidence is distinct from 0.25)"
    )
    set_context(app, world.firm_id)
    way(app, turn)
    app.commit()
    assert entries(su, turn) == 3
    assert failures(su, turn) == [("assemble_row", "23514")]
    row = su.execute(
        "select gate_status, pass_count, supported_count, fail_count, total_assertions"
        " from citeledger.work_product_fiduciary_gate where message_id = %s",
        (turn,),
    ).fetchone()
    assert row == ("flagged", 2, 0, 1, 3)

    su.execute("alter table citeledger.citation_ledger_entry drop constraint trap")
    assert settle_pending(app, world.firm_id) == 1
    assert verdict(su, turn) == "fiduciary_grade"
    assert_consistent(su, world.firm_id)


def test_a_late_source_that_is_skipped_flags_a_turn_that_was_judged(
    world: World, su: Connection, app: Connection
) -> None:
    """The old verdict passed the turn; the late citation cannot be put into the ledger."""
    turn = three_sources(world)
    set_context(app, world.firm_id)
    by_function(app, turn)
    app.commit()
    su.execute(
        "alter table citeledger.citation_ledger_entry add constraint trap"
        " check (confidence is distinct from 0.25)"
    )
    set_context(app, world.firm_id)
    world.on(app).caselaw(turn, verification_confidence=0.25)
    app.commit()
    assert verdict(su, turn) == "flagged"
    assert failures(su, turn) == [("assemble_row", "23514")]

    # The next source of the turn retries the one that was skipped, once it can be written.
    su.execute("alter table citeledger.citation_ledger_entry drop constraint trap")
    set_context(app, world.firm_id)
    world.on(app).tool(turn)
    app.commit()
    assert verdict(su, turn) == "fiduciary_grade"
    assert_consistent(su, world.firm_id)


@pytest.mark.parametrize("place", [0, 4, 9])
@pytest.mark.parametrize("whole_set", [by_set, by_column], ids=["finalize_turns", "update"])
def test_one_bad_turn_of_ten_spoils_no_other(
    world: World, su: Connection, app: Connection, whole_set: Callable[..., None], place: int
) -> None:
    """A set of turns fails as a whole, so each must be tried again alone."""
    turns = sorted(three_sources(world) for _ in range(10))
    bad = turns[place]
    su.execute(
        f"""
        create function public.trap() returns trigger language plpgsql as $$
        begin
          if new.message_id = '{bad}' then
            raise exception using errcode = '53100', message = 'no space';
          end if;
          return new;
        end
        $$;
        create trigger trap before insert on citeledger.citation_ledger_entry
          for each row execute function public.trap()
        """
    )
    set_context(app, world.firm_id)
    if whole_set is by_set:
        row = app.execute("select citeledger.finalize_turns(%s)", (turns,)).fetchone()
        assert row == (9,)
    else:
        app.execute(
            "update citeledger.messages set finalized_at = now() where id = any(%s)", (turns,)
        )
    app.commit()
    for turn in turns:
        assert is_finalized(su, turn)
        assert verdict(su, turn) == (None if turn == bad else "fiduciary_grade")
        assert failures(su, turn) == ([("assemble", "53100")] if turn == bad else [])

    su.execute("drop trigger trap on citeledger.citation_ledger_entry")
    assert settle_pending(app, world.firm_id) == 1
    assert_consistent(su, world.firm_id)


def test_one_bad_row_in_ten_turns_costs_only_its_own_entry(
    world: World, su: Connection, app: Connection
) -> None:
    """The row-by-row fallback works inside a set of turns too."""
    turns = [three_sources(world) for _ in range(10)]
    world.tool(turns[3], provider="trapped")
    su.execute(IN_ONE_ROW[0].inject)
    set_context(app, world.firm_id)
    row = app.execute("select citeledger.finalize_turns(%s)", (turns,)).fetchone()
    app.commit()
    assert row == (10,)
    assert [entries(su, t) for t in turns] == [3] * 10
    assert [failures(su, t) for t in turns if t != turns[3]] == [[]] * 9
    assert failures(su, turns[3]) == [("assemble_row", "23514")]


def test_the_job_is_not_stopped_by_a_turn_that_fails_again_and_again(
    world: World, su: Connection, app: Connection
) -> None:
    """With a limit of one, the turn that fails forever must not be the only one that is tried."""
    bad, *good = [three_sources(world) for _ in range(4)]
    # Four turns that were committed without a verdict.
    su.execute("alter table citeledger.messages disable trigger messages_finalize_updated")
    su.execute("update citeledger.messages set finalized_at = now()")
    su.execute("alter table citeledger.messages enable trigger messages_finalize_updated")
    su.execute(
        f"alter table citeledger.work_product_fiduciary_gate add constraint trap"
        f" check (message_id <> '{bad}')"
    )
    for _ in range(8):
        set_context(app, world.firm_id)
        app.execute("select citeledger.finalize_pending(1)")
        app.commit()
    assert [verdict(su, t) for t in good] == ["fiduciary_grade"] * 3
    assert verdict(su, bad) is None
    assert failures(su, bad) == [("gate", "23514")]


def test_repeated_failures_do_not_pile_up(world: World, su: Connection, app: Connection) -> None:
    """A job that retries every minute for a year must not fill the log."""
    turn = three_sources(world)
    bad = [world.tool(turn, provider="trapped") for _ in range(3)]
    su.execute(IN_ONE_ROW[0].inject)
    set_context(app, world.firm_id)
    by_function(app, turn)
    app.commit()
    for _ in range(5):
        settle_pending(app, world.firm_id)
    set_context(app, world.firm_id)
    app.execute("select citeledger.assemble_ledger_entries(%s)", (turn,))
    world.on(app).tool(turn)
    app.commit()
    assert failures(su, turn) == [("assemble_row", "23514")] * len(bad)

    # Other stages that fail after it, in turn, add one row each at most.
    for fault in [WHOLE[5], WHOLE[6]] * 3:
        su.execute(fault.inject)
        set_context(app, world.firm_id)
        world.on(app).citation(turn, None)
        by_function(app, turn)
        app.commit()
        settle_pending(app, world.firm_id)
        su.execute(fault.repair)
    logged = failures(su, turn)
    assert len(logged) <= len(bad) + 2
    assert {stage for stage, _ in logged} <= {"assemble", "assemble_row", "gate"}

    su.execute(IN_ONE_ROW[0].repair)
    settle_pending(app, world.firm_id)
    assert failures(su, turn) == []
    assert_consistent(su, world.firm_id)


def test_the_log_holds_no_text_of_an_error(world: World, su: Connection, app: Connection) -> None:
    """An error's message can quote content; of it only the five characters are kept."""
    turn = three_sources(world)
    su.execute(WHOLE[5].inject)
    set_context(app, world.firm_id)
    by_function(app, turn)
    app.commit()
    row = su.execute(
        "select string_agg(f::text, ' ') from citeledger.finalize_failure as f"
    ).fetchone()
    assert row is not None
    assert "53100" in row[0]
    assert "secret" not in row[0]
    assert "notice" not in row[0]


def test_the_report_says_what_failed(world: World, su: Connection, app: Connection) -> None:
    """The caller need not read the log to know."""
    turn = three_sources(world)
    su.execute(WHOLE[0].inject)
    set_context(app, world.firm_id)
    assert world.on(app).finalize(turn) == {
        "message_id": str(turn),
        "finalized": True,
        "entries_written": 0,
        "gate": None,
        "failures": [{"stage": "assemble", "sqlstate": "42703"}],
    }


@pytest.mark.parametrize(
    "statement",
    [
        "alter table citeledger.work_product_fiduciary_gate drop column message_id cascade",
        "alter table citeledger.work_product_fiduciary_gate rename to away",
        "alter table citeledger.citation_ledger_entry drop column message_id cascade",
        "alter table citeledger.citation_ledger_entry rename to away",
        "alter table citeledger.finalize_failure drop column stage cascade",
        "alter table citeledger.finalize_failure rename to away",
        "alter table citeledger.chats drop column project_id cascade",
        "alter table citeledger.message_caselaw_citations rename to away",
        "alter function citeledger_private.recount(uuid, uuid[]) rename to away; " + STEP_BY_STEP,
        "alter function citeledger_private.entry_values(uuid, uuid[], uuid[]) rename to away; "
        + STEP_BY_STEP,
        "alter function citeledger_private.assemble_set(uuid, uuid[], uuid[]) rename to away; "
        + STEP_BY_STEP,
        "alter function citeledger_private.record_gates(uuid, uuid[]) rename to away; "
        + STEP_BY_STEP,
        "revoke all on citeledger.work_product_fiduciary_gate from citeledger_owner",
        "revoke all on citeledger.finalize_failure from citeledger_owner",
    ],
)
def test_whatever_is_broken_the_turn_is_committed(
    world: World, su: Connection, app: Connection, way: Callable[..., None], statement: str
) -> None:
    """Not even a table that is gone may cost an answer; nor is there a verdict that means
    nothing.
    """
    turn = three_sources(world)
    su.execute(statement)
    set_context(app, world.firm_id)
    with warnings_of(app) as warnings:
        way(app, turn)
        app.commit()
    assert is_finalized(su, turn)
    whole = "finalize_failure drop column" in statement
    assert warnings or whole
    if "fiduciary_gate" not in statement and not whole:
        assert verdict(su, turn) is None


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [
        ("alter table citeledger.work_product_fiduciary_gate rename to away", "42P01"),
        (
            "alter table citeledger.work_product_fiduciary_gate drop column message_id cascade",
            "42703",
        ),
        ("revoke all on citeledger.work_product_fiduciary_gate from citeledger_owner", "42501"),
    ],
)
def test_a_gate_that_is_gone_costs_no_ledger(
    world: World, su: Connection, app: Connection, statement: str, sqlstate: str
) -> None:
    """The two steps are guarded apart: a broken gate table must not keep the entries out."""
    turn = three_sources(world)
    su.execute(statement)
    set_context(app, world.firm_id)
    by_function(app, turn)
    app.commit()
    assert entries(su, turn) == 3
    assert ("gate", sqlstate) in failures(su, turn)
    assert "assemble" not in {stage for stage, _ in failures(su, turn)}


def test_an_old_verdict_that_cannot_be_withdrawn_fails_the_statement(
    world: World, su: Connection, app: Connection
) -> None:
    """The last resort: rather an error than a stale verdict. What was there before stays as
    it was.
    """
    turn = three_sources(world)
    set_context(app, world.firm_id)
    by_function(app, turn)
    app.commit()
    su.execute(raising("citeledger.work_product_fiduciary_gate", "update or delete", "53100")[0])
    set_context(app, world.firm_id)
    with pytest.raises(psycopg.errors.DiskFull):
        world.on(app).citation(turn, None)
    app.rollback()
    assert sources(su, turn) == 3
    assert_no_stale_verdict(su, world.firm_id)
    assert verdict(su, turn) == "fiduciary_grade"


def test_a_log_that_cannot_be_written_is_said_in_a_warning(
    world: World, su: Connection, app: Connection
) -> None:
    """Two faults at once: the step, and the table that should say so."""
    turn = three_sources(world)
    su.execute(WHOLE[0].inject)
    su.execute(raising("citeledger.finalize_failure", "insert", "53100")[0])
    set_context(app, world.firm_id)
    with warnings_of(app) as warnings:
        by_function(app, turn)
        app.commit()
    assert is_finalized(su, turn)
    assert verdict(su, turn) is None
    assert [w.message for w in warnings] == [
        "a failure of finalize could not be logged",
        "a turn could not be finalized: assemble failed",
    ]
    # The job finds it by the missing verdict.
    su.execute("drop trigger trap on citeledger.finalize_failure")
    su.execute(WHOLE[0].repair)
    assert settle_pending(app, world.firm_id) == 1
    assert_consistent(su, world.firm_id)


def test_turns_of_two_firms_in_one_statement_fail_apart(
    world: World, su: Connection, db: Database
) -> None:
    """A loader without a context finalizes both; the fault of one firm's turn is only its own."""
    other = World.make(su, "Another firm")
    good, bad = three_sources(world), three_sources(other)
    su.execute(
        f"alter table citeledger.work_product_fiduciary_gate add constraint trap"
        f" check (firm_id <> '{other.firm_id}')"
    )
    su.execute("update citeledger.messages set finalized_at = now()")
    assert verdict(su, good) == "fiduciary_grade"
    assert verdict(su, bad) is None
    assert failures(su, bad) == [("gate", "23514")]
    assert su.execute("select firm_id from citeledger.finalize_failure").fetchall() == [
        (other.firm_id,)
    ]


def fail_as_a_set(su: Connection, row_by_row: str | None) -> None:
    """Make an insert of more than one entry fail with class 23, and one of a single as told."""
    su.execute(
        f"""
        create function public.trap() returns trigger language plpgsql as $$
        begin
          if (select count(*) from new_rows) > 1 then
            raise exception using errcode = '23514', message = 'too many at once';
          elsif {row_by_row is not None} then
            raise exception using errcode = '{row_by_row or "00000"}', message = 'not one either';
          end if;
          return null;
        end
        $$;
        create trigger trap after insert on citeledger.citation_ledger_entry
          referencing new table as new_rows
          for each statement execute function public.trap()
        """
    )


def test_a_set_that_fails_though_no_row_does_costs_no_entry(
    world: World, su: Connection, app: Connection, way: Callable[..., None]
) -> None:
    """Row by row all goes well: then nothing is logged and the verdict is whole."""
    turn = three_sources(world)
    fail_as_a_set(su, None)
    set_context(app, world.firm_id)
    with warnings_of(app) as warnings:
        way(app, turn)
        app.commit()
    assert warnings == []
    assert entries(su, turn) == 3
    assert verdict(su, turn) == "fiduciary_grade"
    assert_consistent(su, world.firm_id)


def test_a_fallback_that_fails_otherwise_than_by_a_row_fails_the_step(
    world: World, su: Connection, app: Connection, way: Callable[..., None]
) -> None:
    """A full disk in the middle of the fallback is no fault of the row: no entry, no verdict."""
    turn = three_sources(world)
    fail_as_a_set(su, "53100")
    set_context(app, world.firm_id)
    way(app, turn)
    app.commit()
    assert is_finalized(su, turn)
    assert entries(su, turn) == 0
    assert verdict(su, turn) is None
    assert failures(su, turn) == [("assemble", "53100")]

    su.execute("drop trigger trap on citeledger.citation_ledger_entry")
    assert settle_pending(app, world.firm_id) == 1
    assert_consistent(su, world.firm_id)


def test_a_serialization_failure_in_the_fallback_passes(
    world: World, su: Connection, app: Connection, way: Callable[..., None]
) -> None:
    """40001 passes wherever it arises."""
    turn = three_sources(world)
    fail_as_a_set(su, "40001")
    set_context(app, world.firm_id)
    with pytest.raises(psycopg.errors.SerializationFailure):
        way(app, turn)
    app.rollback()
    assert not is_finalized(su, turn)


@pytest.mark.parametrize("finalized", [True, False], ids=["finalized", "open"])
def test_sources_are_recorded_though_the_gate_is_gone(
    world: World, su: Connection, app: Connection, finalized: bool
) -> None:
    """Nobody can read a verdict then, so none can be stale; the sources must not be lost."""
    turn = three_sources(world)
    set_context(app, world.firm_id)
    if finalized:
        by_function(app, turn)
    app.commit()
    su.execute("drop table citeledger.work_product_fiduciary_gate cascade")
    set_context(app, world.firm_id)
    world.on(app).citation(turn, None)
    app.commit()
    assert sources(su, turn) == 4
    logged = {stage for stage, _ in failures(su, turn)}
    assert ("withdraw" in logged) == finalized


@pytest.mark.parametrize(
    "statement",
    [
        "select citeledger.assemble_ledger_entries(%s)",
        "select citeledger.assemble_ledger_entries(%s), citeledger.finalize_turn(%s)",
    ],
)
def test_assembling_by_itself_raises_what_is_not_the_rows_fault(
    world: World, su: Connection, app: Connection, statement: str
) -> None:
    """assemble_ledger_entries has no guard: its caller hears of a full disk."""
    turn = three_sources(world)
    su.execute(WHOLE[5].inject)
    set_context(app, world.firm_id)
    with pytest.raises(psycopg.errors.DiskFull):
        app.execute(statement, (turn,) * statement.count("%s"))
    app.rollback()
    assert entries(su, turn) == 0
