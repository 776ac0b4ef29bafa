"""Reads Crossref's works out of a file one by one, in memory that does not grow with the file.

The file is a list of works, one work, one work a line (JSON Lines), or Crossref's answer with its
list of items; each work may be the ``message`` of an answer of its own. gzip is seen by itself.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final, TypeAlias

import ijson
from ijson.common import ObjectBuilder

if TYPE_CHECKING:
    from pathlib import Path

_GZIP: Final = b"\x1f\x8b"
_LONGEST_LINE: Final = 8 * 2**20
_DEEPEST: Final = 64
# Beyond this the parser fails, and far beyond it takes the whole process with it.
_LONG_NUMBER: Final = re.compile(rb"[0-9]{1001,}")
_NOTHING_BEHIND: Final = "nothing behind it was read"
_Event: TypeAlias = tuple[str, Any]
_BROKEN: Final = (EOFError, gzip.BadGzipFile, zlib.error)


@dataclass(frozen=True, slots=True)
class Record:
    """One record of the file: a work, or the reason why it is none."""

    position: int
    """From 1, in the order of the file."""
    work: Mapping[str, Any] | None
    reason: str | None = None


class _TooMuchError(Exception):
    """What no work has: a nesting too deep, or a number or a text too long."""


class _Guarded(io.RawIOBase):
    """JSON on its way to the parser, which trusts it more than one may.

    Its time grows with the square of a text's length, and a number of very many digits crashes it.
    """

    def __init__(self, file: io.BufferedReader[Any] | io.BytesIO) -> None:
        super().__init__()
        self._file = file
        self._tail = b""
        self._refused = False
        self.silent = 0
        """How many bytes the parser has taken since it last found anything in them."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = b"" if self._refused else self._file.read(len(buffer))
        if (found := _LONG_NUMBER.search(self._tail + data)) is not None:
            # What stands before it is given first.
            self._refused = True
            data = data[: max(found.start() - len(self._tail), 0)]
            self._tail = b""
        if self._refused and not data:
            raise _TooMuchError("a number in it is too long")
        self._tail = (self._tail + data)[-1000:]
        self.silent += len(data)
        if self.silent > _LONGEST_LINE:
            raise _TooMuchError("a text in it is too long")
        buffer[: len(data)] = data
        return len(data)


class _Counted(io.RawIOBase):
    """A file that knows how much of it was read, for a progress bar."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file
        self.taken = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self.taken += len(data)
        return len(data)


class _Unpacked(io.RawIOBase):
    """What gzip data hold, up to their end or to where they break off."""

    def __init__(self, packed: io.BufferedReader[Any]) -> None:
        super().__init__()
        self._gzip = gzip.GzipFile(fileobj=packed)
        self.broken = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self.broken:
            return 0
        try:
            # read1 gives what is unpacked so far; read would drop it when the data break off.
            data = self._gzip.read1(len(buffer))
        except _BROKEN:
            self.broken = True
            return 0
        buffer[: len(data)] = data
        return len(data)


class Works:
    """The records of an open file; ``taken`` of its bytes have been read."""

    def __init__(self, file: IO[bytes]) -> None:
        """Look at how the file begins."""
        self._counted = _Counted(file)
        raw: io.BufferedReader[Any] = io.BufferedReader(self._counted, 1 << 16)
        self._unpacked: _Unpacked | None = None
        if raw.peek(2)[:2] == _GZIP:
            self._unpacked = _Unpacked(raw)
            raw = io.BufferedReader(self._unpacked, 1 << 16)
        self._text = raw

    @property
    def empty(self) -> bool:
        """Whether there is nothing in the file at all; asked before anything is read of it."""
        return not self._text.peek(1) and not self._broken

    @property
    def _broken(self) -> bool:
        """Whether reading has come to where the gzip data break off."""
        return self._unpacked is not None and self._unpacked.broken

    @property
    def taken(self) -> int:
        """How many bytes of the file, packed as it may be, have been read."""
        return self._counted.taken

    def __iter__(self) -> Iterator[Record]:
        """Give the records; a file that breaks off gives a last one that says so."""
        position = 0
        reason = None
        try:
            for position, value in enumerate(self._values(), start=1):
                yield _record(position, value)
        except _TooMuchError as error:
            reason = f"{error}; {_NOTHING_BEHIND}"
        except (ijson.JSONError, UnicodeDecodeError, ArithmeticError):
            reason = f"the file is no JSON from here on; {_NOTHING_BEHIND}"
        if self._broken:
            reason = "the file is not whole: its gzip data break off"
        if reason is not None:
            yield Record(position + 1, None, reason)

    def _values(self) -> Iterator[Any]:
        first = self._first_line()
        if _is_one_object(first):
            yield from self._lines(first)
        else:
            yield from _streamed(io.BufferedReader(_Rejoined(first, self._text)))

    def _first_line(self) -> bytes:
        """Read the first line that is not blank, or as much of it as a line may have."""
        line = b""
        while not line.strip():
            line = self._text.readline(_LONGEST_LINE)
            if not line:
                return b""
            line = line.removeprefix(b"\xef\xbb\xbf")
        return line

    def _is_cut(self, line: bytes) -> bool:
        """Say whether the data break off in, or right after, this line."""
        return self._broken and not line.endswith(b"\n")

    def _lines(self, first: bytes) -> Iterator[Any]:
        line = first
        while line:
            if not line.endswith(b"\n") and len(line) >= _LONGEST_LINE:
                while line and not line.endswith(b"\n"):
                    line = self._text.readline(_LONGEST_LINE)
                yield _Unusable(f"the line is longer than {_LONGEST_LINE} bytes")
            elif self._is_cut(line):
                # A stream gives what is whole in it.
                yield from _streamed(io.BytesIO(line))
            elif line.strip():
                yield from _of_line(line)
            line = self._text.readline(_LONGEST_LINE)


class _Rejoined(io.RawIOBase):
    """The line that was read already, and then the rest."""

    def __init__(self, first: bytes, rest: io.BufferedReader[Any]) -> None:
        super().__init__()
        self._first = memoryview(first)
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._first:
            size = min(len(buffer), len(self._first))
            buffer[:size] = self._first[:size]
            self._first = self._first[size:]
            return size
        return self._rest.readinto(buffer)


@dataclass(frozen=True, slots=True)
class _Unusable:
    reason: str


def _is_one_object(line: bytes) -> bool:
    """Say whether a line looks like a whole object, good or bad, and not like part of one."""
    text = line.strip()
    return (
        text.startswith(b"{")
        and text.endswith(b"}")
        and len(line) < _LONGEST_LINE
        and text.count(b"{") == text.count(b"}")
        and text.count(b"[") == text.count(b"]")
    )


def _record(position: int, value: Any) -> Record:
    if isinstance(value, _Unusable):
        return Record(position, None, value.reason)
    work = value
    if isinstance(work, Mapping) and isinstance(work.get("message"), Mapping):
        work = work["message"]
    if not isinstance(work, Mapping):
        return Record(position, None, "it is not an object")
    return Record(position, work)


def _of_line(line: bytes) -> Iterator[Any]:
    try:
        value = json.loads(line)
    except RecursionError:
        yield _Unusable("the line is nested too deeply")
        return
    except ValueError:
        yield _Unusable("the line is no JSON")
        return
    listed = _listed(value)
    if listed is None:
        yield value
    else:
        yield from listed


def _listed(value: Any) -> list[Any] | None:
    """Return the works of an answer that has a list of them."""
    for holder in (value, value.get("message") if isinstance(value, dict) else None):
        if isinstance(holder, dict) and isinstance(holder.get("items"), list):
            items: list[Any] = holder["items"]
            return items
    return value if isinstance(value, list) else None


def _streamed(file: io.BufferedReader[Any] | io.BytesIO) -> Iterator[Any]:
    """Give the works of a list wherever it stands, or the one value that has no list."""
    guarded = _Guarded(file)
    events = _shallow(ijson.basic_parse(guarded, multiple_values=True), guarded)
    for event, value in events:
        if event == "start_array":
            yield from _items(events)
        elif event == "start_map":
            yield from _answer(events)
        else:
            yield value


def _shallow(events: Iterable[_Event], guarded: _Guarded) -> Iterator[_Event]:
    """Pass the events on, and stop at a nesting that no work has."""
    depth = 0
    for event, value in events:
        guarded.silent = 0
        if event.startswith("start_"):
            depth += 1
            if depth > _DEEPEST:
                raise _TooMuchError("it is nested too deeply")
        elif event.startswith("end_"):
            depth -= 1
        yield event, value


def _answer(events: Iterator[_Event]) -> Iterator[Any]:
    """Read the rest of an object: give the items that it or its message lists, or else itself."""
    whole: dict[str, Any] = {}
    given = False
    for event, key in events:
        if event == "end_map":
            break
        event, value = next(events)
        if key == "items" and event == "start_array":
            given = True
            yield from _items(events)
        elif key == "message" and event == "start_map":
            given = True
            yield from _answer(events)
        else:
            whole[key] = _value(event, value, events)
    if not given:
        yield whole


def _items(events: Iterator[_Event]) -> Iterator[Any]:
    """Give the values of a list that has begun, up to its end."""
    for event, value in events:
        if event == "end_array":
            return
        yield _value(event, value, events)


def _value(event: str, value: Any, events: Iterator[_Event]) -> Any:
    """Build the value that begins with an event."""
    if not event.startswith("start_"):
        return value
    building = ObjectBuilder()
    building.event(event, value)
    open_ones = 1
    while open_ones:
        event, value = next(events)
        building.event(event, value)
        open_ones += event.startswith("start_") - event.startswith("end_")
    return building.value


@contextmanager
def open_works(path: Path) -> Iterator[Works]:
    """Open a file of works."""
    # Unbuffered: what a pipe has so far is given on at once.
    with path.open("rb", buffering=0) as file:
        yield Works(file)
