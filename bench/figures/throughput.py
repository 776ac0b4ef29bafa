"""Turns per second of several clients at once: whole transactions, each client its own process.

Ours begins, sets the context, finalizes and commits; the floor begins, inserts and commits. Both
share the machine with their server, as they would at home.
"""

from __future__ import annotations

import multiprocessing
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import floors
from ..figure import Aim, Figure, Measured
from ..lab import CONTEXT
from ..ledger_data import FIRM, read_turns, same_ledger
from ..server import APP, FLOOR
from ..timing import Pairs
from ..wire import Wire, text
from .finalize import FINALIZE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.connection import Connection as Pipe
    from multiprocessing.process import BaseProcess

    from ..wire import Parameters

    Steps = Sequence[tuple[str, Parameters]]

SOURCES = 10
WARM = 2
"""Rounds in which plans and caches get ready."""


def _client(dsn: str, statements: dict[str, str], pipe: Any) -> None:
    """Run what comes through the pipe, transaction by transaction, and say when it is done."""
    with Wire(dsn) as wire:
        for name, statement in statements.items():
            wire.prepare(name, statement)
        pipe.send(None)
        while (work := pipe.recv()) is not None:
            pipe.send(None)
            pipe.recv()
            for steps in work:
                for name, parameters in steps:
                    wire.execute(name, parameters)
            pipe.send(None)


class _Clients:
    """Processes that each hold a connection and wait for work."""

    def __init__(self, number: int, dsn: str, statements: dict[str, str]) -> None:
        # A copy of this process is there at once; it uses nothing of it but the code.
        context = multiprocessing.get_context("fork")
        self._pipes: list[Pipe[Any, Any]] = []
        self._processes: list[BaseProcess] = []
        for _ in range(number):
            here, there = context.Pipe()
            process = context.Process(target=_client, args=(dsn, statements, there), daemon=True)
            process.start()
            self._pipes.append(here)
            self._processes.append(process)
        self._all_say_so()

    def seconds(self, work: Sequence[Sequence[Steps]]) -> float:
        """Give each client its transactions, start them at once, and wait for the last."""
        for pipe, share in zip(self._pipes, work, strict=True):
            pipe.send(share)
        self._all_say_so()
        start = time.perf_counter()
        for pipe in self._pipes:
            pipe.send(None)
        self._all_say_so()
        return time.perf_counter() - start

    def _all_say_so(self) -> None:
        for pipe, process in zip(self._pipes, self._processes, strict=True):
            while not pipe.poll(1):
                if not process.is_alive():
                    raise RuntimeError("a client of the throughput ended before its work was done")
            pipe.recv()

    def close(self) -> None:
        """Send the clients home."""
        for pipe in self._pipes:
            pipe.send(None)
        for process in self._processes:
            process.join(10)
            if process.is_alive():
                process.terminate()


def turns_per_second(lab: Lab, number: int) -> Measured:
    """Compare the throughput of so many clients; A is ours, and its ratio that of the rates."""
    database, each = lab.ledger(), lab.scale.turns_per_client
    rounds = lab.scale.few + WARM
    ids = database.open_turns(2 * number * each * rounds)
    ours, theirs = ids[::2], ids[1::2]
    database.settle_down()
    begin: list[tuple[str, Parameters]] = [("begin", ()), ("context", [text(FIRM)])]
    our_work: list[Steps] = [
        [*begin, ("finalize", [text(message_id)]), ("commit", ())] for message_id in ours
    ]
    their_work: list[Steps] = [
        [("begin", ()), *floors.steps(turn), ("commit", ())]
        for turn in read_turns(database.superuser, theirs)
    ]

    def share(work: list[Steps], number_of_round: int) -> list[list[Steps]]:
        first = number_of_round * number * each
        return [work[first + c * each : first + (c + 1) * each] for c in range(number)]

    a = _Clients(
        number,
        lab.bench.dsn(APP, database.name),
        {"context": CONTEXT, "finalize": FINALIZE},
    )
    b = _Clients(
        number,
        lab.bench.dsn(FLOOR, database.name),
        {f"entries_{SOURCES}": floors.entries_statement(SOURCES), "gate": floors.GATE},
    )
    taken_a, taken_b = [], []
    try:
        for number_of_round in range(rounds):
            seconds_a = a.seconds(share(our_work, number_of_round))
            seconds_b = b.seconds(share(their_work, number_of_round))
            if number_of_round >= WARM:
                taken_a.append(seconds_a / (number * each))
                taken_b.append(seconds_b / (number * each))
    finally:
        a.close()
        b.close()
    same_ledger(database.superuser, ours, theirs)
    rates = Pairs(tuple(1 / s for s in taken_a), tuple(1 / s for s in taken_b))
    return Measured(
        rates,
        f"{number} client{'s' * (number > 1)}, {each} turns of 10 sources each a round",
        "turns per second; a higher ratio is better",
    )


if TYPE_CHECKING:
    from ..lab import Lab

FIGURES = tuple(
    Figure(
        f"finalize_tps_vs_floor_{number}",
        f"turns finalized per second by {number} client{'s' * (number > 1)}",
        "turns written by hand per second",
        Aim("at least", 0.75),
        partial(turns_per_second, number=number),
    )
    for number in (1, 4, 8)
)
