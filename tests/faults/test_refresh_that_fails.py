"""An entry that cannot be refreshed is worse than none: it would go on saying what is past."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from support.world import World, set_context


def test_an_entry_that_cannot_be_refreshed_is_not_left_standing(
    su: psycopg.Connection[Any], app: psycopg.Connection[Any], world: World
) -> None:
    turn = world.turn()
    citation = world.citation(turn, "exact_match")
    other = world.citation(turn, "exact_match")
    set_context(app, world.firm_id)
    assert world.on(app).finalize(turn)["gate"]["gate_status"] == "fiduciary_grade"
    app.commit()

    # From now on the ledger refuses what the source is about to say.
    su.execute(
        "alter table citeledger.citation_ledger_entry add constraint injected"
        " check (verification_status <> 'unverified') not valid"
    )
    set_context(app, world.firm_id)
    app.execute(
        "update citeledger.message_citations set verified = false, verification_method = 'failed'"
        " where id = %s",
        (citation,),
    )
    app.commit()

    verdict = su.execute(
        "select g.gate_status, g.pass_count, g.fail_count"
        " from citeledger.work_product_fiduciary_gate as g where g.message_id = %s",
        (turn,),
    ).fetchone()
    assert verdict == ("flagged", 1, 1)
    entries = su.execute(
        "select e.message_citation_id from citeledger.citation_ledger_entry as e"
        " where e.message_id = %s",
        (turn,),
    ).fetchall()
    assert entries == [(other,)]
    kept = su.execute(
        "select r.verification_status from citeledger.citation_ledger_entry_revision as r"
        " where r.message_id = %s",
        (turn,),
    ).fetchall()
    assert kept == [("exact_match",)]
    logged = su.execute(
        "select f.stage, f.sqlstate from citeledger.finalize_failure as f where f.message_id = %s",
        (turn,),
    ).fetchall()
    assert logged == [("assemble_row", "23514")]

    # Once the fault is gone, the job brings the entry back, and what it says is true.
    su.execute("alter table citeledger.citation_ledger_entry drop constraint injected")
    set_context(app, world.firm_id)
    app.execute("select citeledger.finalize_pending()")
    app.commit()
    verdict = su.execute(
        "select g.gate_status, g.pass_count, g.fail_count"
        " from citeledger.work_product_fiduciary_gate as g where g.message_id = %s",
        (turn,),
    ).fetchone()
    assert verdict == ("flagged", 1, 1)
    assert su.execute("select from citeledger.finalize_failure").fetchall() == []


def test_nor_above_read_committed_does_a_failing_refresh_break_the_statement(
    su: psycopg.Connection[Any], app: psycopg.Connection[Any], world: World
) -> None:
    turn = world.turn()
    citation = world.citation(turn, "exact_match")
    set_context(app, world.firm_id)
    world.on(app).finalize(turn)
    app.commit()

    su.execute(
        "alter table citeledger.citation_ledger_entry add constraint injected"
        " check (verification_status <> 'unverified') not valid"
    )
    app.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    set_context(app, world.firm_id)
    app.execute(
        "update citeledger.message_citations set verified = false, verification_method = 'failed'"
        " where id = %s",
        (citation,),
    )
    app.commit()

    assert not su.execute("select from citeledger.work_product_fiduciary_gate").fetchall()
    logged = su.execute(
        "select f.stage, f.sqlstate from citeledger.finalize_failure as f order by f.stage"
    ).fetchall()
    assert logged == [("assemble", "23514"), ("isolation", "25000")]


def test_a_serialization_failure_of_that_refresh_passes(
    su: psycopg.Connection[Any], app: psycopg.Connection[Any], world: World
) -> None:
    turn = world.turn()
    world.citation(turn, "exact_match")
    set_context(app, world.firm_id)
    world.on(app).finalize(turn)
    app.commit()

    su.execute(
        "create function public.injected() returns trigger language plpgsql as"
        " $$ begin raise exception using errcode = '40001'; end $$"
    )
    su.execute(
        "create trigger injected before update on citeledger.citation_ledger_entry"
        " for each row execute function public.injected()"
    )
    app.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    set_context(app, world.firm_id)
    with pytest.raises(psycopg.errors.SerializationFailure):
        app.execute("update citeledger.message_citations set verified = false")
    app.rollback()


def test_a_gate_after_a_failure_catches_the_ledger_up_first(
    su: psycopg.Connection[Any], app: psycopg.Connection[Any], world: World
) -> None:
    """A turn was finalized where no ledger could be had: the gate must not count it as failed."""
    turn = world.turn()
    world.citation(turn, "exact_match")
    app.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    set_context(app, world.firm_id)
    assert world.on(app).finalize(turn)["gate"] is None
    app.commit()
    assert not su.execute("select from citeledger.citation_ledger_entry").fetchall()

    app.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    set_context(app, world.firm_id)
    verdict = app.execute(
        "select g.gate_status, g.pass_count, g.fail_count"
        " from citeledger.compute_and_record_gate(%s) as g",
        (turn,),
    ).fetchone()
    app.commit()
    assert verdict == ("fiduciary_grade", 1, 0)
    assert len(su.execute("select from citeledger.citation_ledger_entry").fetchall()) == 1
