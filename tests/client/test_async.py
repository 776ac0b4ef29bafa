"""The asynchronous client: the same calls, the same rules, and what only tasks can do."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, assert_type
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from citeledger import (
    AsyncBound,
    AsyncCiteLedger,
    Bound,
    CiteLedger,
    FinalizeReport,
    InvalidArgument,
    LedgerTrace,
    NotFound,
    PermissionDenied,
    SchemaVersionError,
    WrongState,
    calls,
)
from citeledger.async_methods import AsyncMethods
from citeledger.methods import Methods
from support.deploy import REPOSITORY
from support.loops import async_test
from support.world import World

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from conftest import Database
    from support.server import Server

READ = ("matters:read",)
Context = tuple[UUID | None, UUID | None, bool]
NOTHING: Context = (None, None, False)
Pool = AsyncConnectionPool[Any]
Async = psycopg.AsyncConnection[Any]


async def context_of(connection: Async) -> Context:
    cursor = await connection.execute(
        "select citeledger.current_firm_id(), citeledger.current_user_id(),"
        " citeledger.has_permission('matters:read')"
    )
    row = await cursor.fetchone()
    assert row is not None
    return row[0], row[1], row[2]


def finalized(su: psycopg.Connection[Any], message: UUID) -> bool:
    row = su.execute(
        "select finalized_at is not null from citeledger.messages where id = %s", (message,)
    ).fetchone()
    assert row is not None
    return bool(row[0])


@asynccontextmanager
async def connected(db: Database, **kwargs: Any) -> AsyncIterator[Async]:
    async with await psycopg.AsyncConnection.connect(db.dsn("t_app"), **kwargs) as connection:
        yield connection


@asynccontextmanager
async def pooled(db: Database, size: int = 2, **kwargs: Any) -> AsyncIterator[Pool]:
    async with AsyncConnectionPool(
        db.dsn("t_app"), min_size=1, max_size=size, kwargs=kwargs, open=False
    ) as pool:
        yield pool


async def assert_clean(pool: Pool) -> None:
    """See that whoever borrows the one connection gets nothing of the one before."""
    assert pool.max_size == 1
    async with pool.connection() as connection:
        assert connection.info.transaction_status == TransactionStatus.IDLE
        assert await context_of(connection) == NOTHING
        cursor = await connection.execute(
            "select pg_catalog.current_setting('citeledger.firm_id', true),"
            " pg_catalog.current_setting('citeledger.user_id', true),"
            " pg_catalog.current_setting('citeledger.permissions', true)"
        )
        row = await cursor.fetchone()
        assert row is not None
        assert not any(row)


async def until_it_waits(su: psycopg.Connection[Any]) -> None:
    """Wait until a session waits for a lock."""
    for _ in range(1000):
        row = su.execute(
            "select count(*) from pg_catalog.pg_stat_activity where wait_event_type = 'Lock'"
            " and datname = pg_catalog.current_database()"
        ).fetchone()
        assert row is not None
        if row[0]:
            return
        await asyncio.sleep(0.01)
    raise AssertionError


# The two classes


def public(cls: type) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")}


def test_both_clients_have_the_same_methods() -> None:
    names = {call.name for call in calls.CALLS}
    assert public(Methods) == public(AsyncMethods) == names
    assert public(CiteLedger) == public(AsyncCiteLedger) == names | {"context", "retry"}
    assert public(Bound) - names == public(AsyncBound) - names
    for name in names:
        waits, awaits = getattr(CiteLedger, name), getattr(AsyncCiteLedger, name)
        assert inspect.signature(waits) == inspect.signature(awaits), name
        assert waits.__doc__ == awaits.__doc__ is not None, name
        assert inspect.iscoroutinefunction(awaits), name
        assert not inspect.iscoroutinefunction(waits), name
    for own in ("__init__", "context", "retry"):
        first = inspect.signature(getattr(CiteLedger, own)).parameters
        second = inspect.signature(getattr(AsyncCiteLedger, own)).parameters
        assert [(p.name, p.kind, p.default) for p in first.values()] == [
            (p.name, p.kind, p.default) for p in second.values()
        ], own


def test_the_made_module_is_fresh() -> None:
    done = subprocess.run(
        [sys.executable, "tools/async_methods.py", "--check"],
        check=False,
        cwd=REPOSITORY,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr


def test_the_types_are_precise() -> None:
    """For the type checker; nothing of it runs."""

    async def awaits(client: AsyncCiteLedger, firm: UUID) -> None:
        assert_type(await client.finalize_turn(firm), FinalizeReport)
        assert_type(await client.ledger_trace(firm), LedgerTrace)
        assert_type(await client.firm_ids(), list[UUID])
        async with client.context(firm_id=firm) as bound:
            assert_type(bound, AsyncBound)
            assert_type(bound.connection, psycopg.AsyncConnection[Any])

        async def work(bound: AsyncBound) -> int:
            return await bound.finalize_pending()

        assert_type(await client.retry(work), int)

    def waits(client: CiteLedger, firm: UUID) -> None:
        assert_type(client.finalize_turn(firm), FinalizeReport)
        assert_type(client.firm_ids(), list[UUID])
        with client.context(firm_id=firm) as bound:
            assert_type(bound.connection, psycopg.Connection[Any])

    assert callable(awaits)
    assert callable(waits)


# The same rules


@async_test
async def test_a_connection_joins_and_never_commits(
    db: Database, su: psycopg.Connection[Any], world: World
) -> None:
    chat = world.chat()
    message, user, other = world.message(chat), uuid4(), uuid4()
    async with connected(db) as connection:
        client = AsyncCiteLedger(connection)
        async with client.context(firm_id=world.firm_id, user_id=user, permissions=READ) as bound:
            assert bound.connection is connection
            assert await context_of(connection) == (world.firm_id, user, True)
            assert (await client.finalize_turn(message)).finalized
            async with client.context(firm_id=other):
                assert await context_of(connection) == (other, None, False)
            assert await context_of(connection) == (world.firm_id, user, True)
            trace = await bound.ledger_trace(str(chat))
            assert [g.message_id for g in trace.gates] == [message]
        assert connection.info.transaction_status == TransactionStatus.INTRANS
        assert await context_of(connection) == NOTHING
        assert not finalized(su, message)
        await connection.commit()
        assert finalized(su, message)
        with pytest.raises(WrongState):
            await bound.finalize_turn(message)


@async_test
async def test_autocommit_is_a_transaction_unless_there_is_one(
    db: Database, su: psycopg.Connection[Any], world: World
) -> None:
    first, second = world.turn(), world.turn()
    async with connected(db, autocommit=True) as connection:
        client = AsyncCiteLedger(connection)
        async with client.context(firm_id=world.firm_id):
            await client.finalize_turn(first)
            assert not finalized(su, first)
        assert finalized(su, first)
        async with connection.transaction():
            async with client.context(firm_id=world.firm_id):
                await client.finalize_turn(second)
            assert await context_of(connection) == NOTHING
            assert not finalized(su, second)
        assert finalized(su, second)
        with pytest.raises(ZeroDivisionError):
            async with client.context(firm_id=world.firm_id):
                _ = 1 / 0
        assert connection.info.transaction_status == TransactionStatus.IDLE


@pytest.mark.parametrize("autocommit", [False, True])
@async_test
async def test_a_pool_commits_or_rolls_back(
    db: Database, su: psycopg.Connection[Any], world: World, autocommit: bool
) -> None:
    kept, lost = world.turn(), world.turn()
    async with pooled(db, 1, autocommit=autocommit) as pool:
        client = AsyncCiteLedger(pool)
        async with client.context(firm_id=world.firm_id, permissions=READ) as bound:
            # The client finds the block's connection by itself.
            assert (await client.finalize_turn(kept)).finalized
            async with client.context(firm_id=uuid4()) as inner:
                assert inner.connection is bound.connection
            assert not finalized(su, kept)
        assert finalized(su, kept)
        with pytest.raises(NotFound):
            async with client.context(firm_id=world.firm_id, permissions=READ):
                await client.finalize_turn(lost)
                await client.ledger_trace(uuid4())
        assert not finalized(su, lost)
        with pytest.raises(PermissionDenied):
            await client.ledger_trace(uuid4())
        await assert_clean(pool)


@async_test
async def test_retry(db: Database, world: World) -> None:
    attempts = 0

    async def work(bound: AsyncBound) -> int:
        nonlocal attempts
        attempts += 1
        if attempts < 3:
            await bound.connection.execute("do $$ begin raise serialization_failure; end $$")
        async with client.context(firm_id=world.firm_id) as inner:
            assert inner.connection is bound.connection
        return attempts

    async with pooled(db, 1) as pool:
        client = AsyncCiteLedger(pool)
        assert await client.retry(work) == 3
        attempts = 0
        with pytest.raises(psycopg.errors.SerializationFailure):
            await client.retry(work, attempts=2)
        async with client.context(firm_id=world.firm_id):
            with pytest.raises(WrongState):
                await client.retry(work)
        with pytest.raises(InvalidArgument):
            await client.retry(work, attempts=0)
    async with connected(db) as connection:
        client = AsyncCiteLedger(connection)
        assert await client.retry(work) == 3
        assert connection.info.transaction_status == TransactionStatus.IDLE
        await connection.execute("select 1")
        with pytest.raises(WrongState):
            await client.retry(work)


@async_test
async def test_the_version_is_asked_once(
    db: Database, server: Server, su: psycopg.Connection[Any]
) -> None:
    async with connected(db, autocommit=True) as connection:
        client = AsyncCiteLedger(connection)
        await client.finalize_turn(uuid4())
        su.execute(
            "create or replace function citeledger.version() returns text language sql immutable"
            " as $$ select '9.9.9'::text $$"
        )
        await client.finalize_turn(uuid4())
        late = AsyncCiteLedger(connection)
        with pytest.raises(SchemaVersionError, match="does not know"):
            await late.finalize_turn(uuid4())
        assert await late.version() == "9.9.9"
    with server.database() as name:
        async with await psycopg.AsyncConnection.connect(server.dsn("t_none", name)) as connection:
            with pytest.raises(SchemaVersionError, match="not installed"):
                await AsyncCiteLedger(connection).finalize_turn(uuid4())


@async_test
async def test_what_it_is_made_of(db: Database) -> None:
    with db.connect("t_app") as waits:
        for value in (None, waits, "dbname=mydb"):
            with pytest.raises(InvalidArgument, match="connection_or_pool"):
                AsyncCiteLedger(value)  # type: ignore[arg-type]
    async with connected(db) as connection:
        with pytest.raises(InvalidArgument, match="prepare_threshold"):
            AsyncCiteLedger(connection, prepare_threshold=-1)
        with pytest.raises(InvalidArgument, match="connection_or_pool"):
            CiteLedger(connection)  # type: ignore[arg-type]


# Tasks


@async_test
async def test_tasks_have_contexts_of_their_own(db: Database, world: World) -> None:
    async with pooled(db) as pool:
        client = AsyncCiteLedger(pool)
        both_in = [asyncio.Event(), asyncio.Event()]

        async def act(number: int, firm: UUID) -> UUID | None:
            async with client.context(firm_id=firm) as bound:
                both_in[number].set()
                await both_in[1 - number].wait()
                return (await context_of(bound.connection))[0]

        firms = [world.firm_id, uuid4()]
        assert await asyncio.gather(*map(act, (0, 1), firms)) == firms


@async_test
async def test_a_task_started_in_a_block_calls_on_it(
    db: Database, su: psycopg.Connection[Any], world: World
) -> None:
    turns = [world.turn() for _ in range(5)]
    async with pooled(db) as pool:
        client = AsyncCiteLedger(pool)
        async with client.context(firm_id=world.firm_id) as bound:
            reports = await asyncio.gather(*map(bound.finalize_turn, turns))
            assert all(report.finalized for report in reports)
            assert (await asyncio.wait_for(bound.finalize_turn(turns[0]), 10)).finalized
            with pytest.raises(WrongState, match="another"):
                await asyncio.create_task(client.finalize_turn(turns[0]))
            async with asyncio.timeout(10):
                await client.finalize_turn(turns[0])
            assert not any(finalized(su, turn) for turn in turns)
        assert all(finalized(su, turn) for turn in turns)


@async_test
async def test_a_task_started_in_a_block_does_not_change_its_firm(
    db: Database, world: World
) -> None:
    other = uuid4()
    async with pooled(db) as pool:
        client = AsyncCiteLedger(pool)
        ended = asyncio.Event()

        async def nested() -> None:
            async with client.context(firm_id=other) as inner:
                assert inner.connection is not outer.connection
                assert (await context_of(inner.connection))[0] == other
                assert (await context_of(outer.connection))[0] == world.firm_id

        async def late() -> None:
            await ended.wait()
            with pytest.raises(WrongState):
                await client.finalize_turn(uuid4())
            async with client.context(firm_id=other) as fresh:
                assert (await context_of(fresh.connection))[0] == other

        async with client.context(firm_id=world.firm_id) as outer:
            await asyncio.create_task(nested())
            task = asyncio.create_task(late())
        ended.set()
        await task


@async_test
async def test_a_task_that_comes_too_late_does_not_get_the_next_ones_connection(
    db: Database, su: psycopg.Connection[Any], world: World
) -> None:
    """One of many calls fails, the block ends, and others had not had their turn yet."""
    message = world.turn()
    async with pooled(db, 1) as pool:
        client = AsyncCiteLedger(pool)
        tasks: list[asyncio.Task[Any]] = []
        with pytest.raises(ZeroDivisionError):
            async with client.context(firm_id=uuid4()) as bound:
                tasks += [asyncio.create_task(bound.finalize_turn(message)) for _ in range(5)]
                await asyncio.sleep(0)
                _ = 1 / 0
        async with client.context(firm_id=world.firm_id):
            results = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(results[0], FinalizeReport)
        assert not results[0].finalized
        assert [type(result) for result in results[1:]] == [WrongState] * 4
    assert not finalized(su, message)


@async_test
async def test_a_call_that_has_begun_ends_before_the_block_does(
    db: Database, su: psycopg.Connection[Any], world: World
) -> None:
    """The first call of a client is several statements."""
    message = world.turn()
    tasks: list[asyncio.Task[FinalizeReport]] = []

    class Slow(AsyncCiteLedger):
        async def _send(self, *args: Any) -> Any:
            if asyncio.current_task() in tasks:
                await asyncio.sleep(0.05)
            return await super()._send(*args)

    async with pooled(db, 1) as pool:
        client = Slow(pool)

        async def work(bound: AsyncBound) -> None:
            tasks.append(asyncio.create_task(bound.finalize_turn(message)))
            await asyncio.sleep(0)
            _ = 1 / 0

        with pytest.raises(ZeroDivisionError):
            await client.retry(work)
        async with client.context(firm_id=world.firm_id):
            assert not (await tasks[0]).finalized
    assert not finalized(su, message)


def test_a_thread_that_inherits_a_block_does_not_change_its_firm(
    db: Database, world: World
) -> None:
    with ConnectionPool(db.dsn("t_app"), min_size=1, max_size=2, open=True) as pool:
        client = CiteLedger(pool)

        def act() -> None:
            with pytest.raises(WrongState, match="another"):
                client.finalize_turn(uuid4())
            with client.context(firm_id=uuid4()) as inner:
                assert inner.connection is not outer.connection
            with pytest.raises(WrongState, match="another"):
                client.version()
            assert outer.version()

        with client.context(firm_id=world.firm_id) as outer, ThreadPoolExecutor(1) as threads:
            threads.submit(contextvars.copy_context().run, act).result(30)


@async_test
async def test_tasks_on_one_connection_leave_its_threshold(db: Database) -> None:
    async with connected(db, prepare_threshold=7) as connection:
        client = AsyncCiteLedger(connection, prepare_threshold=0)
        await asyncio.gather(*(client.finalize_turn(uuid4()) for _ in range(5)))
        assert connection.prepare_threshold == 7
        cursor = await connection.execute(
            "select count(*) from pg_catalog.pg_prepared_statements"
            " where statement like '%citeledger.finalize_turn(%'"
        )
        assert await cursor.fetchone() == (1,)


def test_a_block_may_end_in_another_context(db: Database, world: World) -> None:
    """As a framework does that ends a dependency in another thread."""
    with db.connect("t_app", autocommit=True) as connection:
        block = CiteLedger(connection).context(firm_id=world.firm_id)
        bound = contextvars.copy_context().run(block.__enter__)
        message = world.turn()
        assert bound.finalize_turn(message).finalized
        contextvars.copy_context().run(block.__exit__, None, None, None)
        assert finalized(world.connection, message)


# Cancelled


async def wait_for_a_lock(client: AsyncCiteLedger, message: UUID) -> None:
    await client.finalize_turn(message)


async def sleep(client: AsyncCiteLedger, message: UUID) -> None:
    await client.finalize_turn(uuid4())
    await asyncio.sleep(60)


@pytest.mark.parametrize("autocommit", [False, True])
@pytest.mark.parametrize("act", [wait_for_a_lock, sleep])
@async_test
async def test_after_a_cancelled_block_the_next_borrower_gets_a_clean_connection(
    db: Database,
    su: psycopg.Connection[Any],
    world: World,
    act: Callable[[AsyncCiteLedger, UUID], Any],
    autocommit: bool,
) -> None:
    message = world.turn()
    async with pooled(db, 1, autocommit=autocommit) as pool:
        client = AsyncCiteLedger(pool)
        inside = asyncio.Event()

        async def block() -> None:
            async with client.context(firm_id=world.firm_id, user_id=uuid4(), permissions=READ):
                inside.set()
                await act(client, message)

        with su.transaction():
            su.execute("select from citeledger.messages where id = %s for update", (message,))
            task = asyncio.create_task(block())
            await inside.wait()
            await (until_it_waits(su) if act is wait_for_a_lock else asyncio.sleep(0.05))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            # The lock is still held: nothing of the cancelled call waits on the server.
            await assert_clean(pool)
        assert not finalized(su, message)
        async with client.context(firm_id=world.firm_id):
            assert (await client.finalize_turn(message)).finalized
        await assert_clean(pool)


@async_test
async def test_a_cancelled_call_without_a_block(
    db: Database, su: psycopg.Connection[Any], world: World
) -> None:
    async with pooled(db, 1) as pool:
        client = AsyncCiteLedger(pool)
        assert await client.version()
        with su.transaction():
            su.execute("lock table citeledger.messages")
            task = asyncio.create_task(client.finalize_turn(uuid4()))
            await until_it_waits(su)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await assert_clean(pool)


@async_test
async def test_a_cancelled_call_in_the_callers_transaction(
    db: Database, su: psycopg.Connection[Any], world: World
) -> None:
    message = world.turn()
    async with connected(db) as connection:
        client = AsyncCiteLedger(connection)
        with su.transaction():
            su.execute("select from citeledger.messages where id = %s for update", (message,))

            async def block() -> None:
                async with client.context(firm_id=world.firm_id):
                    await client.finalize_turn(message)

            task = asyncio.create_task(block())
            await until_it_waits(su)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert connection.info.transaction_status == TransactionStatus.INERROR
        await connection.rollback()
        assert await context_of(connection) == NOTHING


@async_test
async def test_cancelled_at_any_moment(db: Database, world: World) -> None:
    """Sooner and later within a block, which takes some milliseconds in all."""
    message = world.turn()
    async with pooled(db, 1) as pool, connected(db) as connection:
        for client in (AsyncCiteLedger(pool), AsyncCiteLedger(connection)):

            async def block(client: AsyncCiteLedger = client) -> None:
                async with client.context(firm_id=world.firm_id, permissions=READ) as bound:
                    await bound.finalize_turn(message)
                    async with client.context(firm_id=uuid4(), permissions=READ):
                        await client.has_permission("matters:read")

            await block()
            for moment in range(60):
                task = asyncio.create_task(block())
                await asyncio.sleep(moment / 10_000)
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
                if client._own is None:
                    await assert_clean(pool)
                    continue
                # The caller's transaction, in which a failed statement may have ended everything.
                if connection.info.transaction_status == TransactionStatus.INERROR:
                    await connection.rollback()
                assert await context_of(connection) == NOTHING
