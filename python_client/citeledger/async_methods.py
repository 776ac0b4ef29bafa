"""The calls, named as in SQL, for a client that awaits each answer."""

# Made by tools/async_methods.py from methods.py: change that, and run 'make docs'.

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, ParamSpec, TypeAlias, TypeVar
from uuid import UUID

from . import calls

if TYPE_CHECKING:
    from .calls import Call, Pages, Span
    from .rows import (
        Citations,
        CiteError,
        CiteResolution,
        CollectionReport,
        DeletionReport,
        Direction,
        FinalizeReport,
        Gate,
        IntegrityProblem,
        LedgerTrace,
        MetadataOnlyViolation,
        PageBlock,
        Recheck,
        RecordingReport,
        ResolutionReport,
        SpanResolution,
        StagedChunk,
        SuggestedSpan,
        Tier,
        WalkedDocument,
    )

P = ParamSpec("P")
R = TypeVar("R")
Id: TypeAlias = UUID | str

_WHOLE: Final[Mapping[str, object]] = MappingProxyType({})


class AsyncMethods:
    """The calls; who runs them says how."""

    __slots__ = ()

    async def _run(self, call: Call[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        raise NotImplementedError

    async def finalize_turn(self, message_id: Id) -> FinalizeReport:
        """Seal the turn, write its ledger, record its verdict.

        A step that fails is reported in ``failures`` and does not raise: the turn is worth more
        than its ledger, which finalize_pending can still write.
        """
        return await self._run(calls.FINALIZE_TURN, message_id)

    async def finalize_turns(self, message_ids: Iterable[Id]) -> int:
        """Finalize many turns at once; return how many of them now have a verdict."""
        return await self._run(calls.FINALIZE_TURNS, message_ids)

    async def finalize_pending(self, limit: int = 1000) -> int:
        """Finalize turns that are sealed without a verdict or have failures; return how many."""
        return await self._run(calls.FINALIZE_PENDING, limit)

    async def assemble_ledger_entries(self, message_id: Id) -> int:
        """Write the ledger entries that the turn lacks; return how many were new."""
        return await self._run(calls.ASSEMBLE_LEDGER_ENTRIES, message_id)

    async def compute_and_record_gate(self, message_id: Id) -> Gate | None:
        """Compute and store the turn's verdict; None when it is not an assistant's turn."""
        return await self._run(calls.COMPUTE_AND_RECORD_GATE, message_id)

    async def ledger_trace(self, chat_id: Id, message_id: Id | None = None) -> LedgerTrace:
        """Return the ledger and the verdicts of a chat, or of one turn of it.

        Needs the permission ``matters:read``. Raises NotFound for a chat that is not there for
        this caller.
        """
        return await self._run(calls.LEDGER_TRACE, chat_id, message_id)

    async def cite(self, matter_id: Id, span: Span) -> CiteResolution:
        """Check a span of a record of the matter against the live page, now.

        The answer has a link when the span holds, and a reason when it does not. A mapping goes to
        the database as it is. Needs ``matters:read``. Raises InvalidArgument for a malformed span,
        and NotFound for whatever is not there for this caller.
        """
        return await self._run(calls.CITE, matter_id, span)

    async def cite_many(
        self,
        matter_id: Id,
        spans: Iterable[Span],
    ) -> list[CiteResolution | CiteError]:
        """Check many spans of one matter; a bad one becomes a CiteError in its place."""
        return await self._run(calls.CITE_MANY, matter_id, spans)

    async def cite_ledger_entry(self, entry_id: Id) -> CiteResolution:
        """Check the citation of a ledger entry, under the matter that the entry names."""
        return await self._run(calls.CITE_LEDGER_ENTRY, entry_id)

    async def resolve_span(self, span: Span) -> SpanResolution:
        """Compare a span with the live page. It checks no matter: to show it, call cite."""
        return await self._run(calls.RESOLVE_SPAN, span)

    async def recheck_document(self, document_id: Id) -> list[Recheck]:
        """Check every citation of a document against its live pages; it changes nothing."""
        return await self._run(calls.RECHECK_DOCUMENT, document_id)

    async def suggest_spans(self, matter_id: Id, span: Span, limit: int = 5) -> list[SuggestedSpan]:
        """Say where the quote of a span stands now, nearest first; nothing is verified by it."""
        return await self._run(calls.SUGGEST_SPANS, matter_id, span, limit)

    async def read_pages(
        self, matter_id: Id, document_id: Id, page_number: int | None = None
    ) -> list[PageBlock]:
        """Read the live text of a record of the matter, or one page of it."""
        return await self._run(calls.READ_PAGES, matter_id, document_id, page_number)

    async def replace_document_pages(self, document_id: Id, pages: Pages) -> int:
        """Replace all pages of a document; return how many it has now.

        ``pages`` is a list of ``{"page_number": 1, "blocks": ["...", "..."]}``, in any order.
        """
        return await self._run(calls.REPLACE_DOCUMENT_PAGES, document_id, pages)

    async def normalize_doi(self, doi: str | None) -> str | None:
        """Return the key of a DOI as printed, or None when the whole text is no DOI."""
        return await self._run(calls.NORMALIZE_DOI, doi)

    async def record_references(
        self, document_id: Id, dois: Collection[str | None], source: str = "crossref"
    ) -> RecordingReport:
        """Replace the document's reference list of one source, and resolve it.

        ``dois`` are the DOIs as printed, in their order. What is no DOI, or None, is counted.
        """
        return await self._run(calls.RECORD_REFERENCES, document_id, dois, source)

    async def record_crossref_work(
        self,
        document_id: Id,
        work: Mapping[str, object],
    ) -> RecordingReport:
        """Record the references of a Crossref work, or of Crossref's answer that holds it."""
        return await self._run(calls.RECORD_CROSSREF_WORK, document_id, work)

    async def resolve_references(self, dry_run: bool = True) -> ResolutionReport:
        """Make all edges of the firm agree with all lists; say only what would change, by default.

        Recording and the triggers of documents do this all along: it is for repairs.
        """
        return await self._run(calls.RESOLVE_REFERENCES, dry_run)

    async def get_citations(self, document_id: Id) -> Citations:
        """Return what a document cites and who cites it. Needs ``matters:read``."""
        return await self._run(calls.GET_CITATIONS, document_id)

    async def walk_citations(
        self,
        document_ids: Iterable[Id],
        max_hops: int = 2,
        direction: Direction = "both",
    ) -> list[WalkedDocument]:
        """Return the documents within some citations of others. Needs ``matters:read``."""
        return await self._run(calls.WALK_CITATIONS, document_ids, max_hops, direction)

    async def graph_stage(
        self,
        entity_names: Collection[str],
        max_hops: int = 2,
        include_citations: bool = False,
        scope: Mapping[str, object] = _WHOLE,
        limit: int = 20,
    ) -> list[StagedChunk]:
        """Return the chunks that a walk over concepts, and perhaps citations, leads to.

        ``scope`` may have ``license_classes``, ``sources``, ``year_min``, ``year_max`` and
        ``exclude_document_ids``; an empty list allows nothing. Needs ``matters:read``.
        """
        return await self._run(
            calls.GRAPH_STAGE,
            entity_names,
            max_hops,
            include_citations,
            scope,
            limit,
        )

    async def corpus_delete(self, document_ids: Iterable[Id]) -> DeletionReport:
        """Delete documents with all that was made of them; cited quotes stay with their turns."""
        return await self._run(calls.CORPUS_DELETE, document_ids)

    async def graph_gc(self, dry_run: bool = True) -> CollectionReport:
        """Sweep what nothing holds any more; by default only count it."""
        return await self._run(calls.GRAPH_GC, dry_run)

    async def has_permission(self, permission: str) -> bool:
        """Say whether the context holds a permission."""
        return await self._run(calls.HAS_PERMISSION, permission)

    async def check_integrity(self) -> list[IntegrityProblem]:
        """Return what does not hold together in the context's firm: nothing, when healthy."""
        return await self._run(calls.CHECK_INTEGRITY)

    async def verification_tier(self, status: str | None) -> Tier | None:
        """Return the tier of a verification status; None when it is no known status."""
        return await self._run(calls.VERIFICATION_TIER, status)

    async def metadata_only_violations(self) -> list[MetadataOnlyViolation]:
        """Return the columns of the metadata-only tables that could hold content: none, if well."""
        return await self._run(calls.METADATA_ONLY_VIOLATIONS)

    async def create_firm(self, name: str) -> UUID:
        """Onboard a firm; return its id. For citeledger_admin."""
        return await self._run(calls.CREATE_FIRM, name)

    async def delete_firm(self, firm_id: Id) -> None:
        """Erase a firm and every row of it, sealed turns included. For citeledger_admin.

        It cannot be undone. Raises NotFound when there is no such firm.
        """
        return await self._run(calls.DELETE_FIRM, firm_id)

    async def firm_ids(self) -> list[UUID]:
        """Return every firm of the database, in the order of their ids. For citeledger_admin."""
        return await self._run(calls.FIRM_IDS)

    async def version(self) -> str:
        """Return the version of the schema in the database."""
        return await self._run(calls.VERSION)
