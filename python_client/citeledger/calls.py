"""The one table of what the client can ask the database: SQL, arguments, row type.

A call is data and pure functions, no input or output, so that a client over another kind of
connection runs the same table. JSON is asked for as text and read here: a caller's connection may
have its own idea of how jsonb, uuid or timestamps are to be loaded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, ParamSpec, TypeAlias, TypeVar
from uuid import UUID

from . import arguments as check
from . import rows

P = ParamSpec("P")
R = TypeVar("R")
Row: TypeAlias = tuple[Any, ...]
Span: TypeAlias = rows.SourceSpan | Mapping[str, object]
Pages: TypeAlias = Collection[Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Call(Generic[P, R]):
    """One statement: how it is asked, how its arguments are checked, what its rows become."""

    name: str
    sql: str
    arguments: Callable[P, tuple[object, ...]]
    result: Callable[[Sequence[Row]], R]


def _value(result: Sequence[Row]) -> Any:
    return result[0][0]


def _json(result: Sequence[Row]) -> Any:
    value = _value(result)
    return None if value is None else json.loads(value)


def _none(_: Sequence[Row]) -> None:
    return None


def _no_arguments() -> tuple[object, ...]:
    return ()


def _message(message_id: UUID | str) -> tuple[object, ...]:
    return (check.uuid_argument("message_id", message_id),)


def _messages(message_ids: Iterable[UUID | str]) -> tuple[object, ...]:
    return (check.uuids_argument("message_ids", message_ids),)


def _limit(limit: int) -> tuple[object, ...]:
    return (check.int_argument("limit", limit),)


def _trace(chat_id: UUID | str, message_id: UUID | str | None) -> tuple[object, ...]:
    return (
        check.uuid_argument("chat_id", chat_id),
        check.optional_uuid_argument("message_id", message_id),
    )


def _context(
    firm_id: UUID | str,
    user_id: UUID | str | None,
    permissions: Collection[str],
) -> tuple[object, ...]:
    return (
        check.uuid_argument("firm_id", firm_id),
        check.optional_uuid_argument("user_id", user_id),
        check.texts_argument("permissions", permissions),
    )


def _plain(span: object) -> object:
    """Write a SourceSpan as the mapping that it stands for; anything else goes as it is."""
    return rows.span_json(span) if isinstance(span, rows.SourceSpan) else span


def _plain_list(spans: object) -> object:
    if isinstance(spans, str | bytes | Mapping) or not isinstance(spans, Iterable):
        return spans
    return [_plain(span) for span in spans]


def _span(span: Span) -> tuple[object, ...]:
    return (check.json_argument(check.SPAN, _plain(span)),)


def _matter_span(matter_id: UUID | str, span: Span) -> tuple[object, ...]:
    return (check.uuid_argument("matter_id", matter_id), *_span(span))


def _matter_spans(matter_id: UUID | str, spans: Iterable[Span]) -> tuple[object, ...]:
    return (
        check.uuid_argument("matter_id", matter_id),
        check.json_argument("spans", _plain_list(spans)),
    )


def _suggest(matter_id: UUID | str, span: Span, limit: int) -> tuple[object, ...]:
    return (*_matter_span(matter_id, span), check.int_argument("limit", limit))


def _entry(entry_id: UUID | str) -> tuple[object, ...]:
    return (check.uuid_argument("entry_id", entry_id),)


def _document(document_id: UUID | str) -> tuple[object, ...]:
    return (check.uuid_argument("document_id", document_id),)


def _document_pages(document_id: UUID | str, pages: Pages) -> tuple[object, ...]:
    return (*_document(document_id), check.json_argument("pages", pages))


def _pages_of(
    matter_id: UUID | str, document_id: UUID | str, page_number: int | None
) -> tuple[object, ...]:
    return (
        check.uuid_argument("matter_id", matter_id),
        check.uuid_argument("document_id", document_id),
        None if page_number is None else check.int_argument("page_number", page_number),
    )


def _doi(doi: str | None) -> tuple[object, ...]:
    return (check.optional_text_argument("doi", doi),)


def _list_of(
    document_id: UUID | str, dois: Collection[str | None], source: str
) -> tuple[object, ...]:
    return (
        *_document(document_id),
        check.optional_texts_argument("dois", dois),
        check.text_argument("source", source),
    )


def _work_of(document_id: UUID | str, work: Mapping[str, object]) -> tuple[object, ...]:
    return (*_document(document_id), check.json_argument("work", work))


def _dry_run(dry_run: bool) -> tuple[object, ...]:
    return (check.bool_argument("dry_run", dry_run),)


def _walk(document_ids: Iterable[UUID | str], max_hops: int, direction: str) -> tuple[object, ...]:
    return (
        check.uuids_argument("document_ids", document_ids),
        check.int_argument("max_hops", max_hops),
        check.text_argument("direction", direction),
    )


def _stage(
    entity_names: Collection[str],
    max_hops: int,
    include_citations: bool,
    scope: Mapping[str, object],
    limit: int,
) -> tuple[object, ...]:
    return (
        check.texts_argument("entity_names", entity_names),
        check.int_argument("max_hops", max_hops),
        check.bool_argument("include_citations", include_citations),
        check.json_argument("scope", scope),
        check.int_argument("limit", limit),
    )


def _documents(document_ids: Iterable[UUID | str]) -> tuple[object, ...]:
    return (check.uuids_argument("document_ids", document_ids),)


def _permission(permission: str) -> tuple[object, ...]:
    return (check.text_argument("permission", permission),)


def _status(status: str | None) -> tuple[object, ...]:
    return (check.optional_text_argument("status", status),)


def _name(name: str) -> tuple[object, ...]:
    return (check.text_argument("name", name),)


def _firm(firm_id: UUID | str) -> tuple[object, ...]:
    return (check.uuid_argument("firm_id", firm_id),)


FINALIZE_TURN: Final = Call(
    "finalize_turn",
    "select citeledger.finalize_turn(%s::uuid)::text",
    _message,
    lambda r: rows.finalize_report(_json(r)),
)
FINALIZE_TURNS: Final[Call[[Iterable[UUID | str]], int]] = Call(
    "finalize_turns",
    "select citeledger.finalize_turns(%s::uuid[])",
    _messages,
    _value,
)
FINALIZE_PENDING: Final[Call[[int], int]] = Call(
    "finalize_pending",
    "select citeledger.finalize_pending(%s::integer)",
    _limit,
    _value,
)
ASSEMBLE_LEDGER_ENTRIES: Final[Call[[UUID | str], int]] = Call(
    "assemble_ledger_entries",
    "select citeledger.assemble_ledger_entries(%s::uuid)",
    _message,
    _value,
)
COMPUTE_AND_RECORD_GATE: Final = Call(
    "compute_and_record_gate",
    "select (pg_catalog.to_jsonb(citeledger.compute_and_record_gate(%s::uuid)) - 'firm_id')::text",
    _message,
    lambda r: rows.optional_gate(_json(r)),
)
LEDGER_TRACE: Final = Call(
    "ledger_trace",
    "select citeledger.ledger_trace(%s::uuid, %s::uuid)::text",
    _trace,
    lambda r: rows.ledger_trace(_json(r)),
)
CITE: Final = Call(
    "cite",
    "select citeledger.cite(%s::uuid, %s::jsonb)::text",
    _matter_span,
    lambda r: rows.cite_resolution(_json(r)),
)
CITE_MANY: Final = Call(
    "cite_many",
    "select citeledger.cite_many(%s::uuid, %s::jsonb)::text",
    _matter_spans,
    lambda r: [rows.cite_item(item) for item in _json(r)],
)
CITE_LEDGER_ENTRY: Final = Call(
    "cite_ledger_entry",
    "select citeledger.cite_ledger_entry(%s::uuid)::text",
    _entry,
    lambda r: rows.cite_resolution(_json(r)),
)
RESOLVE_SPAN: Final = Call(
    "resolve_span",
    "select r.verified, r.reason from citeledger.resolve_span(%s::jsonb) as r",
    _span,
    lambda r: rows.SpanResolution(*r[0]),
)
RECHECK_DOCUMENT: Final = Call(
    "recheck_document",
    "select r.message_citation_id::text, r.message_id::text, r.verified, r.reason"
    " from citeledger.recheck_document(%s::uuid) as r",
    _document,
    lambda r: [rows.recheck(row) for row in r],
)
SUGGEST_SPANS: Final = Call(
    "suggest_spans",
    "select s.page_number, s.block_index, s.char_start, s.char_end"
    " from citeledger.suggest_spans(%s::uuid, %s::jsonb, %s::integer) as s",
    _suggest,
    lambda r: [rows.SuggestedSpan(*row) for row in r],
)
READ_PAGES: Final = Call(
    "read_pages",
    "select b.page_number, b.block_index, b.content"
    " from citeledger.read_pages(%s::uuid, %s::uuid, %s::integer) as b",
    _pages_of,
    lambda r: [rows.PageBlock(*row) for row in r],
)
REPLACE_DOCUMENT_PAGES: Final[Call[[UUID | str, Pages], int]] = Call(
    "replace_document_pages",
    "select citeledger.replace_document_pages(%s::uuid, %s::jsonb)",
    _document_pages,
    _value,
)
NORMALIZE_DOI: Final[Call[[str | None], str | None]] = Call(
    "normalize_doi",
    "select citeledger.normalize_doi(%s::text)",
    _doi,
    _value,
)
RECORD_REFERENCES: Final = Call(
    "record_references",
    "select citeledger.record_references(%s::uuid, %s::text[], %s::text)::text",
    _list_of,
    lambda r: rows.RecordingReport(**_json(r)),
)
RECORD_CROSSREF_WORK: Final = Call(
    "record_crossref_work",
    "select citeledger.record_crossref_work(%s::uuid, %s::jsonb)::text",
    _work_of,
    lambda r: rows.RecordingReport(**_json(r)),
)
RESOLVE_REFERENCES: Final = Call(
    "resolve_references",
    "select citeledger.resolve_references(%s::boolean)::text",
    _dry_run,
    lambda r: rows.ResolutionReport(**_json(r)),
)
GET_CITATIONS: Final = Call(
    "get_citations",
    "select citeledger.get_citations(%s::uuid)::text",
    _document,
    lambda r: rows.citations(_json(r)),
)
WALK_CITATIONS: Final = Call(
    "walk_citations",
    "select w.document_id::text, w.hop"
    " from citeledger.walk_citations(%s::uuid[], %s::integer, %s::text) as w",
    _walk,
    lambda r: [rows.WalkedDocument(UUID(row[0]), row[1]) for row in r],
)
GRAPH_STAGE: Final = Call(
    "graph_stage",
    "select s.chunk_id::text, s.hop, s.via from citeledger.graph_stage("
    "%s::text[], %s::integer, %s::boolean, %s::jsonb, %s::integer) as s",
    _stage,
    lambda r: [rows.StagedChunk(UUID(row[0]), row[1], row[2]) for row in r],
)
CORPUS_DELETE: Final = Call(
    "corpus_delete",
    "select citeledger.corpus_delete(%s::uuid[])::text",
    _documents,
    lambda r: rows.DeletionReport(**_json(r)),
)
GRAPH_GC: Final = Call(
    "graph_gc",
    "select citeledger.graph_gc(%s::boolean)::text",
    _dry_run,
    lambda r: rows.CollectionReport(**_json(r)),
)
HAS_PERMISSION: Final[Call[[str], bool]] = Call(
    "has_permission",
    "select citeledger.has_permission(%s::text)",
    _permission,
    _value,
)
CHECK_INTEGRITY: Final = Call(
    "check_integrity",
    "select c.problem, c.table_name, c.row_key from citeledger.check_integrity() as c",
    _no_arguments,
    lambda r: [rows.IntegrityProblem(*row) for row in r],
)
VERIFICATION_TIER: Final[Call[[str | None], rows.Tier | None]] = Call(
    "verification_tier",
    "select citeledger.verification_tier(%s::text)",
    _status,
    _value,
)
METADATA_ONLY_VIOLATIONS: Final = Call(
    "metadata_only_violations",
    "select v.table_name, v.column_name, v.reason from citeledger.metadata_only_violations() as v",
    _no_arguments,
    lambda r: [rows.MetadataOnlyViolation(*row) for row in r],
)
CREATE_FIRM: Final = Call(
    "create_firm",
    "select citeledger.create_firm(%s::text)::text",
    _name,
    lambda r: UUID(_value(r)),
)
DELETE_FIRM: Final = Call(
    "delete_firm",
    "select citeledger.delete_firm(%s::uuid)",
    _firm,
    _none,
)
FIRM_IDS: Final = Call(
    "firm_ids",
    "select f.firm_id::text from citeledger.firm_ids() as f (firm_id)",
    _no_arguments,
    lambda r: [UUID(row[0]) for row in r],
)
VERSION: Final[Call[[], str]] = Call(
    "version",
    "select citeledger.version()",
    _no_arguments,
    _value,
)

CALLS: Final[tuple[Call[..., Any], ...]] = (
    FINALIZE_TURN,
    FINALIZE_TURNS,
    FINALIZE_PENDING,
    ASSEMBLE_LEDGER_ENTRIES,
    COMPUTE_AND_RECORD_GATE,
    LEDGER_TRACE,
    CITE,
    CITE_MANY,
    CITE_LEDGER_ENTRY,
    RESOLVE_SPAN,
    RECHECK_DOCUMENT,
    SUGGEST_SPANS,
    READ_PAGES,
    REPLACE_DOCUMENT_PAGES,
    NORMALIZE_DOI,
    RECORD_REFERENCES,
    RECORD_CROSSREF_WORK,
    RESOLVE_REFERENCES,
    GET_CITATIONS,
    WALK_CITATIONS,
    GRAPH_STAGE,
    CORPUS_DELETE,
    GRAPH_GC,
    HAS_PERMISSION,
    CHECK_INTEGRITY,
    VERIFICATION_TIER,
    METADATA_ONLY_VIOLATIONS,
    CREATE_FIRM,
    DELETE_FIRM,
    FIRM_IDS,
    VERSION,
)
"""Everything that a caller can ask for, by the name of the SQL function."""

SET_CONTEXT: Final = Call(
    "set_context",
    "select citeledger.set_context(%s::uuid, %s::uuid, %s::text[])",
    _context,
    _none,
)

# What follows is the client's own housekeeping, not part of the table.

HAS_VERSION: Final[Call[[], bool]] = Call(
    "has_version",
    # Asking the catalogue does not abort the caller's transaction when the schema is missing.
    "select pg_catalog.to_regprocedure('citeledger.version()') is not null",
    _no_arguments,
    _value,
)


@dataclass(frozen=True, slots=True)
class ContextBefore:
    """The context that a block found, and the transaction in which it found it."""

    firm_id: str | None
    user_id: str | None
    permissions: str | None
    transaction: str


READ_CONTEXT: Final = Call(
    "read_context",
    "select pg_catalog.current_setting('citeledger.firm_id', true),"
    " pg_catalog.current_setting('citeledger.user_id', true),"
    " pg_catalog.current_setting('citeledger.permissions', true),"
    # now() is when the transaction began, which tells this one from any later one.
    " extract(epoch from pg_catalog.now())::text",
    _no_arguments,
    lambda r: ContextBefore(*r[0]),
)


def _restore(before: ContextBefore) -> tuple[object, ...]:
    return (
        before.firm_id or "",
        before.user_id or "",
        before.permissions or "",
        before.transaction,
    )


RESTORE_CONTEXT: Final = Call(
    "restore_context",
    "select pg_catalog.set_config('citeledger.firm_id', %s, true),"
    " pg_catalog.set_config('citeledger.user_id', %s, true),"
    " pg_catalog.set_config('citeledger.permissions', %s, true)"
    # In a later transaction the block's context is already gone, and so is the one before it.
    " where extract(epoch from pg_catalog.now())::text = %s",
    _restore,
    _none,
)
