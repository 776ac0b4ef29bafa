"""Whoever sets ``finalized_at``, the turn is finalized: by the trigger, or by whom it leaves it to.

The functions that finalize tell the trigger that they do, by a setting that anybody may write. It
counts for their own update alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from faults.turns import assert_consistent, entries, verdict
from support.world import World, set_context

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

Connection = psycopg.Connection[Any]

SAID = ("0", "1", "")


def by_update(connection: Connection, turn: UUID) -> None:
    connection.execute(
        "update citeledger.messages as m set finalized_at = now() where m.id = %s", (turn,)
    )


def by_turn(connection: Connection, turn: UUID) -> None:
    connection.execute("select citeledger.finalize_turn(%s)", (turn,))


def by_turns(connection: Connection, turn: UUID) -> None:
    connection.execute("select citeledger.finalize_turns(array[%s::uuid])", (turn,))


def cited(world: World) -> UUID:
    turn = world.turn()
    world.citation(turn, "exact_match")
    world.tool(turn)
    return turn


@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize("finalize", [by_update, by_turn, by_turns])
def test_what_the_application_says_of_itself_changes_nothing(
    world: World,
    su: Connection,
    app: Connection,
    finalize: Callable[[Connection, UUID], None],
    said: str,
) -> None:
    turn = cited(world)
    set_context(app, world.firm_id)
    app.execute("select set_config('citeledger.sealing', %s, false)", (said,))
    finalize(app, turn)
    app.commit()
    assert (verdict(su, turn), entries(su, turn)) == ("fiduciary_grade", 2)
    assert_consistent(su, world.firm_id)


@pytest.mark.parametrize("finalize", [by_turn, by_turns])
def test_the_setting_is_taken_back(
    world: World, app: Connection, finalize: Callable[[Connection, UUID], None]
) -> None:
    turn = cited(world)
    set_context(app, world.firm_id)
    finalize(app, turn)
    assert app.execute("select current_setting('citeledger.sealing')").fetchone() == ("",)


def test_the_owner_s_own_update_is_finalized(world: World, su: Connection) -> None:
    """Under the role that the functions act as, but not by one of them."""
    turn = cited(world)
    with su.transaction():
        su.execute("set local role citeledger_owner")
        set_context(su, world.firm_id)
        by_update(su, turn)
    assert (verdict(su, turn), entries(su, turn)) == ("fiduciary_grade", 2)


@pytest.mark.parametrize("finalize", [by_turn, by_turns])
def test_what_the_update_sets_off_is_finalized(
    world: World, su: Connection, app: Connection, finalize: Callable[[Connection, UUID], None]
) -> None:
    """A trigger of the installation's own seals one more message in the middle of a finalize."""
    first, second = cited(world), cited(world)
    su.execute(
        f"""
        create function public.seal_the_other() returns trigger language plpgsql as $$
        begin
          update citeledger.messages as m set finalized_at = now()
          where m.firm_id = new.firm_id and m.id = '{second}' and m.finalized_at is null;
          return null;
        end
        $$;
        create trigger seal_the_other after update on citeledger.messages
          for each row when (new.id = '{first}') execute function public.seal_the_other();
        """
    )
    set_context(app, world.firm_id)
    finalize(app, first)
    app.commit()
    for turn in (first, second):
        assert (verdict(su, turn), entries(su, turn)) == ("fiduciary_grade", 2)
    assert_consistent(su, world.firm_id)


@pytest.mark.parametrize("finalize", [by_turn, by_turns])
def test_a_finalize_inside_a_trigger_finalizes(
    world: World, su: Connection, app: Connection, finalize: Callable[[Connection, UUID], None]
) -> None:
    turn, other = cited(world), world.turn()
    call = "finalize_turn(new.id)" if finalize is by_turn else "finalize_turns(array[new.id])"
    su.execute(
        f"""
        create function public.finalize_it() returns trigger language plpgsql as $$
        begin
          perform citeledger.{call};
          return null;
        end
        $$;
        create trigger finalize_it after update of content on citeledger.messages
          for each row execute function public.finalize_it();
        """
    )
    set_context(app, world.firm_id)
    app.execute(
        "update citeledger.messages set content = 'The rent is due.' where id = %s", (turn,)
    )
    app.commit()
    assert (verdict(su, turn), entries(su, turn)) == ("fiduciary_grade", 2)
    assert verdict(su, other) is None
    assert_consistent(su, world.firm_id)
