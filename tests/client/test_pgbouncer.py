"""Behind a real PgBouncer in transaction mode no context leaks and no statement is missed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from citeledger import AsyncCiteLedger, CiteLedger, InvalidArgument, NotFound
from support.loops import async_test
from support.pgbouncer import ABSENT, PROGRAM, Bouncer, bouncer
from support.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Database

pytestmark = pytest.mark.skipif(PROGRAM is None, reason=ABSENT)

READ = ("matters:read",)
ROUNDS = 12
Session = tuple[int, str | None, str | None, str | None]

# The backend, and what is set on it. Not prepared: what is under test is what the client sends.
SESSION = (
    "select pg_catalog.pg_backend_pid(),"
    " nullif(pg_catalog.current_setting('citeledger.firm_id', true), ''),"
    " nullif(pg_catalog.current_setting('citeledger.user_id', true), ''),"
    " nullif(pg_catalog.current_setting('citeledger.permissions', true), '')"
)


def session(connection: psycopg.Connection[Any]) -> Session:
    row = connection.execute(SESSION, prepare=False).fetchone()
    assert row is not None
    return row[0], row[1], row[2], row[3]


async def async_session(connection: psycopg.AsyncConnection[Any]) -> Session:
    row = await (await connection.execute(SESSION, prepare=False)).fetchone()
    assert row is not None
    return row[0], row[1], row[2], row[3]


@pytest.fixture
def one(db: Database) -> Iterator[Bouncer]:
    """Give a pooler with one connection to the server, whoever comes."""
    with bouncer(db.server, db.name, pool_size=1) as running:
        yield running


@pytest.fixture
def firms(su: psycopg.Connection[Any]) -> list[tuple[UUID, UUID, UUID]]:
    """Make two firms: each with a chat and a finalized turn in it."""
    made = []
    for name in ("Quill & Partners", "Another firm"):
        world = World.make(su, name)
        chat = world.chat()
        message = world.message(chat)
        world.citation(message)
        made.append((world.firm_id, chat, message))
    return made


@pytest.mark.parametrize("autocommit", [False, True])
def test_two_firms_alternate_on_one_connection(
    one: Bouncer, firms: list[tuple[UUID, UUID, UUID]], autocommit: bool
) -> None:
    backends = set()
    with (
        psycopg.connect(one.dsn(), autocommit=autocommit) as first,
        psycopg.connect(one.dsn(), autocommit=autocommit) as second,
    ):
        connections = (first, second)
        clients = [CiteLedger(connection) for connection in connections]
        for turn in range(2 * ROUNDS):
            who = turn % 2
            client, connection = clients[who], connections[who]
            firm, chat, message = firms[who]
            pid, *left = session(connection)
            assert left == [None] * 3
            connection.commit()
            with client.context(firm_id=firm, user_id=uuid4(), permissions=READ):
                assert client.finalize_turn(message).finalized
                (gate,) = client.ledger_trace(chat).gates
                assert gate.message_id == message
                inside, seen, *_ = session(connection)
                assert (inside, seen) == (pid, str(firm))
            connection.commit()
            with (
                pytest.raises(NotFound),
                client.context(firm_id=firm, permissions=READ),
            ):
                client.ledger_trace(firms[1 - who][1])
            connection.rollback()
            backends.add(pid)
    assert len(backends) == 1


def test_a_pool_behind_the_pooler(one: Bouncer, firms: list[tuple[UUID, UUID, UUID]]) -> None:
    with ConnectionPool(one.dsn(), min_size=2, max_size=2, open=True) as pool:
        pool.wait()
        client = CiteLedger(pool)
        for turn in range(2 * ROUNDS):
            firm, _, message = firms[turn % 2]
            with client.context(firm_id=firm):
                assert client.finalize_turn(message).finalized
            assert not client.finalize_turn(message).finalized
            with pool.connection() as connection:
                assert session(connection)[1:] == (None, None, None)


@async_test
async def test_tasks_of_two_firms_share_one_connection(
    one: Bouncer, firms: list[tuple[UUID, UUID, UUID]]
) -> None:
    async with AsyncConnectionPool(one.dsn(), min_size=2, max_size=2, open=False) as pool:
        await pool.wait()
        client = AsyncCiteLedger(pool)
        order = []

        async def act(firm: UUID, chat: UUID, message: UUID) -> set[int]:
            backends = set()
            for _ in range(ROUNDS):
                async with client.context(firm_id=firm, permissions=READ) as bound:
                    pid, seen, *_ = await async_session(bound.connection)
                    assert seen == str(firm)
                    assert (await client.finalize_turn(message)).finalized
                    (gate,) = (await client.ledger_trace(chat)).gates
                    assert gate.message_id == message
                    order.append(firm)
                    backends.add(pid)
                async with pool.connection() as connection:
                    assert (await async_session(connection))[1:] == (None, None, None)
            return backends

        first, second = await asyncio.gather(*(act(*firm) for firm in firms))
    assert first == second
    assert len(first) == 1
    assert order != sorted(order, key=order.index)


def test_identical_calls_over_two_backends(
    db: Database, firms: list[tuple[UUID, UUID, UUID]]
) -> None:
    firm, _, message = firms[0]
    with (
        bouncer(db.server, db.name, pool_size=2) as two,
        psycopg.connect(two.dsn(), autocommit=True) as connection,
        psycopg.connect(two.dsn(), autocommit=True) as other,
    ):
        with connection.transaction(), other.transaction():
            assert session(connection)[0] != session(other)[0]
        client = CiteLedger(connection)
        backends = []
        for _ in range(ROUNDS):
            with client.context(firm_id=firm) as bound:
                assert client.finalize_turn(message).finalized
                backends.append(session(bound.connection)[0])
        assert len(set(backends)) == 2


def test_what_the_default_keeps_away(one: Bouncer, firms: list[tuple[UUID, UUID, UUID]]) -> None:
    """To prepare behind a pooler that does not track it goes wrong, as documented."""
    with (
        psycopg.connect(one.dsn(), autocommit=True) as first,
        psycopg.connect(one.dsn(), autocommit=True) as second,
    ):
        CiteLedger(first, prepare_threshold=0).version()
        with pytest.raises(psycopg.errors.DuplicatePreparedStatement):
            CiteLedger(second, prepare_threshold=0).version()


def test_an_identity_with_a_quote_and_a_semicolon(
    one: Bouncer, firms: list[tuple[UUID, UUID, UUID]]
) -> None:
    evil = "x'; select pg_catalog.set_config('citeledger.firm_id', '', false); --"
    firm, _, message = firms[0]
    with psycopg.connect(one.dsn(), autocommit=True) as connection:
        client = CiteLedger(connection)
        identities: list[dict[str, Any]] = [
            {"firm_id": firm, "permissions": [evil]},
            {"firm_id": firm, "user_id": evil},
            {"firm_id": evil},
        ]
        for identity in identities * 4:
            with pytest.raises(InvalidArgument), client.context(**identity):
                raise AssertionError
            assert session(connection)[1:] == (None, None, None)
        with client.context(firm_id=firm):
            assert client.finalize_turn(message).finalized


@async_test
async def test_a_cancelled_call_leaves_the_backend_clean(
    db: Database, one: Bouncer, su: psycopg.Connection[Any], firms: list[tuple[UUID, UUID, UUID]]
) -> None:
    firm, _, message = firms[0]
    async with AsyncConnectionPool(one.dsn(), min_size=1, max_size=1, open=False) as pool:
        client = AsyncCiteLedger(pool)

        async def block() -> None:
            async with client.context(firm_id=firm, permissions=READ):
                await client.finalize_turn(message)

        with su.transaction():
            su.execute("select from citeledger.messages where id = %s for update", (message,))
            task = asyncio.create_task(block())
            for _ in range(1000):
                waiting = su.execute(
                    "select count(*) from pg_catalog.pg_stat_activity"
                    " where wait_event_type = 'Lock' and datname = pg_catalog.current_database()"
                ).fetchone()
                if waiting is not None and waiting[0]:
                    break
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            async with pool.connection() as connection:
                assert (await async_session(connection))[1:] == (None, None, None)
        other, _, foreign = firms[1]
        async with client.context(firm_id=other):
            assert (await client.finalize_turn(foreign)).finalized
            assert not (await client.finalize_turn(message)).finalized
