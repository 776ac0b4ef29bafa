"""What the calls return: frozen rows, built by pure functions from the database's JSON."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias
from uuid import UUID

Json: TypeAlias = dict[str, Any]
GateStatus: TypeAlias = Literal["fiduciary_grade", "supported_only", "flagged"]
Tier: TypeAlias = Literal["pass", "supported", "fail", "provenance"]
Direction: TypeAlias = Literal["cites", "cited_by", "both"]
Via: TypeAlias = Literal["concept", "citation"]


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


@dataclass(frozen=True, slots=True)
class MetadataOnlyViolation:
    """A column that could hold content where only metadata may be; a healthy database has none."""

    table_name: str
    column_name: str
    reason: str


@dataclass(frozen=True, slots=True)
class SourceSpan:
    """A quote, and where it is said to stand."""

    document_id: UUID
    page_number: int | None
    """From 1. None only in an answer, for a citation that names no page."""
    quote: str
    block_index: int | None = None
    """From 0; None when the quote is anchored in the page, its blocks joined by one newline."""
    char_start: int | None = None
    """In Unicode code points from 0, in the block or the page; both offsets or neither."""
    char_end: int | None = None
    """Exclusive."""


@dataclass(frozen=True, slots=True)
class CiteResolution:
    """What the live check of a span found, with the link to it when it holds."""

    verified: bool
    reason: str | None
    """Why it does not hold; None exactly when verified."""
    deep_link: str | None
    """None unless verified."""
    engine_state: str
    checked_at: datetime
    span: SourceSpan


@dataclass(frozen=True, slots=True)
class CiteError:
    """In the place of a span of ``cite_many`` that could not be looked at."""

    sqlstate: str
    message: str


@dataclass(frozen=True, slots=True)
class SpanResolution:
    """Whether a span holds against the live page, and why not."""

    verified: bool
    reason: str | None


@dataclass(frozen=True, slots=True)
class Recheck:
    """Whether a stored citation still holds after the pages of its document were replaced."""

    message_citation_id: UUID
    message_id: UUID
    verified: bool
    reason: str | None


@dataclass(frozen=True, slots=True)
class SuggestedSpan:
    """A place where a quote stands now: an offer to look at, not a verification."""

    page_number: int
    block_index: int | None
    """None when the offsets count in the page."""
    char_start: int
    char_end: int


@dataclass(frozen=True, slots=True)
class PageBlock:
    """A block of the live text."""

    page_number: int
    block_index: int
    content: str


@dataclass(frozen=True, slots=True)
class Reference:
    """One line of a document's reference list."""

    document_id: UUID | None
    """The document that it names; None unless resolved."""
    title: str | None
    doi: str
    """As printed."""
    source: str
    resolved: bool


@dataclass(frozen=True, slots=True)
class CitingDocument:
    """A document that cites another."""

    document_id: UUID
    title: str
    doi: str | None
    """The document's own."""
    source: str


@dataclass(frozen=True, slots=True)
class Citations:
    """What a document cites, in printed order, and who cites it, by title."""

    document_id: UUID
    title: str
    doi: str | None
    references: tuple[Reference, ...]
    cited_by: tuple[CitingDocument, ...]


@dataclass(frozen=True, slots=True)
class WalkedDocument:
    """A document that a walk came to, at its least hop."""

    document_id: UUID
    hop: int


@dataclass(frozen=True, slots=True)
class StagedChunk:
    """A chunk that the graph stage offers."""

    chunk_id: UUID
    hop: int
    via: Via


@dataclass(frozen=True, slots=True)
class ResolutionReport:
    """What became of references; the four fates add up to ``references_found``."""

    documents_scanned: int
    references_found: int
    matched: int
    unmatched: int
    ambiguous: int
    self_citations_skipped: int
    rows_written: int
    rows_removed: int
    dry_run: bool


@dataclass(frozen=True, slots=True)
class RecordingReport(ResolutionReport):
    """What became of a list that was recorded."""

    unusable: int
    """Entries that are no DOI, and were not stored."""


@dataclass(frozen=True, slots=True)
class DeletionReport:
    """How many rows of each kind went with the documents."""

    documents: int
    pages: int
    blocks: int
    chunks: int
    mentions: int
    relationships: int
    references: int
    citations: int


@dataclass(frozen=True, slots=True)
class CollectionReport:
    """How many rows of each kind graph_gc swept, or would sweep."""

    entities: int
    citations: int
    mentions: int
    relationships: int
    dry_run: bool


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


def span_json(span: SourceSpan) -> Json:
    """Write a span in the form of the database, where an optional key that is None is absent."""
    written = {
        "document_id": span.document_id,
        "page_number": span.page_number,
        "block_index": span.block_index,
        "char_start": span.char_start,
        "char_end": span.char_end,
        "quote": span.quote,
    }
    return {key: value for key, value in written.items() if value is not None}


def source_span(data: Json) -> SourceSpan:
    """Build a span from the form of the database."""
    return SourceSpan(
        document_id=UUID(data["document_id"]),
        page_number=data.get("page_number"),
        quote=data["quote"],
        block_index=data.get("block_index"),
        char_start=data.get("char_start"),
        char_end=data.get("char_end"),
    )


def cite_resolution(data: Json) -> CiteResolution:
    """Build the answer of cite."""
    return CiteResolution(
        verified=data["verified"],
        reason=data["reason"],
        deep_link=data["deep_link"],
        engine_state=data["engine_state"],
        checked_at=datetime.fromisoformat(data["checked_at"]),
        span=source_span(data["span"]),
    )


def cite_item(data: Json) -> CiteResolution | CiteError:
    """Build one item of the answer of cite_many."""
    if "error" in data:
        return CiteError(data["error"]["sqlstate"], data["error"]["message"])
    return cite_resolution(data)


def recheck(row: tuple[Any, ...]) -> Recheck:
    """Build one row of recheck_document."""
    return Recheck(UUID(row[0]), UUID(row[1]), row[2], row[3])


def citations(data: Json) -> Citations:
    """Build the answer of get_citations."""
    return Citations(
        document_id=UUID(data["document_id"]),
        title=data["title"],
        doi=data["doi"],
        references=tuple(
            Reference(_uuid(r["document_id"]), r["title"], r["doi"], r["source"], r["resolved"])
            for r in data["references"]
        ),
        cited_by=tuple(
            CitingDocument(UUID(c["document_id"]), c["title"], c["doi"], c["source"])
            for c in data["cited_by"]
        ),
    )
