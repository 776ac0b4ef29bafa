"""The ledger by hand: what a client must send to leave the rows that a finalize leaves.

The client is taken to know everything beforehand: the turn's chat and matter, which sources it has,
what each verification means, the counts and the verdict. It reads nothing, checks nothing, guards
nothing, locks nothing, and does not set the message's ``finalized_at``. It sends values to the same
tables, with their keys, foreign keys, checks, indexes and triggers, in one transaction that is as
durable. That is the least that anybody could do; whatever is more is what the functions cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .ledger_data import FIRM, Turn
from .wire import text

if TYPE_CHECKING:
    from .wire import Parameters, Wire

GATE: Final = (
    "insert into citeledger.work_product_fiduciary_gate (firm_id, chat_id, project_id, message_id,"
    " gate_status, pass_count, supported_count, fail_count, total_assertions, unrecognized_count,"
    " confidence) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
)
SEAL: Final = (
    "update citeledger.messages set finalized_at = clock_timestamp()"
    " where firm_id = $1 and id = $2 and finalized_at is null"
)


def entries_statement(count: int) -> str:
    """Return the statement that inserts so many entries of one turn."""
    rows = ", ".join(
        "($1, $2, $3, $4, " + ", ".join(f"${5 + 8 * n + i}" for i in range(8)) + ")"
        for n in range(count)
    )
    return (
        "insert into citeledger.citation_ledger_entry (firm_id, chat_id, project_id, message_id,"
        " source_kind, message_citation_id, message_caselaw_citation_id, message_tool_source_id,"
        f" verification_status, confidence, provider, retrieved_at) values {rows}"
    )


def prepare(wire: Wire, sources: int) -> None:
    """Prepare the statements of a turn with so many sources."""
    wire.prepare(f"entries_{sources}", entries_statement(sources))
    wire.prepare("gate", GATE)
    wire.prepare("seal", SEAL)


def steps(turn: Turn) -> tuple[tuple[str, Parameters], ...]:
    """Return what is to be sent for a turn, the parameters ready."""
    place = [text(v) for v in (FIRM, turn.chat_id, turn.project_id, turn.message_id)]
    values = [
        text(value)
        for e in turn.entries
        for value in (
            e.source_kind, e.citation, e.caselaw, e.tool, e.status, e.confidence, e.provider,
            e.retrieved_at,
        )
    ]  # fmt: skip
    return (
        (f"entries_{len(turn.entries)}", [*place, *values]),
        ("gate", [*place, *(text(v) for v in turn.gate)]),
    )


def seal(turn: Turn) -> tuple[str, Parameters]:
    """Return what sets a turn's ``finalized_at``, for a floor that is to leave that too."""
    return ("seal", [text(FIRM), text(turn.message_id)])
