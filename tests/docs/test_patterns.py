"""The calling patterns of docs/guide.md keep the turn when its finalize cannot be kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from support.world import World, set_context

if TYPE_CHECKING:
    from uuid import UUID

    from conftest import Database

SLOW = """
create function public.slow() returns trigger language plpgsql as $$
begin
  perform pg_catalog.pg_sleep(20);
  return null;
end
$$;
create trigger slow after insert on citeledger.citation_ledger_entry
  for each statement execute function public.slow();
"""

DEFERRED = """
create function public.refuse() returns trigger language plpgsql as $$
begin
  raise exception using errcode = '23514', message = 'refused at commit';
end
$$;
create constraint trigger refuse after insert on citeledger.citation_ledger_entry
  deferrable initially deferred
  for each row execute function public.refuse();
"""


def state(su: psycopg.Connection[Any], message_id: UUID) -> Any:
    return su.execute(
        "select m.finalized_at is not null, g.gate_status from citeledger.messages as m"
        " left join citeledger.work_product_fiduciary_gate as g using (firm_id)"
        " where m.id = %s",
        (message_id,),
    ).fetchone()


def record(app: psycopg.Connection[Any], world: World) -> UUID:
    set_context(app, world.firm_id)
    message_id = world.on(app).turn()
    world.on(app).citation(message_id)
    return message_id


@pytest.mark.parametrize(
    ("fault", "sqlstate"), [(SLOW, "57014"), (DEFERRED, "23514")], ids=["timeout", "deferred"]
)
def test_a_savepoint_keeps_the_turn(
    su: psycopg.Connection[Any],
    app: psycopg.Connection[Any],
    world: World,
    fault: str,
    sqlstate: str,
) -> None:
    su.execute(fault)
    message_id = record(app, world)
    app.execute("savepoint before_finalize")
    app.execute("set local statement_timeout = '200ms'")
    with pytest.raises(psycopg.Error) as caught:
        app.execute("select citeledger.finalize_turn(%s)", (message_id,))
        app.execute("set constraints all immediate")
    assert caught.value.sqlstate == sqlstate
    app.execute("rollback to savepoint before_finalize")
    app.commit()
    assert state(su, message_id) == (False, None)

    # It is open: finalize_pending does not know of it, the query of the guide finds it.
    set_context(app, world.firm_id)
    pending = app.execute("select citeledger.finalize_pending()").fetchone()
    assert pending == (0,)
    su.execute(
        "drop trigger if exists slow on citeledger.citation_ledger_entry;"
        "drop trigger if exists refuse on citeledger.citation_ledger_entry"
    )
    app.execute("select citeledger.finalize_turn(%s)", (message_id,))
    app.commit()
    assert state(su, message_id) == (True, "fiduciary_grade")


@pytest.mark.parametrize(
    ("fault", "sqlstate"), [(SLOW, "57014"), (DEFERRED, "23514")], ids=["timeout", "deferred"]
)
def test_a_transaction_of_its_own_keeps_the_turn(
    su: psycopg.Connection[Any],
    app: psycopg.Connection[Any],
    world: World,
    fault: str,
    sqlstate: str,
) -> None:
    su.execute(fault)
    message_id = record(app, world)
    app.commit()
    set_context(app, world.firm_id)
    app.execute("set local statement_timeout = '200ms'")
    with pytest.raises(psycopg.Error) as caught:
        app.execute("select citeledger.finalize_turn(%s)", (message_id,))
        app.commit()
    assert caught.value.sqlstate == sqlstate
    app.rollback()
    assert state(su, message_id) == (False, None)


@pytest.mark.parametrize("text", ["Total\0 due", "\0"])
def test_a_text_with_nul_is_refused(app: psycopg.Connection[Any], world: World, text: str) -> None:
    """What the guide says of U+0000: neither a parameter nor an escape in JSON gets through."""
    set_context(app, world.firm_id)
    turn = world.on(app).turn()
    app.execute("savepoint s")
    with pytest.raises(psycopg.DataError):
        world.on(app).citation(turn, source_text=text)
    app.execute("rollback to savepoint s")
    with pytest.raises(psycopg.DataError) as caught:
        app.execute("select '{\"quote\": \"a\\u0000b\"}'::jsonb ->> 'quote'")
    assert caught.value.sqlstate == "22P05"
    app.execute("rollback to savepoint s")

    # The pattern: text of one's own making, unverified, without offsets; the others as usual.
    world.on(app).citation(turn, "failed", source_text=text.replace("\0", "\ufffd"))
    world.on(app).citation(turn)
    report = world.on(app).finalize(turn)
    assert (report["gate"]["pass_count"], report["gate"]["fail_count"]) == (1, 1)


def test_ids_in_pythons_order_are_in_postgresqls(db: Database) -> None:
    from uuid import uuid4

    ids = [uuid4() for _ in range(200)]
    with db.connect("t_app") as connection:
        row = connection.execute(
            "select array_agg(i order by i) from unnest(%s::uuid[]) as i", (ids,)
        ).fetchone()
    assert row is not None
    assert row[0] == sorted(ids)
