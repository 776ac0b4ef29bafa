"""A client over a pool: one connection and one transaction per block, and nothing left on it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg_pool import ConnectionPool

from citeledger import (
    Bound,
    CiteLedger,
    NotFound,
    PermissionDenied,
    WrongState,
    __version__,
)
from support.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Database

READ = ("matters:read",)


@pytest.fixture(params=[False, True], ids=["transactions", "autocommit"])
def pool(db: Database, request: pytest.FixtureRequest) -> Iterator[ConnectionPool[Any]]:
    with ConnectionPool(
        db.dsn("t_app"), min_size=1, max_size=2, kwargs={"autocommit": request.param}, open=True
    ) as opened:
        yield opened


def firm_of(connection: psycopg.Connection[Any]) -> UUID | None:
    row = connection.execute("select citeledger.current_firm_id()").fetchone()
    assert row is not None
    firm = row[0]
    assert firm is None or isinstance(firm, UUID)
    return firm


def settings_left(pool: ConnectionPool[Any]) -> list[tuple[str | None, ...]]:
    """Take every connection out and read what is set on it."""
    left = []
    with pool.connection() as first, pool.connection() as second:
        for connection in (first, second):
            row = connection.execute(
                "select pg_catalog.current_setting('citeledger.firm_id', true),"
                " pg_catalog.current_setting('citeledger.user_id', true),"
                " pg_catalog.current_setting('citeledger.permissions', true)"
            ).fetchone()
            assert row is not None
            left.append(tuple(value or None for value in row))
    return left


def finalized(su: psycopg.Connection[Any], message: UUID) -> bool:
    row = su.execute(
        "select finalized_at is not null from citeledger.messages where id = %s", (message,)
    ).fetchone()
    assert row is not None
    return bool(row[0])


def test_a_block_commits_and_leaves_nothing(
    pool: ConnectionPool[Any], su: psycopg.Connection[Any], world: World
) -> None:
    client = CiteLedger(pool)
    by_bound, by_client = world.turn(), world.turn()
    with client.context(firm_id=world.firm_id, user_id=uuid4(), permissions=READ) as bound:
        assert bound.finalize_turn(by_bound).finalized
        # The client finds the block's connection by itself.
        assert client.finalize_turn(by_client).finalized
        assert not finalized(su, by_bound)
    assert finalized(su, by_bound)
    assert finalized(su, by_client)
    assert settings_left(pool) == [(None,) * 3] * 2


def test_an_error_rolls_back_and_leaves_nothing(
    pool: ConnectionPool[Any], su: psycopg.Connection[Any], world: World
) -> None:
    client = CiteLedger(pool)
    message = world.turn()
    with (
        pytest.raises(NotFound),
        client.context(firm_id=world.firm_id, permissions=READ) as bound,
    ):
        bound.finalize_turn(message)
        bound.ledger_trace(uuid4())
    assert not finalized(su, message)
    assert settings_left(pool) == [(None,) * 3] * 2


def test_blocks_nest_on_one_connection(pool: ConnectionPool[Any], world: World) -> None:
    client = CiteLedger(pool)
    other = uuid4()
    with client.context(firm_id=world.firm_id) as outer:
        with client.context(firm_id=other) as inner:
            assert inner.connection is outer.connection
            assert firm_of(inner.connection) == other
        assert firm_of(outer.connection) == world.firm_id


def test_two_clients_do_not_meet(
    pool: ConnectionPool[Any], app: psycopg.Connection[Any], world: World
) -> None:
    first, second = CiteLedger(pool), CiteLedger(pool)
    other = uuid4()
    with (
        first.context(firm_id=world.firm_id) as one,
        second.context(firm_id=other) as two,
    ):
        assert one.connection is not two.connection
        assert firm_of(one.connection) == world.firm_id
        assert firm_of(two.connection) == other


def test_without_a_block_a_call_has_no_context(
    pool: ConnectionPool[Any], su: psycopg.Connection[Any], world: World
) -> None:
    client = CiteLedger(pool)
    message = world.turn()
    assert client.version() == __version__
    assert not client.finalize_turn(message).finalized
    with pytest.raises(PermissionDenied):
        client.ledger_trace(uuid4())
    assert not finalized(su, message)


def test_a_block_that_ended_does_not_touch_the_pooled_connection(
    pool: ConnectionPool[Any], world: World
) -> None:
    with CiteLedger(pool).context(firm_id=world.firm_id) as bound:
        pass
    with pytest.raises(WrongState):
        bound.finalize_turn(uuid4())


def test_threads_have_contexts_of_their_own(pool: ConnectionPool[Any], world: World) -> None:
    client = CiteLedger(pool)
    both_in = threading.Barrier(2, timeout=10)

    def act(firm: UUID) -> tuple[UUID | None, Bound]:
        with client.context(firm_id=firm) as bound:
            both_in.wait()
            seen = firm_of(bound.connection)
            both_in.wait()
            return seen, bound

    firms = [world.firm_id, uuid4()]
    with ThreadPoolExecutor(2) as threads:
        results = list(threads.map(act, firms))
    assert [seen for seen, _ in results] == firms
