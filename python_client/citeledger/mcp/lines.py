"""Reads the messages of stdin: no line longer than is allowed, and JSON of one meaning only.

The SDK's own reader takes a line of any length, NaN, and the last of two equal keys. Here a line is
looked at before the SDK gets it. One that has two meanings is answered with an error; one that is
too long ends the door, as nothing of it may be kept to answer with.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, BinaryIO, Final

import anyio.to_thread

LONGEST_LINE: Final = 1_048_576

Answer = Callable[[int | str | None, str], Awaitable[None]]


class LineTooLongError(Exception):
    """A message was longer than the door reads."""


class Lines:
    """The lines of a stream, as the SDK asks for them; ``answer`` is told of those that are bad."""

    def __init__(self, stream: BinaryIO, answer: Answer, longest: int = LONGEST_LINE) -> None:
        """Take the stream; it is not closed here."""
        self._stream = stream
        self._answer = answer
        self._longest = longest

    async def __aiter__(self) -> AsyncIterator[str]:
        """Give the good lines."""
        while True:
            line = await anyio.to_thread.run_sync(
                self._stream.readline, self._longest + 1, abandon_on_cancel=True
            )
            if not line:
                return
            if len(line) > self._longest:
                raise LineTooLongError
            if not line.strip():
                continue
            try:
                problem, identifier = _problem(line)
            except (ValueError, RecursionError):
                problem, identifier = "The message is not JSON.", None
            if problem is None:
                yield line.decode("utf-8")
            else:
                await self._answer(identifier, problem)


class _Found:
    """What is wrong with a message, as far as it was read."""

    def __init__(self) -> None:
        self.problem: str | None = None

    def pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """Read an object, and notice a key that is there twice."""
        found = dict(pairs)
        if len(found) < len(pairs):
            self.problem = "A key is given twice."
        return found

    def constant(self, _: str) -> None:
        """Notice NaN and its like."""
        self.problem = "A number is not finite."


def _problem(line: bytes) -> tuple[str | None, int | str | None]:
    """Say what is wrong with a message, or None, and the id to answer to."""
    found = _Found()
    message = json.loads(
        line.decode("utf-8"), object_pairs_hook=found.pairs, parse_constant=found.constant
    )
    identifier = message.get("id") if isinstance(message, dict) else None
    if isinstance(identifier, bool) or not isinstance(identifier, int | str):
        identifier = None
    return found.problem, identifier
