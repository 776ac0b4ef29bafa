"""Above read committed a statement cannot see what was committed while it waited.

So no verdict is recorded there: it is logged (stage isolation, 25000), and finalize_pending, under
read committed, does it. What must never happen is a stale verdict that stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import psycopg
import pytest

from concurrency.test_sources_and_finalize import (
    DELETE,
    DOWNGRADE,
    FINALIZE,
    INSERT,
    parametrized,
)
from faults.turns import (
    assert_consistent,
    assert_no_stale_verdict,
    entries,
    failures,
    is_finalized,
    settle_pending,
    sources,
    verdict,
)
from support.races import Session
from support.world import World

Connection = psycopg.Connection[Any]
Opened = Callable[..., Session]
LEVELS = [psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE]
LEVEL = pytest.mark.parametrize("level", LEVELS, ids=lambda v: v.name.lower().replace("_", " "))
LOGGED = [("isolation", "25000")]
CHANGES = INSERT | {f"{k} downgraded": v for k, v in DOWNGRADE.items()}


@pytest.fixture
def turn(world: World) -> UUID:
    """Give an open turn with one source of each kind, all verified."""
    identifier = world.turn(world.project())
    world.citation(identifier)
    world.caselaw(identifier)
    world.tool(identifier)
    return identifier


def look(session: Session) -> None:
    """Take the transaction's snapshot."""
    session.run("select count(*) from citeledger.messages")


@LEVEL
@parametrized("finalize", FINALIZE)
def test_finalize_records_no_verdict_and_the_job_does(
    world: World,
    su: Connection,
    opened: Opened,
    job: Connection,
    turn: UUID,
    finalize: str,
    level: psycopg.IsolationLevel,
) -> None:
    session = opened(isolation=level)
    session.run(finalize, (turn,))
    session.commit()
    assert is_finalized(su, turn)
    assert verdict(su, turn) is None
    assert failures(su, turn) == LOGGED
    assert settle_pending(job, world.firm_id) == 1
    assert failures(su, turn) == []
    assert verdict(su, turn) == "fiduciary_grade"
    assert_consistent(su, world.firm_id)


@LEVEL
def test_the_report_says_why(
    world: World, opened: Opened, turn: UUID, level: psycopg.IsolationLevel
) -> None:
    assert opened(isolation=level).value(FINALIZE["finalize_turn"], (turn,)) == {
        "message_id": str(turn),
        "finalized": True,
        "entries_written": 0,
        "gate": None,
        "failures": [{"stage": "isolation", "sqlstate": "25000"}],
    }


@LEVEL
def test_the_gate_alone_records_no_verdict_either(
    world: World, su: Connection, opened: Opened, turn: UUID, level: psycopg.IsolationLevel
) -> None:
    session = opened(isolation=level)
    assert session.value("select citeledger.compute_and_record_gate(%s) is null", (turn,))
    session.commit()
    assert verdict(su, turn) is None
    assert failures(su, turn) == LOGGED


@LEVEL
@parametrized("change", CHANGES)
def test_a_late_change_of_a_judged_turn_withdraws_the_verdict(
    world: World,
    su: Connection,
    opened: Opened,
    job: Connection,
    turn: UUID,
    change: str,
    level: psycopg.IsolationLevel,
) -> None:
    done = opened()
    done.run(FINALIZE["finalize_turn"], (turn,))
    done.commit()
    session = opened(isolation=level)
    session.run(change, (turn,))
    session.commit()
    assert verdict(su, turn) is None
    assert failures(su, turn) == LOGGED
    assert settle_pending(job, world.firm_id) == 1
    assert_consistent(su, world.firm_id)


@LEVEL
@parametrized("change", CHANGES)
def test_a_turn_that_was_finalized_after_the_snapshot_refuses_the_change(
    world: World,
    su: Connection,
    opened: Opened,
    turn: UUID,
    change: str,
    level: psycopg.IsolationLevel,
) -> None:
    """The snapshot still shows the turn open: 40001, and the transaction must run again."""
    session = opened(isolation=level)
    look(session)
    done = opened()
    done.run(FINALIZE["finalize_turn"], (turn,))
    done.commit()
    session.start(change, (turn,))
    assert isinstance(session.error(), psycopg.errors.SerializationFailure)
    session.rollback()
    assert_consistent(su, world.firm_id)


def never_stale(
    world: World, su: Connection, session: Session, job: Connection, turn: UUID
) -> None:
    """End the session's transaction; its change was refused, or no stale verdict stays."""
    error = session.error()
    if error is None:
        session.commit()
    else:
        assert isinstance(error, psycopg.errors.SerializationFailure), error
        session.rollback()
    assert_no_stale_verdict(su, world.firm_id)
    settle_pending(job, world.firm_id)
    assert_no_stale_verdict(su, world.firm_id)


@LEVEL
@parametrized("change", CHANGES | {f"{k} deleted": v for k, v in DELETE.items()})
def test_a_verdict_recorded_on_an_open_turn_after_the_snapshot_does_not_go_stale(
    world: World,
    su: Connection,
    opened: Opened,
    job: Connection,
    turn: UUID,
    change: str,
    level: psycopg.IsolationLevel,
) -> None:
    """compute_and_record_gate leaves the message's row as it was, and the verdict is not
    visible.
    """
    session = opened(isolation=level)
    look(session)
    done = opened()
    done.run("select citeledger.assemble_ledger_entries(%s)", (turn,))
    done.run("select citeledger.compute_and_record_gate(%s)", (turn,))
    done.commit()
    session.start(change, (turn,))
    never_stale(world, su, session, job, turn)


@LEVEL
@parametrized("change", CHANGES)
def test_a_verdict_that_the_job_recorded_after_the_snapshot_does_not_go_stale(
    world: World,
    su: Connection,
    opened: Opened,
    job: Connection,
    turn: UUID,
    change: str,
    level: psycopg.IsolationLevel,
) -> None:
    """The turn was finalized without a verdict; the job's verdict is not visible, so not
    removed.
    """
    before = opened(isolation=psycopg.IsolationLevel.REPEATABLE_READ)
    before.run(FINALIZE["finalize_turn"], (turn,))
    before.commit()
    session = opened(isolation=level)
    look(session)
    assert settle_pending(job, world.firm_id) == 1
    session.start(change, (turn,))
    never_stale(world, su, session, job, turn)


@LEVEL
def test_a_verdict_that_changed_after_the_snapshot_refuses_the_change(
    world: World, su: Connection, opened: Opened, turn: UUID, level: psycopg.IsolationLevel
) -> None:
    """The old verdict is visible and was replaced: withdrawing it is a serialization failure."""
    done = opened()
    done.run(FINALIZE["finalize_turn"], (turn,))
    done.commit()
    session = opened(isolation=level)
    look(session)
    late = opened()
    late.run(INSERT["citation"], (turn,))
    late.commit()
    session.start(INSERT["caselaw"], (turn,))
    assert isinstance(session.error(), psycopg.errors.SerializationFailure)
    session.rollback()
    assert sources(su, turn) == entries(su, turn) == 4
    assert_consistent(su, world.firm_id)


@LEVEL
def test_assembling_from_an_old_snapshot_makes_no_ledger_go_back(
    world: World,
    su: Connection,
    opened: Opened,
    job: Connection,
    turn: UUID,
    level: psycopg.IsolationLevel,
) -> None:
    """An entry that lags behind its source, a snapshot of both, then a verdict on the new
    source.
    """
    first = opened()
    first.run(DOWNGRADE["citation"], (turn,))
    first.run("select citeledger.assemble_ledger_entries(%s)", (turn,))
    first.run(
        "update citeledger.message_citations set verified = true where message_id = %s", (turn,)
    )
    first.commit()
    session = opened(isolation=level)
    look(session)
    again = opened()
    again.run(DOWNGRADE["citation"], (turn,))
    again.run("select citeledger.compute_and_record_gate(%s)", (turn,))
    again.commit()
    session.start("select citeledger.assemble_ledger_entries(%s)", (turn,))
    never_stale(world, su, session, job, turn)


@LEVEL
def test_an_old_snapshot_and_a_finalize_in_it_wait_for_the_job(
    world: World,
    su: Connection,
    opened: Opened,
    job: Connection,
    turn: UUID,
    level: psycopg.IsolationLevel,
) -> None:
    """A source committed after the snapshot is missing from what this transaction can see."""
    session = opened(isolation=level)
    look(session)
    other = opened()
    other.run(INSERT["citation"], (turn,))
    other.commit()
    session.run(FINALIZE["finalize_turn"], (turn,))
    session.commit()
    assert verdict(su, turn) is None
    assert failures(su, turn) == LOGGED
    assert settle_pending(job, world.firm_id) == 1
    assert verdict(su, turn) == "flagged"
    assert_consistent(su, world.firm_id)
