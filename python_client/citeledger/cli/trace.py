"""``citeledger trace``: the ledger and the verdicts of a chat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from citeledger.rows import CaselawSource, DocumentSource, ToolSource

from .connection import Access, DatabaseUrl, Firm, Permissions, User, acting
from .ids import given_id, optional_id
from .output import AsJson, print_json, print_line, print_table

if TYPE_CHECKING:
    from citeledger.rows import LedgerEntry

_QUOTED: Final = 120


def trace(
    chat: Annotated[str, typer.Argument(metavar="CHAT", help="The id of the chat.")],
    message: Annotated[
        str | None, typer.Option("--message", metavar="ID", help="Only this turn of it.")
    ] = None,
    database_url: DatabaseUrl = None,
    firm: Firm = None,
    user: User = None,
    permission: Permissions = None,
    as_json: AsJson = False,
) -> None:
    """Show what each turn of a chat relied on, and its verdict.

    The passages come from the documents at this moment, as the database gives them. Whether they
    still stand on their pages is another question: see citeledger cite, and citeledger report.

    Examples:

        citeledger trace 01234567-89ab-cdef-0123-456789abcdef
        citeledger trace 01234567-89ab-cdef-0123-456789abcdef --json
    """
    chat_id, message_id = given_id("CHAT", chat), optional_id("--message", message)
    with acting(Access(database_url, firm, user, permission)) as bound:
        found = bound.ledger_trace(chat_id, message_id)
    if as_json:
        print_json(found)
        return
    if not found.entries and not found.gates:
        print_line("No turn of this chat is finalized.")
        return
    print_table(
        ("turn", "verdict", "pass", "supported", "fail", "unknown", "confidence"),
        [
            (
                gate.message_id,
                gate.gate_status,
                gate.pass_count,
                gate.supported_count,
                gate.fail_count,
                gate.unrecognized_count,
                None if gate.confidence is None else f"{gate.confidence:.2f}",
            )
            for gate in found.gates
        ],
        title="Verdicts",
    )
    print_line("")
    print_table(
        ("turn", "kind", "status", "tier", "source"),
        [
            (
                entry.message_id,
                entry.source_kind,
                entry.verification_status,
                entry.tier or "unknown",
                _source(entry),
            )
            for entry in found.entries
        ],
        title="Ledger",
    )


def _source(entry: LedgerEntry) -> str:
    """Describe a source: its quote and place, or what the tool called it."""
    source = entry.source
    if isinstance(source, ToolSource):
        return _short(" ".join(filter(None, (source.label, source.url))))
    if source is None:
        return ""
    if source.passages is None:
        return "(withheld)" if isinstance(source, DocumentSource) and source.withheld else ""
    quote = _short(" … ".join(passage.text or "" for passage in source.passages))
    if isinstance(source, CaselawSource):
        return f"“{quote}” opinion {source.opinion_id}"
    if source.page is None:
        return f"“{quote}”"
    block = "" if source.block is None else f", block {source.block}"
    return f"“{quote}” page {source.page}{block}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _QUOTED else f"{line[: _QUOTED - 1]}…"
