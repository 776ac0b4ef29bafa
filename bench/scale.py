"""How much a run measures: toy sizes to show that it runs, a million, or ten million."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Scale:
    """The sizes and the numbers of rounds of one mode."""

    name: str
    ledgers: tuple[int, ...]
    """Entries of the ledgers that are compared, the smallest first; the others grow out of it."""
    rounds: int
    """Of what takes about a millisecond."""
    few: int
    """Rounds of what takes seconds."""
    turns_per_client: int
    turn_sizes: tuple[int, ...]
    backfill: int
    """Turns in one finalize_turns."""
    late: int
    trace_turns: int
    spans: int
    page_sizes: tuple[int, ...]
    documents: int
    edges: int
    degrees: tuple[int, ...]
    references: tuple[int, ...]
    """References to resolve; a fifth as many documents. The last is the size of the figures."""
    bulk: int
    """Documents in one statement."""

    @property
    def ledger(self) -> int:
        """The ledger in which single turns are measured."""
        return self.ledgers[-1]


QUICK: Final = Scale(
    name="quick",
    ledgers=(500, 2_000),
    rounds=10,
    few=2,
    turns_per_client=5,
    turn_sizes=(1, 10, 100),
    backfill=50,
    late=30,
    trace_turns=10,
    spans=50,
    page_sizes=(1_000, 40_000),
    documents=500,
    edges=3_000,
    degrees=(3, 10),
    references=(500, 2_000),
    bulk=100,
)
STANDARD: Final = Scale(
    name="standard",
    ledgers=(10_000, 100_000, 1_000_000),
    rounds=300,
    few=4,
    turns_per_client=120,
    turn_sizes=(1, 3, 10, 30, 100, 300, 1_000),
    backfill=10_000,
    late=1_000,
    trace_turns=100,
    spans=1_000,
    page_sizes=(1_000, 4_000, 10_000, 40_000, 100_000),
    documents=100_000,
    edges=1_000_000,
    degrees=(3, 10, 30),
    references=(1_000, 10_000, 100_000),
    bulk=10_000,
)
FULL: Final = Scale(
    name="full",
    ledgers=(10_000, 100_000, 1_000_000, 10_000_000),
    rounds=500,
    few=3,
    turns_per_client=300,
    turn_sizes=(1, 3, 10, 30, 100, 300, 1_000),
    backfill=100_000,
    late=1_000,
    trace_turns=100,
    spans=1_000,
    page_sizes=(1_000, 4_000, 10_000, 40_000, 100_000),
    documents=1_000_000,
    edges=10_000_000,
    degrees=(3, 10, 30),
    references=(1_000, 10_000, 100_000, 1_000_000),
    bulk=10_000,
)
SCALES: Final = {scale.name: scale for scale in (QUICK, STANDARD, FULL)}
