"""Deadlocks and lock timeouts: inside a step, and while the message itself is awaited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import psycopg
import pytest

from faults.turns import (
    assert_consistent,
    assert_no_stale_verdict,
    failures,
    is_finalized,
    settle_pending,
    sources,
    verdict,
    warnings_of,
)
from support.races import Race, Session
from support.world import World, set_context

if TYPE_CHECKING:
    from conftest import Database

Connection = psycopg.Connection[Any]

STEPS = {"assemble": "citation_ledger_entry", "gate": "work_product_fiduciary_gate"}


def context(world: World) -> Any:
    return lambda connection: set_context(connection, world.firm_id)


def stop_at_advisory_lock(su: Connection, table: str, key: int = 2) -> None:
    """Make every insert into a table wait for an advisory lock."""
    su.execute(
        f"""
        create function public.stop() returns trigger language plpgsql as $$
        begin
          perform pg_catalog.pg_advisory_xact_lock({key});
          return new;
        end
        $$;
        create trigger stop before insert on citeledger.{table}
          for each row execute function public.stop()
        """
    )


def cited_turn(world: World) -> UUID:
    turn = world.turn(world.project())
    world.citation(turn)
    world.caselaw(turn)
    return turn


@pytest.mark.parametrize(("stage", "table"), STEPS.items(), ids=STEPS)
def test_a_deadlock_inside_a_step_is_a_step_that_failed(
    db: Database, world: World, su: Connection, racing: Race, stage: str, table: str
) -> None:
    """40P01 ends the step's subtransaction, not the turn's transaction."""
    turn = cited_turn(world)
    stop_at_advisory_lock(su, table)
    # The app finds the deadlock at once, the other session never: so it is the app's.
    su.execute(f"alter database {db.name} set deadlock_timeout = '10ms'")
    other = racing.session("postgres")
    other.run("set local deadlock_timeout = '60s'")
    app = racing.session("t_app", before=context(world))
    app.run("select pg_catalog.pg_advisory_xact_lock(1)")
    other.run("select pg_catalog.pg_advisory_xact_lock(2)")
    other.start("select pg_catalog.pg_advisory_xact_lock(1)")
    other.blocked()

    report = app.value("select citeledger.finalize_turn(%s)", (turn,))
    assert report["finalized"]
    assert report["gate"] is None
    assert report["failures"] == [{"stage": stage, "sqlstate": "40P01"}]
    app.commit()
    other.result()
    other.rollback()
    assert is_finalized(su, turn)
    assert verdict(su, turn) is None
    assert failures(su, turn) == [(stage, "40P01")]
    with db.connect("t_app") as job:
        assert settle_pending(job, world.firm_id) == 1
    assert_consistent(su, world.firm_id)


@pytest.mark.parametrize("mode", ["share", "access exclusive"])
@pytest.mark.parametrize(("stage", "table"), STEPS.items(), ids=STEPS)
def test_a_lock_timeout_inside_a_step_is_a_step_that_failed(
    db: Database, world: World, su: Connection, racing: Race, stage: str, table: str, mode: str
) -> None:
    """Somebody builds an index, or alters the table, while turns are finalized."""
    turn = cited_turn(world)
    other = racing.session("postgres")
    other.run(f"lock table citeledger.{table} in {mode} mode")
    with db.connect("t_app") as app:
        set_context(app, world.firm_id)
        app.execute("set local lock_timeout = '20ms'")
        with warnings_of(app) as warnings:
            report = world.on(app).finalize(turn)
        assert report["finalized"]
        assert report["gate"] is None
        app.commit()
    other.rollback()
    assert warnings
    assert is_finalized(su, turn)
    assert verdict(su, turn) is None
    assert (stage, "55P03") in failures(su, turn)
    assert {stage for stage, _ in failures(su, turn)} <= {stage, "withdraw"}
    with db.connect("t_app") as job:
        assert settle_pending(job, world.firm_id) == 1
    assert_consistent(su, world.firm_id)


def test_an_old_verdict_that_is_locked_is_not_left_stale(
    db: Database, world: World, su: Connection, racing: Race
) -> None:
    """The verdict can be read but not removed: the statement fails, and says why."""
    turn = cited_turn(world)
    with db.connect("t_app") as app:
        set_context(app, world.firm_id)
        world.on(app).finalize(turn)
        app.commit()
        other = racing.session("postgres")
        other.run("lock table citeledger.work_product_fiduciary_gate in share mode")
        set_context(app, world.firm_id)
        app.execute("set local lock_timeout = '20ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            app.execute(
                "update citeledger.message_citations set verified = false where message_id = %s",
                (turn,),
            )
        app.rollback()
    other.rollback()
    assert verdict(su, turn) == "fiduciary_grade"
    assert_consistent(su, world.firm_id)


LATE = {
    "inserted": "insert into citeledger.message_citations (message_id, source_text)"
    " values (%s, 'a quote')",
    "downgraded": "update citeledger.message_citations set verified = false where message_id = %s",
    "deleted": "delete from citeledger.message_caselaw_citations where message_id = %s",
}


@pytest.mark.parametrize("finalized", [True, False], ids=["finalized", "only judged"])
@pytest.mark.parametrize("statement", LATE.values(), ids=LATE)
@pytest.mark.parametrize("fault", ["locked", "revoked"])
def test_a_verdict_that_cannot_be_read_for_a_while_is_not_left_stale(
    db: Database,
    world: World,
    su: Connection,
    racing: Race,
    fault: str,
    statement: str,
    finalized: bool,
) -> None:
    """Unreadable now is not unreadable for ever: the late change fails, or the verdict
    follows it.
    """
    turn = cited_turn(world)
    with db.connect("t_app") as app:
        set_context(app, world.firm_id)
        app.execute("select citeledger.assemble_ledger_entries(%s)", (turn,))
        app.execute("select citeledger.compute_and_record_gate(%s)", (turn,))
        if finalized:
            world.on(app).finalize(turn)
        app.commit()
        gate = "citeledger.work_product_fiduciary_gate"
        other = racing.session("postgres")
        if fault == "locked":
            other.run(f"lock table {gate} in access exclusive mode")
        else:
            su.execute(f"revoke all on {gate} from citeledger_owner")
        set_context(app, world.firm_id)
        app.execute("set local lock_timeout = '20ms'")
        try:
            app.execute(statement, (turn,))
            app.commit()
        except psycopg.Error:
            app.rollback()
        other.rollback()
        su.execute(f"grant all on {gate} to citeledger_owner")
        assert_no_stale_verdict(su, world.firm_id)
        settle_pending(app, world.firm_id)
    assert_consistent(su, world.firm_id)


@pytest.mark.parametrize("sqlstate", ["53200", "54001", "XX001"])
@pytest.mark.parametrize("change", ["inserted", "downgraded"])
def test_a_verdict_of_which_nothing_can_be_told_is_not_left(
    world: World, su: Connection, app: Connection, change: str, sqlstate: str
) -> None:
    """As with a full table of locks: neither can the verdict be withdrawn, nor be looked for."""
    turn = cited_turn(world)
    set_context(app, world.firm_id)
    world.on(app).finalize(turn)
    app.commit()
    gate = "citeledger.work_product_fiduciary_gate"
    su.execute(
        f"""
        create function public.is_told() returns boolean language plpgsql as $$
        begin
          raise exception using errcode = '{sqlstate}', message = 'not now';
        end
        $$;
        create policy for_now on {gate} as restrictive using (public.is_told());
        """
    )
    set_context(app, world.firm_id)
    with pytest.raises(psycopg.Error) as raised:
        app.execute(LATE[change], (turn,))
    assert raised.value.sqlstate == sqlstate
    app.rollback()
    su.execute(f"drop policy for_now on {gate}")
    assert verdict(su, turn) == "fiduciary_grade"
    assert_consistent(su, world.firm_id)


@pytest.mark.parametrize(
    ("setting", "value", "sqlstate"),
    [("transaction_read_only", "on", "25006"), ("row_security", "off", "42501")],
)
def test_a_statement_that_shuts_the_log_fails(
    world: World, su: Connection, app: Connection, setting: str, value: str, sqlstate: str
) -> None:
    """A turn that is finalized with neither a verdict nor a word in the log would be its doing."""
    turn = cited_turn(world)
    set_context(app, world.firm_id)
    with pytest.raises(psycopg.Error) as raised:
        app.execute(
            "update citeledger.messages"
            " set finalized_at = now(), content = set_config(%s, %s, true) where id = %s",
            (setting, value, turn),
        )
    assert raised.value.sqlstate == sqlstate
    app.rollback()
    assert not is_finalized(su, turn)
    assert_consistent(su, world.firm_id)


def busy_message(racing: Race, turn: UUID, strength: str) -> Session:
    """Let another session hold the row of a message."""
    other = racing.session("postgres")
    other.run(f"select from citeledger.messages where id = %s for {strength}", (turn,))
    return other


@pytest.mark.parametrize("setting", ["20ms", "1ms"])
def test_a_busy_message_is_reported_and_the_transaction_goes_on(
    db: Database, world: World, su: Connection, racing: Race, setting: str
) -> None:
    """finalize_turn waited for the message in vain: not finalized, logged, nothing broken."""
    turn = cited_turn(world)
    other = busy_message(racing, turn, "no key update")
    with db.connect("t_app") as app:
        set_context(app, world.firm_id)
        note = world.on(app).message(world.on(app).chat(), role="user")
        app.execute(f"set local lock_timeout = '{setting}'")
        with warnings_of(app) as warnings:
            report = world.on(app).finalize(turn)
        assert report == {
            "message_id": str(turn),
            "finalized": False,
            "entries_written": 0,
            "gate": None,
            "failures": [{"stage": "lock", "sqlstate": "55P03"}],
        }
        assert [w.message for w in warnings] == ["a turn could not be finalized: lock failed"]
        assert app.execute("select 1").fetchone() == (1,)
        app.commit()
        other.rollback()
        assert not is_finalized(su, turn)
        assert not is_finalized(su, note), "what the transaction wrote before is there"
        assert failures(su, turn) == [("lock", "55P03")]

        set_context(app, world.firm_id)
        assert world.on(app).finalize(turn)["failures"] == []
        app.commit()
    assert_consistent(su, world.firm_id)


def test_a_message_that_is_being_deleted_is_busy_too(
    db: Database, world: World, su: Connection, racing: Race
) -> None:
    """Its row is locked so hard that not even the log can refer to it: then the warnings say so."""
    turn = cited_turn(world)
    other = racing.session("postgres")
    other.run("delete from citeledger.messages where id = %s", (turn,))
    with db.connect("t_app") as app:
        set_context(app, world.firm_id)
        app.execute("set local lock_timeout = '20ms'")
        with warnings_of(app) as warnings:
            report = world.on(app).finalize(turn)
        assert report["failures"] == [{"stage": "lock", "sqlstate": "55P03"}]
        assert {w.message for w in warnings} == {
            "a failure of finalize could not be logged",
            "a turn could not be finalized: lock failed",
        }
        app.commit()
    other.rollback()
    assert not is_finalized(su, turn)


def test_a_deadlock_over_the_message_is_reported_too(
    db: Database, world: World, su: Connection, racing: Race
) -> None:
    """The other session holds the message and waits for the app: the app gives way."""
    turn = cited_turn(world)
    su.execute(f"alter database {db.name} set deadlock_timeout = '10ms'")
    other = racing.session("postgres")
    other.run("set local deadlock_timeout = '60s'")
    app = racing.session("t_app", before=context(world))
    app.run("select pg_catalog.pg_advisory_xact_lock(1)")
    other.run("select from citeledger.messages where id = %s for no key update", (turn,))
    other.start("select pg_catalog.pg_advisory_xact_lock(1)")
    other.blocked()
    report = app.value("select citeledger.finalize_turn(%s)", (turn,))
    assert not report["finalized"]
    assert report["failures"] == [{"stage": "lock", "sqlstate": "40P01"}]
    app.commit()
    other.result()
    other.rollback()
    assert failures(su, turn) == [("lock", "40P01")]


@pytest.mark.parametrize("mode", ["share", "access exclusive"])
def test_a_locked_table_of_messages_is_a_busy_message(
    db: Database, world: World, su: Connection, racing: Race, mode: str
) -> None:
    """An index is built on messages: finalize_turn gives up like for a busy row, and raises
    nothing.
    """
    turn = cited_turn(world)
    other = racing.session("postgres")
    other.run(f"lock table citeledger.messages in {mode} mode")
    with db.connect("t_app") as app:
        set_context(app, world.firm_id)
        app.execute("set local lock_timeout = '20ms'")
        report = world.on(app).finalize(turn)
        assert report["failures"] == [{"stage": "lock", "sqlstate": "55P03"}]
        assert not report["finalized"]
        app.commit()
    other.rollback()
    with db.connect("t_app") as app:
        set_context(app, world.firm_id)
        world.on(app).finalize(turn)
        app.commit()
    assert_consistent(su, world.firm_id)


@pytest.mark.parametrize(
    "statement",
    [
        "select citeledger.finalize_turns(array[%s])",
        "update citeledger.messages set finalized_at = now() where id = %s",
        "select citeledger.assemble_ledger_entries(%s)",
        "select citeledger.compute_and_record_gate(%s)",
        "insert into citeledger.message_citations (message_id, source_text) values (%s, 'q')",
    ],
)
def test_what_is_no_finalize_turn_says_that_the_message_is_busy(
    db: Database, world: World, su: Connection, racing: Race, statement: str
) -> None:
    """These wait for their locks outside of a guard, as documented: a savepoint keeps the turn."""
    turn = cited_turn(world)
    other = busy_message(racing, turn, "no key update")
    with db.connect("t_app") as app:
        set_context(app, world.firm_id)
        chat = world.on(app).chat()
        app.execute("set local lock_timeout = '20ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable), app.transaction():
            app.execute(statement, (turn,))
        assert app.execute("select from citeledger.chats where id = %s", (chat,)).rowcount == 1
        app.commit()
    other.rollback()
    assert sources(su, turn) == 2
    assert_no_stale_verdict(su, world.firm_id)
    # The same statement again, once the message is free.
    with db.connect("t_app") as app:
        set_context(app, world.firm_id)
        app.execute("select citeledger.assemble_ledger_entries(%s)", (turn,))
        app.execute(statement, (turn,))
        app.commit()
    assert_consistent(su, world.firm_id)


def test_the_job_steps_over_a_busy_turn(
    db: Database, world: World, su: Connection, racing: Race
) -> None:
    """finalize_pending waits for nobody: it does the free ones and leaves the busy one for
    later.
    """
    su.execute("alter table citeledger.messages disable trigger messages_finalize_inserted")
    busy, free = (world.turn(finalized_at="2026-01-01") for _ in range(2))
    su.execute("alter table citeledger.messages enable trigger messages_finalize_inserted")
    other = busy_message(racing, busy, "no key update")
    with db.connect("t_app") as app:
        assert settle_pending(app, world.firm_id) == 1
        assert verdict(su, free) == "fiduciary_grade"
        assert verdict(su, busy) is None
        other.rollback()
        assert settle_pending(app, world.firm_id) == 1
    assert_consistent(su, world.firm_id)
