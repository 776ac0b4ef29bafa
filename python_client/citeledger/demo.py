"""A small matter from beginning to end: three turns, one of each verdict, and clicks on quotes.

Run it as ``python -m citeledger.demo``. It starts a private PostgreSQL, installs citeledger, plays
the matter as a role that has only citeledger_app, shows what the database then says, and removes
everything again.
"""

from __future__ import annotations

import argparse
import io
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO
from uuid import UUID

import psycopg
from psycopg import sql

from .client import CiteLedger
from .embedded import EmbeddedServerError, Installed, installed
from .rows import (
    CaselawSource,
    CiteResolution,
    DocumentSource,
    Gate,
    LedgerEntry,
    LedgerTrace,
    ToolSource,
)

if TYPE_CHECKING:
    from types import FrameType

    from rich.console import Console

WIDTH: Final = 100
_READ: Final = ("matters:read",)

LEASE: Final = "Lease, 14 Ropewalk Lane"
LETTER: Final = "Letter of the tenant, 3 March"
NOTICE: Final = "The Tenant shall give not less than ninety (90) days' written notice."
ROOF: Final = "The Landlord shall keep the roof and the outer walls in good repair."

# The text of the pages, block by block, as a scanner read them.
PAGES: Final = {
    LEASE: {
        4: ["4. Repairs", f"4.1 {ROOF}"],
        7: ["11. Term and notice", "11.1 The Term ends on 31 May.", f"11.2 {NOTICE}"],
        9: [
            "15. Deposit",
            "15.1 The Deposit is held apart from the Landlord's own money.",
            "15.2 It bears no interest.",
            "15.3 The Deposit equals two months' rent.",
            "15.4 The Landlord may retain so much of the Deposit as the damage requires.",
        ],
    },
    LETTER: {
        1: [
            "We hereby give notice that we will not renew\nthe lease.",
            "We thank you for four good years.",
            "One thing has to be said.",
            "It rained in twice this winter. We wrote to you each time, and nobody came.",
        ]
    },
}
SCANNED_AGAIN: Final = NOTICE.replace("ninety (90)", "nincty (9O)")
"""What a worse scan makes of clause 11.2."""


@dataclass(frozen=True, slots=True)
class Source:
    """A source that a turn brought into context, as the application records it."""

    table: str
    values: dict[str, Any]
    document: str | None = None
    why: str | None = None
    """What the checker of the application found, for a citation that did not hold."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A question, the assistant's answer, and the answer's sources."""

    question: str
    answer: str
    sources: tuple[Source, ...] = field(default=())


def _quote(
    document: str,
    text: str,
    method: str,
    confidence: float,
    *,
    page: int,
    block: int,
    why: str | None = None,
) -> Source:
    return Source(
        "message_citations",
        {
            "source_page": page,
            "source_block": block,
            "source_text": text,
            "verified": method != "failed",
            "verification_method": method,
            "verification_confidence": confidence,
        },
        document,
        why,
    )


TURNS: Final = (
    Turn(
        "How long before the end of the term must the tenant give notice, and from when does the "
        "period run?",
        "Ninety days, in writing (clause 11.2). The period runs from the day on which the landlord "
        "receives the notice, not from the day on which it was posted.",
        (
            _quote(
                LEASE,
                NOTICE,
                "exact_match",
                1.0,
                page=7,
                block=2,
            ),
            _quote(
                LETTER,
                "We hereby give notice that we will not renew the lease.",
                "tolerant_match",
                0.96,
                page=1,
                block=0,
            ),
            Source(
                "message_caselaw_citations",
                {
                    "opinion_id": 4410021,
                    "cluster_id": 3120077,
                    "source_text": "A notice by post takes effect on receipt.",
                    "verified": True,
                    "verification_method": "exact_match",
                    "verification_confidence": 1.0,
                },
            ),
        ),
    ),
    Turn(
        "Did the landlord keep the roof in repair?",
        "The tenant says that water came in twice and that the landlord, though told, sent nobody. "
        "The lease puts the roof on the landlord.",
        (
            _quote(
                LETTER,
                "Twice this winter the rain came through, and nobody was sent although we asked.",
                "paraphrase_judge",
                0.81,
                page=1,
                block=3,
            ),
            _quote(
                LEASE,
                ROOF,
                "exact_match",
                1.0,
                page=4,
                block=1,
            ),
            Source(
                "message_tool_sources",
                {
                    "source_kind": "weather",
                    "label": "Rainfall, January and February",
                    "subtitle": "Harbour station",
                    "url": "https://weather.example/harbour/2026",
                    "external_ref": "harbour-2026-q1",
                    "provider": "weather-archive",
                    "tool": "weather_history",
                },
            ),
        ),
    ),
    Turn(
        "May the landlord keep the whole deposit?",
        "Yes: clause 15 lets the landlord keep the whole deposit after any breach.",
        (
            _quote(
                LEASE,
                "The Landlord may retain the whole of the Deposit upon any breach.",
                "failed",
                0.12,
                page=9,
                block=4,
                why="Clause 15 reads: “so much of the Deposit as the damage requires”. "
                "The quoted words are not on the page.",
            ),
            _quote(
                LEASE,
                "The Deposit equals two months' rent.",
                "exact_match",
                1.0,
                page=9,
                block=3,
            ),
        ),
    ),
)

BADGES: Final = {
    "fiduciary_grade": ("FIDUCIARY GRADE", "bold white on green", "every assertion was matched"),
    "supported_only": ("SUPPORTED ONLY", "bold black on yellow", "some rest on a judgement"),
    "flagged": ("FLAGGED", "bold white on red", "at least one citation does not hold"),
}
REASONS: Final = {
    "page_missing": "the page is gone",
    "quote_absent": "the quoted words are not on the page as it is now",
    "text_mismatch": "other words stand there now",
}
TIER_STYLES: Final = {"pass": "green", "supported": "yellow", "fail": "bold red"}


@dataclass(frozen=True, slots=True)
class Click:
    """Somebody clicked a quote: when, which one, and what the live check found."""

    when: str
    quote: str
    found: CiteResolution


@dataclass(frozen=True, slots=True)
class Played:
    """The matter as it was recorded: which turn is which, and what the database says of it."""

    matter_number: str
    turns: dict[UUID, Turn]
    trace: LedgerTrace
    reasons: dict[tuple[UUID, str], str]
    clicks: tuple[Click, ...]


def _insert(connection: psycopg.Connection[Any], table: str, values: dict[str, Any]) -> UUID:
    """Insert a row as an application would; firm_id comes from the context."""
    statement = sql.SQL("insert into citeledger.{} ({}) values ({}) returning id").format(
        sql.Identifier(table),
        sql.SQL(", ").join(map(sql.Identifier, values)),
        sql.SQL(", ").join(map(sql.Placeholder, values)),
    )
    row = connection.execute(statement, values).fetchone()
    assert row is not None  # noqa: S101 - an insert that returns, returns
    return UUID(str(row[0]))


def make_firm(place: Installed) -> UUID:
    """Onboard the firm, which takes citeledger_admin."""
    with psycopg.connect(place.admin_dsn) as connection:
        row = connection.execute("select citeledger.create_firm(%s)", ("Harbour Legal",)).fetchone()
    assert row is not None  # noqa: S101
    return UUID(str(row[0]))


def play(place: Installed) -> Played:
    """Record three turns, finalize each, and trace the chat; one transaction per step."""
    firm_id = make_firm(place)
    matter_number = "2026-0147"
    turns: dict[UUID, Turn] = {}
    reasons: dict[tuple[UUID, str], str] = {}
    with psycopg.connect(place.app_dsn, autocommit=True) as connection:
        client = CiteLedger(connection)
        with client.context(firm_id=firm_id, permissions=_READ):
            project_id = _insert(
                connection,
                "projects",
                {"matter_number": matter_number, "name": "Ropewalk Lane: end of the lease"},
            )
            documents = {
                title: _insert(connection, "documents", {"project_id": project_id, "title": title})
                for title in PAGES
            }
            for title, pages in PAGES.items():
                client.replace_document_pages(documents[title], _written(pages))
            chat_id = _insert(
                connection, "chats", {"project_id": project_id, "title": "Questions on the lease"}
            )
        for turn in TURNS:
            # The turn and what it used are recorded and sealed together, or not at all.
            with client.context(firm_id=firm_id, permissions=_READ):
                _insert(
                    connection,
                    "messages",
                    {"chat_id": chat_id, "role": "user", "content": turn.question},
                )
                message_id = _insert(
                    connection,
                    "messages",
                    {"chat_id": chat_id, "role": "assistant", "content": turn.answer},
                )
                for source in turn.sources:
                    anchor = (
                        {"source_document_id": documents[source.document]}
                        if source.document
                        else {}
                    )
                    _insert(
                        connection,
                        source.table,
                        {"message_id": message_id, **anchor, **source.values},
                    )
                    if source.why is not None:
                        reasons[message_id, source.values["source_text"]] = source.why
                client.finalize_turn(message_id)
            turns[message_id] = turn
        with client.context(firm_id=firm_id, permissions=_READ):
            trace = client.ledger_trace(chat_id)
            notice, roof = (_entry_of(trace, quote) for quote in (NOTICE, ROOF))
            clicks = [Click("First click", NOTICE, client.cite_ledger_entry(notice))]
        with client.context(firm_id=firm_id, permissions=_READ):
            pages = PAGES[LEASE] | {7: [*PAGES[LEASE][7][:2], f"11.2 {SCANNED_AGAIN}"]}
            client.replace_document_pages(documents[LEASE], _written(pages))
        with client.context(firm_id=firm_id, permissions=_READ):
            clicks += [
                Click("Second click", NOTICE, client.cite_ledger_entry(notice)),
                Click("Another quote", ROOF, client.cite_ledger_entry(roof)),
            ]
    return Played(matter_number, turns, trace, reasons, tuple(clicks))


def _written(pages: dict[int, list[str]]) -> list[dict[str, object]]:
    return [{"page_number": number, "blocks": blocks} for number, blocks in pages.items()]


def _entry_of(trace: LedgerTrace, quote: str) -> UUID:
    """Find the entry of a quote, as an application knows it from the link that it shows."""
    for entry in trace.entries:
        if _quoted(entry) == f"“{quote}”":
            return entry.id
    raise LookupError(quote)


# Showing it


class _Unpadded(io.StringIO):
    """Takes the spaces away that a table pads its lines with."""

    def __init__(self, target: TextIO) -> None:
        super().__init__()
        self._target = target
        self._line = ""

    def write(self, text: str) -> int:
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._target.write(line.rstrip() + "\n")
        return len(text)

    def flush(self) -> None:
        self._target.flush()


def _quoted(entry: LedgerEntry, length: int = 1000) -> str:
    source = entry.source
    if isinstance(source, DocumentSource | CaselawSource):
        if not source.passages:
            return "(withheld)"
        return f"“{_shortened(source.passages[0].text or '', length - 2)}”"
    if isinstance(source, ToolSource):
        return _shortened(", ".join(p for p in (source.label, source.subtitle) if p), length)
    return ""


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def _place(entry: LedgerEntry) -> str:
    source = entry.source
    if isinstance(source, DocumentSource):
        return f"page {source.page}, block {source.block}"
    if isinstance(source, CaselawSource):
        return f"opinion {source.opinion_id}"
    return ""


def _confidence(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _counts(gate: Gate) -> str:
    parts = [
        f"{gate.pass_count} matched",
        f"{gate.supported_count} supported",
        f"{gate.fail_count} failed",
    ]
    text = f"{gate.total_assertions} assertions: {', '.join(parts)}"
    if gate.confidence is not None:
        text += f"; mean confidence {gate.confidence:.2f}"
    return text


def show(played: Played, console: Console) -> None:
    """Print what a person wants to see of the matter."""
    gates = {gate.message_id: gate for gate in played.trace.gates}
    console.print()
    console.print(f"Matter {played.matter_number}, Ropewalk Lane: end of the lease", style="bold")
    console.print(
        "Three questions to an assistant. Every source of an answer was recorded in the turn; the "
        "database then wrote the ledger and computed the verdict."
    )
    for number, (message_id, turn) in enumerate(played.turns.items(), start=1):
        entries = [e for e in played.trace.entries if e.message_id == message_id]
        _show_turn(console, number, turn, gates[message_id], entries, played.reasons)
    _show_clicks(console, played.clicks)


def _show_turn(
    console: Console,
    number: int,
    turn: Turn,
    gate: Gate,
    entries: list[LedgerEntry],
    reasons: dict[tuple[UUID, str], str],
) -> None:
    from rich import box
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    badge, style, meaning = BADGES[gate.gate_status]
    console.print()
    _rule(console, f"Turn {number}")
    facts = Table.grid(padding=(0, 2, 0, 0))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column()
    facts.add_row("Question", Text(turn.question))
    facts.add_row("Answer", Text(turn.answer))
    label = Text(f" {badge} ", style) if console.is_terminal else Text(f"[{badge}]")
    facts.add_row("Verdict", Text.assemble(label, f"  {meaning}"))
    facts.add_row("", Text(_counts(gate), "dim"))
    console.print(facts)
    table = Table(
        box=box.SIMPLE_HEAD if console.is_terminal else box.ASCII2,
        pad_edge=False,
        show_edge=console.is_terminal,
    )
    for heading in ("kind", "status", "tier"):
        table.add_column(heading, no_wrap=True)
    table.add_column("conf.", justify="right", no_wrap=True, min_width=5)
    table.add_column("provider", no_wrap=True)
    table.add_column("quote or source")
    for entry in entries:
        tier = entry.tier or "unknown"
        table.add_row(
            Text(entry.source_kind),
            Text(entry.verification_status),
            Text(tier, TIER_STYLES.get(tier, "")),
            Text(_confidence(entry.confidence)),
            Text(entry.provider or ""),
            Text(_quoted(entry, 56)),
        )
    console.print(Padding(table, (1, 0, 0, 0)))
    for entry in entries:
        if entry.tier == "fail":
            _show_failure(console, entry, reasons)


def _show_failure(
    console: Console, entry: LedgerEntry, reasons: dict[tuple[UUID, str], str]
) -> None:
    from rich.table import Table
    from rich.text import Text

    quote = _quoted(entry)
    why = reasons.get((entry.message_id, quote.strip("“”")), "It was recorded as unverified.")
    facts = Table.grid(padding=(0, 2, 0, 0))
    facts.add_column(style="bold red", no_wrap=True)
    facts.add_column()
    facts.add_row("What failed", Text(f"{quote} ({_place(entry)})"))
    facts.add_row("Why", Text(why))
    console.print()
    console.print(facts)


def _show_clicks(console: Console, clicks: tuple[Click, ...]) -> None:
    from rich.table import Table
    from rich.text import Text

    console.print()
    _rule(console, "Clicks")
    console.print(
        "A quote is compared with the live page whenever somebody clicks it, byte for byte. Only "
        "what holds gets a link."
    )
    first, *later = clicks
    facts = Table.grid(padding=(0, 2, 0, 0))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column()

    def add(click: Click) -> None:
        found = click.found
        badge = "VERIFIED" if found.verified else "NEEDS RE-VERIFICATION"
        style = "bold white on green" if found.verified else "bold white on red"
        label = Text(f" {badge} ", style) if console.is_terminal else Text(f"[{badge}]")
        facts.add_row("", "")
        facts.add_row(click.when, Text(f"“{click.quote}”"))
        facts.add_row("", label)
        facts.add_row("", Text(found.deep_link or _why(found)))

    add(first)
    facts.add_row("", "")
    facts.add_row("Scanned again", Text(f"Page 7 now reads “{SCANNED_AGAIN}”"))
    for click in later:
        add(click)
    console.print(facts)


def _why(found: CiteResolution) -> str:
    reason = found.reason or ""
    return f"{reason}: {REASONS.get(reason, 'it no longer holds')}. There is no link."


def _rule(console: Console, title: str) -> None:
    console.rule(title, align="left", characters="─" if console.is_terminal else "-")


def show_end(console: Console, directory: Path | None) -> None:
    """Say what to read next, and what is left behind."""
    console.print()
    console.print("Read next: README.md for your own database, docs/ for the guide and the errors.")
    if directory is None:
        console.print("Nothing is left behind: the private server and its data were removed.")
    else:
        console.print(f"The server was stopped; its data is in {directory}.", soft_wrap=True)
    console.print()


class _Interrupts:
    """Turns the first interrupt or termination into an exception, and ignores any further one.

    The exception unwinds the with statements that stop the server and remove its data; a second
    signal must not stop that.
    """

    def __init__(self) -> None:
        self.exit_code: int | None = None
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._first)

    def _first(self, number: int, _frame: FrameType | None) -> None:
        self.ignore()
        self.exit_code = 128 + number
        raise KeyboardInterrupt

    def ignore(self) -> None:
        """Let nothing interrupt what follows."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)


def main(arguments: list[str] | None = None) -> int:
    """Play the matter, show it, and clean up."""
    parser = argparse.ArgumentParser(prog="python -m citeledger.demo", description=__doc__)
    parser.add_argument(
        "--directory",
        type=Path,
        help="keep the server's data in this directory, instead of a temporary one that is removed",
    )
    options = parser.parse_args(arguments)
    try:
        from rich.console import Console
    except ImportError:
        print(
            "The demo needs its extra: in the folder of citeledger, pip install '.[demo]'",
            file=sys.stderr,
        )
        return 1
    # A character that the output cannot show must not end the demo.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    console = Console(highlight=False)
    if console.is_terminal:
        console.width = min(console.width, WIDTH)
    else:
        # Plain text, as wide as a printed page whatever the pipe leads to.
        console = Console(file=_Unpadded(sys.stdout), highlight=False, width=WIDTH)
    interrupts = _Interrupts()
    if console.is_terminal:
        console.print("Starting a private PostgreSQL and installing citeledger …", style="dim")
    try:
        with installed(options.directory) as place:
            show(play(place), console)
            interrupts.ignore()
    except (KeyboardInterrupt, psycopg.Error, EmbeddedServerError) as error:
        # An interrupt may come out as the failure of what it interrupted.
        if interrupts.exit_code is not None:
            return interrupts.exit_code
        if isinstance(error, EmbeddedServerError):
            print(f"The demo could not run: {error}", file=sys.stderr)
            return 1
        raise
    show_end(console, options.directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
