"""What the clients know: each transaction, what it did, and whether its commit was acknowledged."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

# A condition that a client must be ready for. Whatever else is seen is a finding.
EXPECTED = {
    "23503": "the turn was deleted meanwhile",
    "40001": "a serialization failure, also after all attempts",
    "40P01": "a deadlock, also after all attempts",
    "55000": "the turn is finalized and sealed",
    "55P03": "a lock timeout",
    "57014": "a statement timeout, or a cancelled statement",
    "57P01": "the backend was terminated",
    "57P02": "another backend crashed, or the server was shut down immediately",
    "57P03": "the server is starting",
    "P0002": "the chat was deleted meanwhile",
    "lost": "the connection broke",
}


@dataclass(slots=True)
class Transaction:
    """One transaction of a client, with what it does if it is committed."""

    id: UUID
    client: int
    effects: list[tuple[Any, ...]] = field(default_factory=list)
    acknowledged: bool = False


class Journal:
    """Shared by all clients."""

    def __init__(self) -> None:
        self.transactions: list[Transaction] = []
        self.reads = 0
        self.again = 0
        self.errors: Counter[str] = Counter()
        self.unexpected: list[str] = []
        self.faults: Counter[str] = Counter()
        self._lock = threading.Lock()

    def begin(self, transaction: Transaction) -> None:
        """Note a transaction before anything of it is sent."""
        with self._lock:
            self.transactions.append(transaction)

    def read(self) -> None:
        """Count a transaction that only read."""
        with self._lock:
            self.reads += 1

    def run_again(self) -> None:
        """Count an attempt after the first: the database asked for it."""
        with self._lock:
            self.again += 1

    def fault(self, kind: str) -> None:
        """Count a fault that was made."""
        with self._lock:
            self.faults[kind] += 1

    def error(self, sqlstate: str | None, what: str) -> None:
        """Count an error that a client saw; keep one that no client should see."""
        code = sqlstate or "lost"
        with self._lock:
            self.errors[code] += 1
            if code not in EXPECTED:
                self.unexpected.append(f"{code}: {what}")

    def finding(self, what: str) -> None:
        """Keep an answer that no client should get."""
        with self._lock:
            self.unexpected.append(what)
