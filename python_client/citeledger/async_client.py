"""The client for asyncio: what client.py does, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row
from psycopg_pool import AsyncConnectionPool

from . import calls, shared
from .async_methods import AsyncMethods
from .errors import CiteLedgerError, translated
from .methods import Id

if TYPE_CHECKING:
    from .calls import Call

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Connection: TypeAlias = psycopg.AsyncConnection[Any]

# Tasks may share a connection, and its threshold is changed for the length of a statement.
_changing: Final[WeakKeyDictionary[Connection, asyncio.Lock]] = WeakKeyDictionary()


class AsyncBound(shared.Block[Connection], AsyncMethods):
    """A client on one connection, for the length of a block."""

    __slots__ = ("_client", "_turn")

    def __init__(self, client: AsyncCiteLedger, connection: Connection) -> None:
        """Be made by AsyncCiteLedger.context or AsyncCiteLedger.retry, not by hand."""
        super().__init__(connection, asyncio.current_task())
        self._client = client
        # Tasks may share the block. One that still waits for its turn when the block ends must not
        # get it on a connection that is another's by then.
        self._turn = asyncio.Lock()

    async def _run(self, call: Call[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        parameters = call.arguments(*args, **kwargs)
        async with self._turn:
            return await self._client._execute(self.connection, call, parameters)


class AsyncCiteLedger(AsyncMethods):
    """Calls citeledger's functions as CiteLedger does, through an asynchronous connection or pool.

    A client over a pool may be shared between tasks. A ``context`` block over a pool belongs to the
    task that opened it. A task that was started inside it calls on what the block gave, one call
    after the other, or opens a ``context`` of its own, which is on a connection of its own.
    """

    __slots__ = ("_own", "_pool", "_prepare_threshold", "_version_known")

    def __init__(
        self,
        connection_or_pool: Connection | AsyncConnectionPool[Any],
        *,
        prepare_threshold: int | None = None,
    ) -> None:
        """Take what the caller opened, and leave closing it to the caller."""
        self._own: Connection | None = None
        self._pool: AsyncConnectionPool[Any] | None = None
        if isinstance(connection_or_pool, psycopg.AsyncConnection):
            self._own = connection_or_pool
        elif isinstance(connection_or_pool, AsyncConnectionPool):
            self._pool = connection_or_pool
        else:
            raise shared.not_a_handle(
                connection_or_pool, "psycopg.AsyncConnection or a psycopg_pool.AsyncConnectionPool"
            )
        self._prepare_threshold = shared.threshold_argument(prepare_threshold)
        self._version_known = False

    # Running one call

    async def _run(self, call: Call[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        parameters = call.arguments(*args, **kwargs)
        # A transaction of this one call may also fail at its commit.
        with translated():
            async with self._borrowed() as connection:
                return await self._execute(connection, call, parameters)

    async def _execute(
        self, connection: Connection, call: Call[..., R], parameters: tuple[object, ...]
    ) -> R:
        if not self._version_known and call is not calls.VERSION:
            await self._check_version(connection)
        return await self._send(connection, call, parameters)

    async def _send(
        self, connection: Connection, call: Call[..., R], parameters: tuple[object, ...]
    ) -> R:
        threshold = self._prepare_threshold
        # The client's own cursor: the connection may have another kind, with another placeholder.
        with translated():
            async with psycopg.AsyncCursor(connection, row_factory=tuple_row) as cursor:
                if threshold is None:
                    await cursor.execute(call.sql, parameters, prepare=False)
                else:
                    async with _changing.setdefault(connection, asyncio.Lock()):
                        before = connection.prepare_threshold
                        connection.prepare_threshold = threshold
                        try:
                            await cursor.execute(call.sql, parameters)
                        finally:
                            connection.prepare_threshold = before
                return call.result(await cursor.fetchall())

    async def _check_version(self, connection: Connection) -> None:
        if not await self._send(connection, calls.HAS_VERSION, ()):
            raise shared.not_installed()
        self._version_known = shared.known(await self._send(connection, calls.VERSION, ()))

    # Connections and transactions

    def _current(self) -> Connection | None:
        """Return the connection of the block that one can be nested in."""
        block = shared.innermost(self)
        if block is None or not block.is_open_for(asyncio.current_task()):
            return None
        connection: Connection = block.connection
        return connection

    @asynccontextmanager
    async def _borrowed(self) -> AsyncIterator[Connection]:
        """Give the connection for one call; with a pool, and outside a block, a transaction too."""
        if self._own is not None:
            yield self._own
        elif (block := shared.innermost(self)) is not None:
            yield block.connection_for(asyncio.current_task())
        else:
            async with self._checked_out() as connection:
                yield connection

    @asynccontextmanager
    async def _checked_out(self) -> AsyncIterator[Connection]:
        """Check a connection out of the pool for one transaction."""
        assert self._pool is not None  # noqa: S101 - for the type checker
        # The pool commits by itself, but not on connections that it opened in autocommit mode.
        async with self._pool.connection() as connection, connection.transaction():
            yield connection

    @asynccontextmanager
    async def _binding(self, connection: Connection) -> AsyncIterator[AsyncBound]:
        bound = AsyncBound(self, connection)
        try:
            with shared.entered(self, bound):
                yield bound
        finally:
            async with bound._turn:
                pass

    @asynccontextmanager
    async def context(
        self,
        *,
        firm_id: Id,
        user_id: Id | None = None,
        permissions: Collection[str] = (),
    ) -> AsyncIterator[AsyncBound]:
        """Act for a firm, and perhaps a person, inside the block: see CiteLedger.context."""
        identity = calls.SET_CONTEXT.arguments(firm_id, user_id, permissions)
        connection = self._own or self._current()
        if connection is None:
            async with (
                self._checked_out() as fresh,
                self._binding(fresh) as bound,
            ):
                await self._execute(fresh, calls.SET_CONTEXT, identity)
                yield bound
        elif shared.is_alone(connection):
            async with connection.transaction(), self._binding(connection) as bound:
                await self._execute(connection, calls.SET_CONTEXT, identity)
                yield bound
        else:
            async with self._joined(connection, identity), self._binding(connection) as bound:
                yield bound

    @asynccontextmanager
    async def _joined(
        self, connection: Connection, identity: tuple[object, ...]
    ) -> AsyncIterator[None]:
        before = await self._execute(connection, calls.READ_CONTEXT, ())
        try:
            # It may be cancelled when it is done already.
            await self._execute(connection, calls.SET_CONTEXT, identity)
            yield
        finally:
            # A failed transaction takes no more SQL, and its rollback takes the context away.
            if shared.status_of(connection) == TransactionStatus.INTRANS:
                await self._send(
                    connection,
                    calls.RESTORE_CONTEXT,
                    calls.RESTORE_CONTEXT.arguments(before),
                )

    async def retry(self, work: Callable[[AsyncBound], Awaitable[T]], *, attempts: int = 5) -> T:
        """Run ``work`` in a transaction, and again when the database asks: see CiteLedger.retry."""
        for attempt in range(1, shared.attempts_argument(attempts) + 1):
            try:
                async with self._whole_transaction() as bound:
                    return await work(bound)
            except (psycopg.Error, CiteLedgerError) as error:
                if not shared.runs_again(error, attempt, attempts):
                    raise
            await asyncio.sleep(shared.pause_after(attempt))
        raise AssertionError  # pragma: no cover - the last attempt returned or raised

    @asynccontextmanager
    async def _whole_transaction(self) -> AsyncIterator[AsyncBound]:
        if self._current() is not None:
            raise shared.inside_a_transaction()
        if self._own is None:
            async with self._checked_out() as connection, self._binding(connection) as bound:
                yield bound
        else:
            if shared.status_of(self._own) != TransactionStatus.IDLE:
                raise shared.inside_a_transaction()
            async with self._own.transaction(), self._binding(self._own) as bound:
                yield bound
