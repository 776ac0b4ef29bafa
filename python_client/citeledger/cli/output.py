"""What is printed: tables for people, JSON for programs, and errors in one line."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict, is_dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Final
from uuid import UUID

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from .secrets import redact

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_PIPE_WIDTH: Final = 160
# What could move the cursor, colour the terminal, or turn the direction of a line around.
_UNPRINTABLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_SPACE: Final = re.compile(r"\s+")

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value instead of a table.")]


def plain(text: object) -> str:
    """Return text that a terminal only shows: what would steer it becomes visible."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found.group()):04x}", str(text))


def one_line(text: object) -> str:
    """Return text as one line, without passwords and without what would steer a terminal."""
    return plain(_SPACE.sub(" ", redact(str(text))).strip())


def _default(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    msg = f"a {type(value).__name__} has no form in JSON"
    raise TypeError(msg)


def print_json(value: object) -> None:
    """Print one JSON value; dataclasses as objects, ids and times as text."""
    as_it_is = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(value, default=_default, ensure_ascii=not as_it_is, indent=2)
    # Half of a surrogate pair cannot be encoded; nothing of the database has one.
    sys.stdout.write(text.encode("utf-8", "replace").decode("utf-8") + "\n")


class _Trimmed:
    """A stream to which lines come padded to the width of their table, and go without that."""

    def write(self, text: str) -> int:
        sys.stdout.write("\n".join(line.rstrip(" ") for line in text.split("\n")))
        return len(text)

    def flush(self) -> None:
        sys.stdout.flush()


def console() -> Console:
    """Return where tables go: the terminal, or plain text of a fixed width."""
    found = Console(highlight=False)
    if found.is_terminal:
        return found
    return Console(file=_Trimmed(), highlight=False, width=_PIPE_WIDTH)  # type: ignore[arg-type]


def print_line(text: object, style: str = "") -> None:
    """Print one line, never wrapped."""
    console().print(Text(plain(text), style), soft_wrap=True)


def print_table(
    headings: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None
) -> None:
    """Print a table; what does not fit is folded, never cut off. None is an empty cell."""
    place = console()
    table = Table(
        box=box.SIMPLE_HEAD if place.is_terminal else box.ASCII2,
        pad_edge=False,
        show_edge=False,
        title=None if title is None else Text(plain(title)),
        title_justify="left",
    )
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*("" if cell is None else Text(plain(cell)) for cell in row))
    place.print(table)


def print_facts(facts: Iterable[tuple[str, object]]) -> None:
    """Print names and their values, one pair a line; a value of None is left out."""
    place = console()
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        if value is not None:
            table.add_row(name, Text(plain(value)))
    place.print(table)


def print_error(
    message: object, *, detail: str | None = None, hint: str | None = None, label: str = "error"
) -> None:
    """Print one line to stderr: the message, and what the database adds to it."""
    parts = [f"citeledger: {label}: {message}"]
    if detail:
        parts.append(f"DETAIL: {detail}")
    if hint:
        parts.append(f"HINT: {hint}")
    sys.stderr.write(_encodable(one_line(" ".join(parts))) + "\n")


def _encodable(text: str) -> str:
    encoding = sys.stderr.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def progress(unit: str) -> Progress:
    """Return a progress bar on stderr, which only a terminal shows."""
    shown = sys.stderr.isatty()
    return Progress(
        # A file's name is no markup.
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit, markup=False),
        TimeElapsedColumn(),
        # Also quiet: some versions of rich end a disabled bar with an empty line.
        console=Console(stderr=True, quiet=not shown),
        transient=True,
        disable=not shown,
    )
