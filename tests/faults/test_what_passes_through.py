"""What a guard cannot or must not catch, and the two calling patterns that keep the turn.

Query cancel and timeouts (57014), serialization failures (40001) and deferred constraints at
commit pass through. The answer survives when finalize is called in a savepoint, or in a transaction
of its own after the one that wrote the answer. docs/operations.md shows both patterns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import UUID

import psycopg
import pytest

from faults.injected import STEP_BY_STEP, raising
from faults.test_locks_in_steps import STEPS, cited_turn, context, stop_at_advisory_lock
from faults.turns import assert_consistent, failures, is_finalized, sources, verdict
from support.races import Race
from support.world import World, set_context

if TYPE_CHECKING:
    from conftest import Database

Connection = psycopg.Connection[Any]


@contextmanager
def stuck_step(su: Connection, racing: Race, table: str) -> Iterator[None]:
    """Hold a step of everybody else's finalize until the block ends."""
    stop_at_advisory_lock(su, table)
    holder = racing.session("postgres")
    holder.run("select pg_catalog.pg_advisory_xact_lock(2)")
    try:
        yield
    finally:
        holder.rollback()


def deferred_constraint(su: Connection) -> None:
    """Add what a firm might: a check of its own at commit. It refuses every entry."""
    su.execute(
        """
        create function public.refuse() returns trigger language plpgsql as $$
        begin
          raise exception using errcode = '23514', message = 'refused at commit';
        end
        $$;
        create constraint trigger refuse after insert on citeledger.citation_ledger_entry
          deferrable initially deferred
          for each row execute function public.refuse()
        """
    )


def write_turn(world: World, app: Connection) -> UUID:
    """Write an answer with its sources, as an application does."""
    own = world.on(app)
    turn = own.message(own.chat())
    own.citation(turn)
    own.caselaw(turn)
    return turn


def in_a_savepoint(
    world: World, app: Connection, finalize: Callable[[UUID], None], error: type[psycopg.Error]
) -> UUID:
    """Pattern 1: the answer and its finalize in one transaction, the finalize in a savepoint."""
    set_context(app, world.firm_id)
    turn = write_turn(world, app)
    with pytest.raises(error), app.transaction():
        finalize(turn)
    app.commit()
    return turn


def in_its_own_transaction(
    world: World, app: Connection, finalize: Callable[[UUID], None], error: type[psycopg.Error]
) -> UUID:
    """Pattern 2: the answer is committed first, then finalized."""
    set_context(app, world.firm_id)
    turn = write_turn(world, app)
    app.commit()
    with pytest.raises(error), app.transaction():
        set_context(app, world.firm_id)
        finalize(turn)
    return turn


PATTERNS = {"savepoint": in_a_savepoint, "own transaction": in_its_own_transaction}


@pytest.fixture(params=list(PATTERNS.values()), ids=list(PATTERNS))
def pattern(request: pytest.FixtureRequest) -> Callable[..., UUID]:
    found: Callable[..., UUID] = request.param
    return found


def assert_kept_and_finalizable(world: World, su: Connection, app: Connection, turn: UUID) -> None:
    """The answer is there, unfinalized, without traces of the attempt; finalizing later works."""
    assert sources(su, turn) == 2
    assert not is_finalized(su, turn)
    assert verdict(su, turn) is None
    assert failures(su, turn) == []
    set_context(app, world.firm_id)
    assert world.on(app).finalize(turn)["gate"]["gate_status"] == "fiduciary_grade"
    app.commit()
    assert_consistent(su, world.firm_id)


def finalizing(app: Connection, *before: str) -> Callable[[UUID], None]:
    """Give a finalize that sets something first."""

    def finalize(turn: UUID) -> None:
        for statement in before:
            app.execute(statement)
        app.execute("select citeledger.finalize_turn(%s)", (turn,))

    return finalize


@pytest.mark.parametrize("table", STEPS.values(), ids=STEPS)
def test_a_statement_timeout_passes_and_either_pattern_keeps_the_turn(
    world: World,
    su: Connection,
    app: Connection,
    racing: Race,
    pattern: Callable[..., UUID],
    table: str,
) -> None:
    """57014: a guard that caught it would let a statement run past its limit."""
    with stuck_step(su, racing, table):
        turn = pattern(
            world,
            app,
            finalizing(app, "set local statement_timeout = '50ms'"),
            psycopg.errors.QueryCanceled,
        )
    assert_kept_and_finalizable(world, su, app, turn)


@pytest.mark.parametrize("table", STEPS.values(), ids=STEPS)
def test_a_query_cancel_passes_and_a_transaction_of_its_own_keeps_the_turn(
    world: World, su: Connection, app: Connection, racing: Race, table: str
) -> None:
    """57014 again, from outside: whoever cancels wants the statement to end."""
    turn = cited_turn(world)
    with stuck_step(su, racing, table):
        session = racing.session("t_app", before=context(world))
        session.start("select citeledger.finalize_turn(%s)", (turn,))
        session.blocked()
        su.execute("select pg_catalog.pg_cancel_backend(%s)", (session.pid,))
        assert isinstance(session.error(), psycopg.errors.QueryCanceled)
        session.rollback()
    assert_kept_and_finalizable(world, su, app, turn)


@pytest.mark.parametrize(
    ("table", "event"),
    [
        ("citation_ledger_entry", "insert"),
        ("work_product_fiduciary_gate", "insert"),
        ("work_product_fiduciary_gate", "delete"),
        ("finalize_failure", "insert"),
        ("finalize_failure", "delete"),
    ],
)
@pytest.mark.parametrize("by_steps", [False, True], ids=["at once", "step by step"])
def test_a_serialization_failure_passes_and_either_pattern_keeps_the_turn(
    world: World,
    su: Connection,
    app: Connection,
    pattern: Callable[..., UUID],
    by_steps: bool,
    table: str,
    event: str,
) -> None:
    """40001 says that the whole transaction must run again, which only its owner can do."""
    if by_steps:
        su.execute(STEP_BY_STEP)
    inject, repair = raising(f"citeledger.{table}", event, "40001")
    su.execute(inject)
    if event == "delete" or table == "finalize_failure":
        # Reached only while a failure is being handled.
        su.execute(
            "alter table citeledger.work_product_fiduciary_gate add constraint trap"
            " check (total_assertions < 0)"
        )
    if event == "delete":
        # There must be a row for a row trigger to fire.
        su.execute(repair)
        statement_level = inject.replace("for each row", "for each statement")
        su.execute(statement_level)
    turn = pattern(world, app, finalizing(app), psycopg.errors.SerializationFailure)
    su.execute(repair)
    su.execute("alter table citeledger.work_product_fiduciary_gate drop constraint if exists trap")
    assert_kept_and_finalizable(world, su, app, turn)


@pytest.mark.parametrize("level", ["REPEATABLE_READ", "SERIALIZABLE"])
def test_a_real_serialization_failure_passes_and_running_again_helps(
    db: Database, world: World, su: Connection, app: Connection, level: str
) -> None:
    """The message changed after the transaction's snapshot: only a new snapshot can finalize it."""
    turn = cited_turn(world)
    with db.connect("t_app") as other:
        other.isolation_level = psycopg.IsolationLevel[level]
        set_context(other, world.firm_id)
        other.execute("select from citeledger.messages").fetchall()
        set_context(app, world.firm_id)
        app.execute("update citeledger.messages set content = 'More.' where id = %s", (turn,))
        app.commit()
        with pytest.raises(psycopg.errors.SerializationFailure):
            other.execute("select citeledger.finalize_turn(%s)", (turn,))
        other.rollback()
    assert_kept_and_finalizable(world, su, app, turn)


def test_a_deferred_constraint_fails_the_commit(
    world: World, su: Connection, app: Connection
) -> None:
    """No guard is there any more at commit: this is the trap that the patterns are for."""
    deferred_constraint(su)
    set_context(app, world.firm_id)
    turn = write_turn(world, app)
    assert world.on(app).finalize(turn)["failures"] == []
    with pytest.raises(psycopg.errors.CheckViolation):
        app.commit()
    assert su.execute("select from citeledger.messages where id = %s", (turn,)).rowcount == 0


def test_a_deferred_constraint_made_immediate_in_a_savepoint_keeps_the_turn(
    world: World, su: Connection, app: Connection
) -> None:
    """Pattern 1 for what waits until commit: have it checked before the savepoint is released."""
    deferred_constraint(su)

    def finalize(turn: UUID) -> None:
        app.execute("select citeledger.finalize_turn(%s)", (turn,))
        app.execute("set constraints all immediate")

    turn = in_a_savepoint(world, app, finalize, psycopg.errors.CheckViolation)
    su.execute("drop trigger refuse on citeledger.citation_ledger_entry")
    assert_kept_and_finalizable(world, su, app, turn)


def test_a_deferred_constraint_in_a_transaction_of_its_own_keeps_the_turn(
    world: World, su: Connection, app: Connection
) -> None:
    """Pattern 2: the commit that fails is the finalize's only."""
    deferred_constraint(su)
    turn = in_its_own_transaction(world, app, finalizing(app), psycopg.errors.CheckViolation)
    su.execute("drop trigger refuse on citeledger.citation_ledger_entry")
    assert_kept_and_finalizable(world, su, app, turn)


@pytest.mark.parametrize("sqlstate", ["57014", "40001"])
def test_in_the_job_too(world: World, su: Connection, app: Connection, sqlstate: str) -> None:
    """finalize_turns and finalize_pending have no other rules: the job's transaction fails
    whole.
    """
    turns = [cited_turn(world) for _ in range(3)]
    inject, repair = raising("citeledger.citation_ledger_entry", "insert", sqlstate)
    su.execute(inject)
    set_context(app, world.firm_id)
    with pytest.raises(psycopg.OperationalError) as caught, app.transaction():
        app.execute("select citeledger.finalize_turns(%s)", (turns,))
    assert caught.value.sqlstate == sqlstate
    app.commit()
    su.execute(repair)
    for turn in turns:
        assert_kept_and_finalizable(world, su, app, turn)
