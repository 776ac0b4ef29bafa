"""What a figure is: two things that are compared, what is aimed at, and what came out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from .timing import Pairs, Spread

if TYPE_CHECKING:
    from .lab import Lab


@dataclass(frozen=True, slots=True)
class Aim:
    """Where a ratio should be: at most, or at least; and what would be better still."""

    sense: Literal["at most", "at least"]
    limit: float
    hope: float | None = None

    def met(self, ratio: float) -> bool:
        """Say whether a ratio is where it should be."""
        return ratio <= self.limit if self.sense == "at most" else ratio >= self.limit

    def __str__(self) -> str:
        """Write it as the table does."""
        sign = "≤" if self.sense == "at most" else "≥"
        hope = "" if self.hope is None else f", better {self.hope:g}"
        return f"{sign} {self.limit:g}{hope}"


@dataclass(frozen=True, slots=True)
class Measured:
    """What measuring gave: times of A and of B by rounds, of what sizes, and how to read it."""

    pairs: Pairs
    sizes: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table: the ratio of A to B."""

    name: str
    a: str
    b: str
    aim: Aim | None
    """None where a figure only explains another."""
    measure: Callable[[Lab], Measured]
    full_only: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """A figure and what was measured."""

    figure: Figure
    measured: Measured

    @property
    def ratio(self) -> float:
        """The ratio of the medians."""
        return self.measured.pairs.ratio

    def as_json(self) -> dict[str, object]:
        """Write it as results.json has it; times are in seconds."""
        pairs, aim = self.measured.pairs, self.figure.aim
        spread, a, b = pairs.ratios, Spread.of(pairs.a), Spread.of(pairs.b)
        return {
            "name": self.figure.name,
            "a": self.figure.a,
            "b": self.figure.b,
            "aim": None if aim is None else str(aim),
            "ratio": _digits(self.ratio),
            "met": None if aim is None else aim.met(self.ratio),
            "quartiles": [_digits(spread.low), _digits(spread.high)],
            "rounds": len(pairs.a),
            "a_seconds": [_digits(v) for v in (a.low, a.median, a.high)],
            "b_seconds": [_digits(v) for v in (b.low, b.median, b.high)],
            "sizes": self.measured.sizes,
            "note": self.measured.note,
        }


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a plot: at x, how long it took."""

    x: float
    seconds: Spread


@dataclass(frozen=True, slots=True)
class Growth:
    """How a cost grows: the lines of one plot."""

    name: str
    title: str
    x: str
    y: str
    lines: dict[str, list[Point]]

    def as_json(self) -> dict[str, object]:
        """Write it as results.json has it."""
        return {
            "name": self.name,
            "title": self.title,
            "x": self.x,
            "y": self.y,
            "lines": {
                label: [
                    [
                        p.x,
                        _digits(p.seconds.low),
                        _digits(p.seconds.median),
                        _digits(p.seconds.high),
                    ]
                    for p in points
                ]
                for label, points in self.lines.items()
            },
        }


def _digits(value: float) -> float:
    """Keep four significant digits: no more is known."""
    return float(f"{value:.4g}")
