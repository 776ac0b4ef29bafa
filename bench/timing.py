"""Two things in turn, many times: the ratio of their medians, and how far it spreads."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """The quartiles of some measurements."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Take the quartiles."""
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(low, median, high)


@dataclass(frozen=True, slots=True)
class Pairs:
    """What A and B took, in seconds, round by round."""

    a: tuple[float, ...]
    b: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """The median of A over the median of B."""
        return statistics.median(self.a) / statistics.median(self.b)

    @property
    def ratios(self) -> Spread:
        """The quartiles of the ratio within a round."""
        return Spread.of([a / b for a, b in zip(self.a, self.b, strict=True)])

    @property
    def turned(self) -> Pairs:
        """The same rounds, B over A."""
        return Pairs(self.b, self.a)


def in_turn(a: Callable[[], float], b: Callable[[], float], rounds: int, *, warm: int = 3) -> Pairs:
    """Measure A B A B; the first rounds warm caches and plans and do not count."""
    taken_a, taken_b = [], []
    # The collector of the client would stop one side or the other.
    gc.collect()
    gc.disable()
    try:
        for number in range(-warm, rounds):
            seconds_a, seconds_b = a(), b()
            if number >= 0:
                taken_a.append(seconds_a)
                taken_b.append(seconds_b)
    finally:
        gc.enable()
    return Pairs(tuple(taken_a), tuple(taken_b))
