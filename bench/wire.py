"""Prepared statements as the protocol has them: the parameters ready, no adaptation in between.

A driver's own work would be added to both sides of a comparison, and more of it to the side that
sends more values; here neither pays it. Where the driver is part of the question it is used.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from psycopg import pq

if TYPE_CHECKING:
    from types import TracebackType

    from psycopg.pq.abc import PGresult

_FINE = (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK)
Parameters = Sequence[bytes | None]


class Wire:
    """One connection and its prepared statements."""

    def __init__(self, dsn: str) -> None:
        """Connect; raise when that fails."""
        self._connection = pq.PGconn.connect(dsn.encode())
        if self._connection.status != pq.ConnStatus.OK:
            raise RuntimeError(self._connection.error_message.decode())
        # What a run warns of is not for the terminal.
        self._connection.notice_handler = None
        for statement in ("begin", "commit", "rollback"):
            self.prepare(statement, statement)

    def __enter__(self) -> Self:
        """Give the connection itself."""
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the connection."""
        self._connection.finish()

    def prepare(self, name: str, statement: str) -> None:
        """Prepare a statement under a name."""
        self._check(self._connection.prepare(name.encode(), statement.encode()))

    def execute(self, name: str, parameters: Parameters = ()) -> bytes | None:
        """Execute a prepared statement; return the first value of its first row."""
        result = self._connection.exec_prepared(name.encode(), parameters or None)  # type: ignore[arg-type]
        self._check(result)
        return result.get_value(0, 0) if result.ntuples and result.nfields else None

    def run(self, statement: str) -> None:
        """Run a statement that is not worth preparing."""
        self._check(self._connection.exec_(statement.encode()))

    def timed(self, *steps: tuple[str, Parameters]) -> float:
        """Execute prepared statements one after the other; return how many seconds they took."""
        execute = self._connection.exec_prepared
        results = []
        calls = [(name.encode(), parameters or None) for name, parameters in steps]
        start = time.perf_counter()
        for name, parameters in calls:
            results.append(execute(name, parameters))  # type: ignore[arg-type]
        seconds = time.perf_counter() - start
        for result in results:
            self._check(result)
        return seconds

    def _check(self, result: PGresult) -> None:
        if result.status not in _FINE:
            raise RuntimeError(result.error_message.decode())


def text(value: object) -> bytes | None:
    """Write a value as the server's input functions read it; None is null."""
    return None if value is None else str(value).encode()
