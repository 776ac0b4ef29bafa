"""The client: the caller's connection or pool, the caller's transaction, one call per method."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row
from psycopg_pool import ConnectionPool

from . import calls, shared
from .errors import CiteLedgerError, translated
from .methods import Id, Methods

if TYPE_CHECKING:
    from .calls import Call

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Connection: TypeAlias = psycopg.Connection[Any]


class Bound(shared.Block[Connection], Methods):
    """A client on one connection, for the length of a block."""

    __slots__ = ("_client",)

    def __init__(self, client: CiteLedger, connection: Connection) -> None:
        """Be made by CiteLedger.context or CiteLedger.retry, not by hand."""
        super().__init__(connection, get_ident())
        self._client = client

    def _run(self, call: Call[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        parameters = call.arguments(*args, **kwargs)
        return self._client._execute(self.connection, call, parameters)


class CiteLedger(Methods):
    """Calls citeledger's functions through a connection or a pool that the caller owns.

    On a connection, every call joins the caller's transaction and never commits it. With a pool,
    a call outside of a ``context`` block runs on a connection of its own, in its own transaction.
    A client over a pool may be shared between threads.

    ``prepare_threshold``: after how many runs one of the client's statements is prepared on its
    connection (0: at once). None, the default, never prepares one, which is what a pooler in
    transaction mode needs.
    """

    __slots__ = ("_own", "_pool", "_prepare_threshold", "_version_known")

    def __init__(
        self,
        connection_or_pool: Connection | ConnectionPool[Any],
        *,
        prepare_threshold: int | None = None,
    ) -> None:
        """Take what the caller opened, and leave closing it to the caller."""
        self._own: Connection | None = None
        self._pool: ConnectionPool[Any] | None = None
        if isinstance(connection_or_pool, psycopg.Connection):
            self._own = connection_or_pool
        elif isinstance(connection_or_pool, ConnectionPool):
            self._pool = connection_or_pool
        else:
            raise shared.not_a_handle(
                connection_or_pool, "psycopg.Connection or a psycopg_pool.ConnectionPool"
            )
        self._prepare_threshold = shared.threshold_argument(prepare_threshold)
        self._version_known = False

    # Running one call

    def _run(self, call: Call[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        parameters = call.arguments(*args, **kwargs)
        # A transaction of this one call may also fail at its commit.
        with translated(), self._borrowed() as connection:
            return self._execute(connection, call, parameters)

    def _execute(
        self, connection: Connection, call: Call[..., R], parameters: tuple[object, ...]
    ) -> R:
        if not self._version_known and call is not calls.VERSION:
            self._check_version(connection)
        return self._send(connection, call, parameters)

    def _send(
        self, connection: Connection, call: Call[..., R], parameters: tuple[object, ...]
    ) -> R:
        threshold = self._prepare_threshold
        before = connection.prepare_threshold
        # The client's own cursor: the connection may have another kind, with another placeholder.
        with translated(), psycopg.Cursor(connection, row_factory=tuple_row) as cursor:
            if threshold is None:
                cursor.execute(call.sql, parameters, prepare=False)
            else:
                connection.prepare_threshold = threshold
                try:
                    cursor.execute(call.sql, parameters)
                finally:
                    connection.prepare_threshold = before
            return call.result(cursor.fetchall())

    def _check_version(self, connection: Connection) -> None:
        if not self._send(connection, calls.HAS_VERSION, ()):
            raise shared.not_installed()
        self._version_known = shared.known(self._send(connection, calls.VERSION, ()))

    # Connections and transactions

    def _current(self) -> Connection | None:
        """Return the connection of the block that one can be nested in."""
        block = shared.innermost(self)
        if block is None or not block.is_open_for(get_ident()):
            return None
        connection: Connection = block.connection
        return connection

    @contextmanager
    def _borrowed(self) -> Iterator[Connection]:
        """Give the connection for one call; with a pool, and outside a block, a transaction too."""
        if self._own is not None:
            yield self._own
        elif (block := shared.innermost(self)) is not None:
            yield block.connection_for(get_ident())
        else:
            with self._checked_out() as connection:
                yield connection

    @contextmanager
    def _checked_out(self) -> Iterator[Connection]:
        """Check a connection out of the pool for one transaction."""
        assert self._pool is not None  # noqa: S101 - for the type checker
        # The pool commits by itself, but not on connections that it opened in autocommit mode.
        with self._pool.connection() as connection, connection.transaction():
            yield connection

    @contextmanager
    def _binding(self, connection: Connection) -> Iterator[Bound]:
        bound = Bound(self, connection)
        with shared.entered(self, bound):
            yield bound

    @contextmanager
    def context(
        self,
        *,
        firm_id: Id,
        user_id: Id | None = None,
        permissions: Collection[str] = (),
    ) -> Iterator[Bound]:
        """Act for a firm, and perhaps a person, inside the block.

        The context is local to the transaction. A transaction of the caller is joined, never
        committed or rolled back, and gets the context back that it had; on a connection that is
        not in autocommit mode, the caller's transaction begins here and stays open. On a
        connection in autocommit mode, and with a pool, the block is a transaction of its own:
        committed at its end, rolled back when it raises.
        """
        identity = calls.SET_CONTEXT.arguments(firm_id, user_id, permissions)
        connection = self._own or self._current()
        if connection is None:
            with (
                self._checked_out() as fresh,
                self._binding(fresh) as bound,
            ):
                self._execute(fresh, calls.SET_CONTEXT, identity)
                yield bound
        elif shared.is_alone(connection):
            with connection.transaction(), self._binding(connection) as bound:
                self._execute(connection, calls.SET_CONTEXT, identity)
                yield bound
        else:
            with self._joined(connection, identity), self._binding(connection) as bound:
                yield bound

    @contextmanager
    def _joined(self, connection: Connection, identity: tuple[object, ...]) -> Iterator[None]:
        before = self._execute(connection, calls.READ_CONTEXT, ())
        try:
            self._execute(connection, calls.SET_CONTEXT, identity)
            yield
        finally:
            # A failed transaction takes no more SQL, and its rollback takes the context away.
            if shared.status_of(connection) == TransactionStatus.INTRANS:
                self._send(
                    connection,
                    calls.RESTORE_CONTEXT,
                    calls.RESTORE_CONTEXT.arguments(before),
                )

    def retry(self, work: Callable[[Bound], T], *, attempts: int = 5) -> T:
        """Run ``work`` in a transaction, and again when the database asks for it.

        A serialization failure (40001) or a deadlock (40P01) undoes the transaction, which then
        runs again, at most ``attempts`` times in all, after a short pause that grows and varies.
        Only the whole transaction can run again, so this refuses to work inside one.
        """
        for attempt in range(1, shared.attempts_argument(attempts) + 1):
            try:
                with self._whole_transaction() as bound:
                    return work(bound)
            except (psycopg.Error, CiteLedgerError) as error:
                if not shared.runs_again(error, attempt, attempts):
                    raise
            time.sleep(shared.pause_after(attempt))
        raise AssertionError  # pragma: no cover - the last attempt returned or raised

    @contextmanager
    def _whole_transaction(self) -> Iterator[Bound]:
        if self._current() is not None:
            raise shared.inside_a_transaction()
        if self._own is None:
            with self._checked_out() as connection, self._binding(connection) as bound:
                yield bound
        else:
            if shared.status_of(self._own) != TransactionStatus.IDLE:
                raise shared.inside_a_transaction()
            with self._own.transaction(), self._binding(self._own) as bound:
                yield bound
