"""Reads Crossref's works out of a file one by one, in memory that does not grow with the file.

The file is a list of works, one work, one work a line (JSON Lines), or Crossref's answer with its
list of items; each work may be the ``message`` of an answer of its own. gzip is seen by itself.
"""

from __future__ import annotations

import gzip
import io
import json
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


class _TooDeepError(Exception):
    """A nesting that no work has."""


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


class Works:
    """The records of an open file; ``taken`` of its bytes have been read."""

    def __init__(self, file: IO[bytes]) -> None:
        """Look at how the file begins."""
        self._counted = _Counted(file)
        raw: io.BufferedReader[Any] = io.BufferedReader(self._counted, 1 << 16)
        if raw.peek(2)[:2] == _GZIP:
            raw = io.BufferedReader(gzip.GzipFile(fileobj=raw), 1 << 16)
        self._text = raw

    @property
    def taken(self) -> int:
        """How many bytes of the file, packed as it may be, have been read."""
        return self._counted.taken

    def __iter__(self) -> Iterator[Record]:
        """Give the records; a file that breaks off gives a last one that says so."""
        position = 0
        try:
            for position, value in enumerate(self._values(), start=1):
                yield _record(position, value)
        except _BROKEN:
            yield Record(position + 1, None, "the file is not whole: its gzip data break off")
        except _TooDeepError:
            yield Record(position + 1, None, f"it is nested too deeply; {_NOTHING_BEHIND}")
        except (ijson.JSONError, UnicodeDecodeError):
            yield Record(position + 1, None, f"the file is no JSON from here on; {_NOTHING_BEHIND}")

    def _values(self) -> Iterator[Any]:
        first = self._first_line()
        if first.strip() and first.rstrip().endswith(b"}") and first.lstrip().startswith(b"{"):
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

    def _lines(self, first: bytes) -> Iterator[Any]:
        line = first
        while line:
            if not line.endswith(b"\n") and len(line) >= _LONGEST_LINE:
                while line and not line.endswith(b"\n"):
                    line = self._text.readline(_LONGEST_LINE)
                yield _Unusable(f"the line is longer than {_LONGEST_LINE} bytes")
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


def _streamed(file: io.BufferedReader[Any]) -> Iterator[Any]:
    """Give the works of a list wherever it stands, or the one value that has no list."""
    events = _shallow(ijson.basic_parse(file, multiple_values=True))
    for event, value in events:
        if event == "start_array":
            yield from _items(events)
        elif event == "start_map":
            yield from _answer(events)
        else:
            yield value


def _shallow(events: Iterable[_Event]) -> Iterator[_Event]:
    """Pass the events on, and stop at a nesting that no work has."""
    depth = 0
    for event, value in events:
        if event.startswith("start_"):
            depth += 1
            if depth > _DEEPEST:
                raise _TooDeepError
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
