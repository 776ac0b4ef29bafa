"""What the calls return: frozen rows, built by pure functions from the database's JSON."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias
from uuid import UUID

Json: TypeAlias = dict[str, Any]
GateStatus: TypeAlias = Literal["fiduciary_grade", "supported_only", "flagged"]
Tier: TypeAlias = Literal["pass", "supported", "fail", "provenance"]


@dataclass(frozen=True, slots=True)
class Gate:
    """The verdict of one turn, with the counts that it follows from."""

    id: UUID
    message_id: UUID
    chat_id: UUID
    project_id: UUID | None
    gate_status: GateStatus
    pass_count: int
    supported_count: int
    fail_count: int
    total_assertions: int
    unrecognized_count: int
    confidence: float | None
    computed_at: datetime
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Failure:
    """A step of the finalize that failed: which one, and with what SQLSTATE."""

    stage: str
    sqlstate: str


@dataclass(frozen=True, slots=True)
class FinalizeReport:
    """What finalizing a turn did."""

    message_id: UUID | None
    finalized: bool
    entries_written: int
    gate: Gate | None
    """None when the turn has no verdict: a step failed, or it is not an assistant's turn."""
    failures: tuple[Failure, ...]


@dataclass(frozen=True, slots=True)
class Passage:
    """A quoted span; both offsets or neither."""

    text: str | None
    offset_start: int | None
    offset_end: int | None


@dataclass(frozen=True, slots=True)
class DocumentSource:
    """A span of one of the firm's documents."""

    kind: str
    document_id: UUID | None
    page: int | None
    block: int | None
    passages: tuple[Passage, ...] | None
    """None when withheld: the document is privileged or deleted."""
    withheld: bool


@dataclass(frozen=True, slots=True)
class CaselawSource:
    """A span of a court's opinion."""

    kind: str
    opinion_id: int
    cluster_id: int | None
    partial: bool
    passages: tuple[Passage, ...] | None


@dataclass(frozen=True, slots=True)
class ToolSource:
    """What a tool brought into the turn: provenance, not an assertion."""

    kind: str
    label: str | None
    subtitle: str | None
    url: str | None
    external_ref: str | None
    tool: str | None


Source: TypeAlias = DocumentSource | CaselawSource | ToolSource


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One source of one turn."""

    id: UUID
    message_id: UUID
    source_kind: str
    verification_status: str
    tier: Tier | None
    """None for a status that the gate does not recognise."""
    confidence: float | None
    provider: str | None
    retrieved_at: datetime | None
    treatment_id: UUID | None
    created_at: datetime
    source: Source | None


@dataclass(frozen=True, slots=True)
class LedgerTrace:
    """The ledger of a chat, or of one of its turns, with the verdicts."""

    chat_id: UUID
    entries: tuple[LedgerEntry, ...]
    gates: tuple[Gate, ...]


@dataclass(frozen=True, slots=True)
class IntegrityProblem:
    """Something that does not hold together; a healthy database has none."""

    problem: str
    table_name: str
    row_key: str


def _uuid(value: str | None) -> UUID | None:
    return None if value is None else UUID(value)


def _time(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)


def _number(value: float | None) -> float | None:
    return None if value is None else float(value)


def gate(data: Json) -> Gate:
    """Build a verdict from the row's columns."""
    return Gate(
        id=UUID(data["id"]),
        message_id=UUID(data["message_id"]),
        chat_id=UUID(data["chat_id"]),
        project_id=_uuid(data["project_id"]),
        gate_status=data["gate_status"],
        pass_count=data["pass_count"],
        supported_count=data["supported_count"],
        fail_count=data["fail_count"],
        total_assertions=data["total_assertions"],
        unrecognized_count=data["unrecognized_count"],
        confidence=_number(data["confidence"]),
        computed_at=datetime.fromisoformat(data["computed_at"]),
        created_at=datetime.fromisoformat(data["created_at"]),
    )


def optional_gate(data: Json | None) -> Gate | None:
    """Build a verdict, or None from a missing row, which may also come as a row of nulls."""
    return None if data is None or data["id"] is None else gate(data)


def finalize_report(data: Json) -> FinalizeReport:
    """Build the report of finalize_turn."""
    return FinalizeReport(
        message_id=_uuid(data["message_id"]),
        finalized=data["finalized"],
        entries_written=data["entries_written"],
        gate=optional_gate(data["gate"]),
        failures=tuple(Failure(f["stage"], f["sqlstate"]) for f in data["failures"]),
    )


def _passages(data: list[Json] | None) -> tuple[Passage, ...] | None:
    if data is None:
        return None
    return tuple(Passage(p["text"], p["offset_start"], p["offset_end"]) for p in data)


def source(data: Json) -> Source:
    """Build the kind of source that the keys say, since a tool may name any kind."""
    if "opinion_id" in data:
        return CaselawSource(
            kind=data["kind"],
            opinion_id=data["opinion_id"],
            cluster_id=data["cluster_id"],
            partial=data["partial"],
            passages=_passages(data["passages"]),
        )
    if "passages" in data:
        return DocumentSource(
            kind=data["kind"],
            document_id=_uuid(data["document_id"]),
            page=data["page"],
            block=data["block"],
            passages=_passages(data["passages"]),
            withheld=data.get("withheld", False),
        )
    return ToolSource(
        kind=data["kind"],
        label=data["label"],
        subtitle=data["subtitle"],
        url=data["url"],
        external_ref=data["external_ref"],
        tool=data["tool"],
    )


def ledger_entry(data: Json) -> LedgerEntry:
    """Build one entry of a trace."""
    return LedgerEntry(
        id=UUID(data["id"]),
        message_id=UUID(data["message_id"]),
        source_kind=data["source_kind"],
        verification_status=data["verification_status"],
        tier=data["tier"],
        confidence=_number(data["confidence"]),
        provider=data["provider"],
        retrieved_at=_time(data["retrieved_at"]),
        treatment_id=_uuid(data["treatment_id"]),
        created_at=datetime.fromisoformat(data["created_at"]),
        source=None if data["source"] is None else source(data["source"]),
    )


def ledger_trace(data: Json) -> LedgerTrace:
    """Build the trace of a chat."""
    return LedgerTrace(
        chat_id=UUID(data["chat_id"]),
        entries=tuple(ledger_entry(e) for e in data["entries"]),
        gates=tuple(gate(g) for g in data["gates"]),
    )
