"""Drives several sessions against each other, by what the server says and never by the clock.

A session works on a connection of its own in a thread of its own. ``start`` sends a statement and
returns; ``blocked`` waits until pg_stat_activity shows that its backend waits for a lock, which is
the moment to go on with the other session. A test thus forces an interleaving instead of hoping.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg

_POLL_SECONDS = 0.005
DEADLINE = 15.0


class Session:
    """One connection, worked by one thread."""

    def __init__(
        self, name: str, connection: psycopg.Connection[Any], watch: psycopg.Connection[Any]
    ) -> None:
        self.name = name
        self.connection = connection
        self.pid = connection.info.backend_pid
        self._watch = watch
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._pending: Future[Any] | None = None

    def call(self, work: Callable[[psycopg.Connection[Any]], Any]) -> None:
        """Start any work on the connection, without waiting for it."""
        assert self._pending is None, f"{self.name} is still at work"
        self._pending = self._thread.submit(work, self.connection)

    def start(self, statement: str, parameters: Sequence[Any] = ()) -> None:
        """Send a statement, without waiting for it."""

        def work(connection: psycopg.Connection[Any]) -> list[Any] | None:
            cursor = connection.execute(statement, parameters)
            return cursor.fetchall() if cursor.description else None

        self.call(work)

    def result(self, timeout: float = DEADLINE) -> Any:
        """Wait for what was started; return its rows, or raise what it raised."""
        assert self._pending is not None, f"{self.name} has nothing to wait for"
        try:
            return self._pending.result(timeout)
        finally:
            # Kept while it still waits, so that close() ends its backend.
            if self._pending.done():
                self._pending = None

    def run(self, statement: str, parameters: Sequence[Any] = ()) -> Any:
        """Send a statement and wait for it."""
        self.start(statement, parameters)
        return self.result()

    def value(self, statement: str, parameters: Sequence[Any] = ()) -> Any:
        """Send a statement and return the one value of its one row."""
        return self.run(statement, parameters)[0][0]

    def error(self) -> psycopg.Error | None:
        """Wait for what was started; return the error it raised, or None."""
        try:
            self.result()
        except psycopg.Error as error:
            return error
        return None

    def commit(self) -> None:
        """Commit the session's transaction."""
        self.call(lambda connection: connection.commit())
        self.result()

    def rollback(self) -> None:
        """Roll the session's transaction back."""
        self.call(lambda connection: connection.rollback())
        self.result()

    @property
    def done(self) -> bool:
        """Whether what was started has ended."""
        return self._pending is None or self._pending.done()

    def is_waiting(self) -> bool:
        """Ask the server whether the backend waits for a lock at this moment."""
        row = self._watch.execute(
            "select from pg_catalog.pg_stat_activity as a"
            " where a.pid = %s and a.wait_event_type = 'Lock'",
            (self.pid,),
        ).fetchone()
        return row is not None

    def blocked(self, timeout: float = DEADLINE) -> None:
        """Wait until the backend waits for a lock; fail when it ends without."""
        deadline = time.monotonic() + timeout
        while not self.is_waiting():
            if self.done:
                outcome = self.error() or "its result"
                msg = f"{self.name} was to wait for a lock, but ended with {outcome}"
                raise AssertionError(msg)
            if time.monotonic() > deadline:
                msg = f"{self.name} neither waited for a lock nor ended within {timeout} s"
                raise AssertionError(msg)
            time.sleep(_POLL_SECONDS)

    def close(self) -> None:
        """End the session, also one that still waits."""
        if not self.done:
            self._watch.execute("select pg_catalog.pg_terminate_backend(%s)", (self.pid,))
        self._thread.shutdown(wait=True)
        self.connection.close()


class Race:
    """Opens sessions on one database and closes them all."""

    def __init__(self, connect: Callable[..., psycopg.Connection[Any]], superuser: str) -> None:
        self._connect = connect
        self._watch = connect(superuser, autocommit=True)
        self._sessions: list[Session] = []

    def session(
        self,
        user: str,
        *,
        isolation: psycopg.IsolationLevel | None = None,
        before: Callable[[psycopg.Connection[Any]], Any] | None = None,
    ) -> Session:
        """Open a session as a role; ``before`` runs first, in the session's transaction."""
        connection = self._connect(user)
        if isolation is not None:
            connection.isolation_level = isolation
        name = f"session {len(self._sessions) + 1} ({user})"
        session = Session(name, connection, self._watch)
        self._sessions.append(session)
        if before is not None:
            session.call(before)
            session.result()
        return session

    def close(self) -> None:
        """Close every session and the connection that watched them."""
        try:
            for session in self._sessions:
                session.close()
        finally:
            self._watch.close()


@contextmanager
def race(
    connect: Callable[..., psycopg.Connection[Any]], superuser: str = "postgres"
) -> Iterator[Race]:
    """Give a race for the length of the block; ``connect(user, **kwargs)`` opens connections."""
    running = Race(connect, superuser)
    try:
        yield running
    finally:
        running.close()
