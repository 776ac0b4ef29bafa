"""What goes wrong: backends ended and killed, statements cancelled, the server shut down."""

from __future__ import annotations

import os
import random
import signal
import threading
import time

import psycopg

from soak.journal import Journal
from soak.server import Server, connected

# How many of each there are in a minute.
PER_MINUTE = {
    "pg_terminate_backend": 60.0,
    "pg_cancel_backend": 30.0,
    "kill -9 of a backend": 6.0,
    "immediate shutdown and restart": 3.0,
}
# Rather one that is at work, and in the middle of a transaction.
VICTIMS = """
select a.pid
from pg_stat_activity as a
where a.datname = current_database() and a.usename like 'soak%' and a.pid <> pg_backend_pid()
order by a.state = 'idle', a.xact_start is null, a.pid
"""


class Faults(threading.Thread):
    """Makes faults, one after the other, in an order that the seed gives."""

    def __init__(self, seed: str, server: Server, journal: Journal, scale: float = 1.0) -> None:
        super().__init__(name="faults", daemon=True)
        self._chance = random.Random(f"{seed}/faults")
        self._server = server
        self._journal = journal
        self._scale = scale
        self._ended = threading.Event()

    def end(self) -> None:
        """Make no more."""
        self._ended.set()
        self.join()

    def run(self) -> None:
        """Make faults until the end."""
        total = sum(PER_MINUTE.values()) * self._scale
        # At least one of each, also in a short soak.
        due = list(PER_MINUTE)
        self._chance.shuffle(due)
        while not self._ended.wait(self._chance.expovariate(total / 60)):
            kind = (
                due.pop()
                if due
                else self._chance.choices(list(PER_MINUTE), list(PER_MINUTE.values()))[0]
            )
            try:
                if self._make(kind):
                    self._journal.fault(kind)
            except psycopg.Error:
                # The server is not back from the last one.
                time.sleep(0.05)

    def _make(self, kind: str) -> bool:
        if kind == "immediate shutdown and restart":
            self._server.crash()
            self._server.start()
            connected(self._server).close()
            return True
        with connected(self._server) as superuser:
            victims = [pid for (pid,) in superuser.execute(VICTIMS).fetchall()]
            if not victims:
                return False
            pid = self._chance.choice(victims[: max(1, len(victims) // 2)])
            if kind == "kill -9 of a backend":
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    return False
                return True
            row = superuser.execute(f"select {kind}(%s)", (pid,)).fetchone()
            return row == (True,)
