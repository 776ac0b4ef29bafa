"""Many clients at once: on one message, and on many in opposite order."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING, Any
from uuid import UUID

import psycopg
import pytest

from concurrency.test_sources_and_finalize import FINALIZE, INSERT
from faults.turns import (
    assert_consistent,
    assert_no_stale_verdict,
    entries,
    failures,
    first_done,
    settle_pending,
    sources,
    verdict,
)
from support.races import Session
from support.world import World, set_context

if TYPE_CHECKING:
    from conftest import Database

Connection = psycopg.Connection[Any]
Opened = Callable[..., Session]

CLIENTS = 8
TURNS = 10


def at_once(db: Database, world: World, work: Callable[[Connection, int], int]) -> list[int]:
    """Let eight clients do their work at the same moment; return what each returned."""
    barrier = Barrier(CLIENTS)

    def client(number: int) -> int:
        with db.connect("t_app") as connection:
            connection.execute("select 1")
            connection.commit()
            barrier.wait(timeout=15)
            return work(connection, number)

    with ThreadPoolExecutor(CLIENTS) as pool:
        return list(pool.map(client, range(CLIENTS)))


def test_eight_clients_on_one_message_lose_nothing(
    db: Database, world: World, su: Connection
) -> None:
    """Each records sources and finalizes, again and again, on the same turn. Nobody deadlocks."""
    turn = world.turn(world.project())

    def work(connection: Connection, number: int) -> int:
        own = world.on(connection)
        for round_number in range(5):
            set_context(connection, world.firm_id)
            own.citation(turn, ("exact_match", "paraphrase_judge", None)[round_number % 3])
            if round_number % 2:
                own.tool(turn)
            assert own.finalize(turn)["failures"] == []
            own.caselaw(turn)
            connection.commit()
        return 5

    assert at_once(db, world, work) == [5] * CLIENTS
    assert sources(su, turn) == entries(su, turn) == CLIENTS * (5 + 5 + 2)
    assert verdict(su, turn) == "flagged"
    assert_consistent(su, world.firm_id)


def test_eight_clients_that_also_downgrade_and_delete_end_consistent(
    db: Database, world: World, su: Connection, job: Connection
) -> None:
    """Everything that an app may do, at random, on three turns; 40P01 is run again.

    The seed is fixed, the interleaving is not: what must hold is that it ends in order.
    """
    turns = [world.turn(world.project()) for _ in range(3)]
    for turn in turns:
        world.citation(turn)
        world.caselaw(turn)
        world.tool(turn)

    def step(connection: Connection, chance: random.Random) -> None:
        own, turn = world.on(connection), chance.choice(turns)
        kind = chance.randrange(6)
        set_context(connection, world.firm_id)
        if kind == 0:
            own.citation(turn)
        elif kind == 1:
            own.caselaw(turn, None)
        elif kind == 2:
            connection.execute(
                "update citeledger.message_citations set verified = not verified"
                " where message_id = %s and verification_method is not null",
                (turn,),
            )
        elif kind == 3:
            connection.execute(
                "delete from citeledger.message_tool_sources where message_id = %s", (turn,)
            )
        elif kind == 4:
            own.tool(turn)
        else:
            own.finalize(turn)
        connection.commit()

    def work(connection: Connection, number: int) -> int:
        chance = random.Random(number)
        done = 0
        while done < 12:
            try:
                step(connection, chance)
            except psycopg.errors.DeadlockDetected:
                connection.rollback()
                continue
            except psycopg.errors.ObjectNotInPrerequisiteState:
                connection.rollback()
            done += 1
        return done

    assert at_once(db, world, work) == [12] * CLIENTS
    assert_no_stale_verdict(su, world.firm_id)
    settle_pending(job, world.firm_id)
    assert_no_stale_verdict(su, world.firm_id)
    set_context(job, world.firm_id)
    job.execute("select citeledger.finalize_turns(%s)", (turns,))
    job.commit()
    assert_consistent(su, world.firm_id)


def ten(world: World) -> list[UUID]:
    turns = sorted(world.turn(world.project()) for _ in range(TURNS))
    for turn in turns:
        world.citation(turn)
        world.caselaw(turn, "paraphrase_judge")
    return turns


def test_ten_turns_in_opposite_order_by_single_calls_give_way_to_each_other(
    world: World, su: Connection, opened: Opened
) -> None:
    """Two transactions that finalize one turn after the other meet in the middle.

    That is a deadlock of the callers' making. finalize_turn does not raise: it reports the turn as
    busy (stage lock, 40P01), and after its commit the caller finalizes that turn again.
    """
    turns = ten(world)
    up, down = opened(), opened()
    for low, high in zip(turns[:5], reversed(turns[5:]), strict=True):
        up.run(FINALIZE["finalize_turn"], (low,))
        down.run(FINALIZE["finalize_turn"], (high,))
    up.start(FINALIZE["finalize_turn"], (turns[5],))
    up.blocked()
    down.start(FINALIZE["finalize_turn"], (turns[4],))
    busy = [{"stage": "lock", "sqlstate": "40P01"}]
    gave_way, waits = first_done(up, down)
    report = gave_way.result()[0][0]
    assert not report["finalized"]
    assert report["failures"] == busy
    gave_way.commit()
    assert waits.result()[0][0]["failures"] == []
    waits.commit()
    assert_no_stale_verdict(su, world.firm_id)

    again = opened()
    for turn in turns:
        assert again.value(FINALIZE["finalize_turn"], (turn,))["failures"] == []
    again.commit()
    assert [verdict(su, t) for t in turns] == ["supported_only"] * TURNS
    assert [failures(su, t) for t in turns] == [[]] * TURNS
    assert_consistent(su, world.firm_id)


def test_ten_turns_in_opposite_order_by_column_deadlock_and_a_retry_succeeds(
    world: World, su: Connection, opened: Opened
) -> None:
    """A plain UPDATE has no guard around its own lock: one session gets 40P01 and runs again."""
    turns = ten(world)
    up, down = opened(), opened()
    up.run(FINALIZE["update"], (turns[0],))
    down.run(FINALIZE["update"], (turns[-1],))
    up.start(FINALIZE["update"], (turns[-1],))
    up.blocked()
    down.start(FINALIZE["update"], (turns[0],))
    victim, winner = first_done(up, down)
    assert isinstance(victim.error(), psycopg.errors.DeadlockDetected)
    victim.rollback()
    winner.result()
    winner.commit()
    retry = opened()
    retry.run("select citeledger.finalize_turns(%s)", (turns,))
    retry.commit()
    assert_consistent(su, world.firm_id)


def test_sets_of_turns_in_opposite_order_do_not_deadlock(
    db: Database, world: World, su: Connection
) -> None:
    """finalize_turns locks in id order, whatever order it is given: eight clients, never 40P01."""
    turns = ten(world)

    def work(connection: Connection, number: int) -> int:
        mine = turns if number % 2 else turns[::-1]
        done = 0
        for _ in range(6):
            set_context(connection, world.firm_id)
            row = connection.execute("select citeledger.finalize_turns(%s)", (mine,)).fetchone()
            connection.execute(
                "insert into citeledger.message_citations (message_id, source_text)"
                " select t, 'a quote' from unnest(%s::uuid[]) as t",
                (mine,),
            )
            connection.commit()
            assert row == (TURNS,)
            done += 1
        return done

    assert at_once(db, world, work) == [6] * CLIENTS
    assert [sources(su, t) for t in turns] == [2 + 6 * CLIENTS] * TURNS
    assert_consistent(su, world.firm_id)


def test_a_set_of_turns_waits_in_order_and_never_in_a_ring(
    world: World, su: Connection, opened: Opened
) -> None:
    """The same, forced: the second session waits for the first with none of the first's turns."""
    turns = ten(world)
    first, second = opened(), opened()
    first.run("select citeledger.finalize_turns(%s)", (turns[5:],))
    second.start("select citeledger.finalize_turns(%s)", (turns[::-1],))
    second.blocked()
    first.commit()
    second.result()
    second.commit()
    assert_consistent(su, world.firm_id)


@pytest.mark.parametrize("kind", INSERT)
def test_late_sources_of_eight_clients_on_a_sealed_turn_are_all_in(
    db: Database, world: World, su: Connection, kind: str
) -> None:
    """Every late source refreshes only itself; none is forgotten."""
    turn = world.turn(finalized_at="2026-01-01")

    def work(connection: Connection, number: int) -> int:
        for _ in range(10):
            set_context(connection, world.firm_id)
            connection.execute(INSERT[kind], (turn,))
            connection.commit()
        return 10

    assert at_once(db, world, work) == [10] * CLIENTS
    assert sources(su, turn) == entries(su, turn) == 10 * CLIENTS
    assert_consistent(su, world.firm_id)


def test_many_sources_are_refreshed_in_time_without_statistics(
    world: World, su: Connection, app: Connection
) -> None:
    """A load of many sources, finalized again and downgraded before autovacuum ever came.

    The refresh was cubic when the planner took the tables for empty: 18 seconds where it now takes
    a few hundredths of one. The limit is far from both.
    """
    su.execute("alter table citeledger.citation_ledger_entry set (autovacuum_enabled = off)")
    turns = [world.turn() for _ in range(10)]
    set_context(app, world.firm_id)
    app.execute("set local statement_timeout = '6s'")
    app.execute(
        "insert into citeledger.message_citations"
        " (message_id, source_text, verified, verification_method)"
        " select t, 'a quote', true, 'exact_match'"
        " from unnest(%s::uuid[]) as t, generate_series(1, 50)",
        (turns,),
    )
    app.execute("select citeledger.finalize_turns(%s)", (turns,))
    app.execute("select citeledger.finalize_turns(%s)", (turns,))
    app.execute("update citeledger.message_citations set verified = false")
    app.commit()
    assert [verdict(su, t) for t in turns] == ["flagged"] * TURNS
    assert_consistent(su, world.firm_id)
