"""The client: the caller's connection or pool, the caller's transaction, one call per method."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeAlias, TypeVar
from uuid import UUID

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row
from psycopg_pool import ConnectionPool

from . import calls
from ._version import SUPPORTED_SCHEMA
from .arguments import int_argument
from .errors import (
    CiteLedgerError,
    InvalidArgument,
    SchemaVersionError,
    WrongState,
    translated,
)

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
        PageBlock,
        Recheck,
        RecordingReport,
        ResolutionReport,
        SpanResolution,
        StagedChunk,
        SuggestedSpan,
        WalkedDocument,
    )

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Connection: TypeAlias = psycopg.Connection[Any]
Id: TypeAlias = UUID | str

_WHOLE: Final[Mapping[str, object]] = MappingProxyType({})

_RETRYABLE: Final = frozenset({"40001", "40P01"})
_FIRST_PAUSE: Final = 0.01
_LONGEST_PAUSE: Final = 1.0

# One variable for all clients: a ContextVar is never collected, so it must not be made per client.
_bound: ContextVar[tuple[Bound, ...]] = ContextVar("citeledger_bound", default=())


class _Methods:
    """The calls, named as in SQL."""

    __slots__ = ()

    def _run(self, call: Call[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        raise NotImplementedError

    def finalize_turn(self, message_id: Id) -> FinalizeReport:
        """Seal the turn, write its ledger, record its verdict.

        A step that fails is reported in ``failures`` and does not raise: the turn is worth more
        than its ledger, which finalize_pending can still write.
        """
        return self._run(calls.FINALIZE_TURN, message_id)

    def finalize_turns(self, message_ids: Iterable[Id]) -> int:
        """Finalize many turns at once; return how many of them now have a verdict."""
        return self._run(calls.FINALIZE_TURNS, message_ids)

    def finalize_pending(self, limit: int = 1000) -> int:
        """Finalize turns that are sealed without a verdict or have failures; return how many."""
        return self._run(calls.FINALIZE_PENDING, limit)

    def assemble_ledger_entries(self, message_id: Id) -> int:
        """Write the ledger entries that the turn lacks; return how many were new."""
        return self._run(calls.ASSEMBLE_LEDGER_ENTRIES, message_id)

    def compute_and_record_gate(self, message_id: Id) -> Gate | None:
        """Compute and store the turn's verdict; None when it is not an assistant's turn."""
        return self._run(calls.COMPUTE_AND_RECORD_GATE, message_id)

    def ledger_trace(self, chat_id: Id, message_id: Id | None = None) -> LedgerTrace:
        """Return the ledger and the verdicts of a chat, or of one turn of it.

        Needs the permission ``matters:read``. Raises NotFound for a chat that is not there for
        this caller.
        """
        return self._run(calls.LEDGER_TRACE, chat_id, message_id)

    def cite(self, matter_id: Id, span: Span) -> CiteResolution:
        """Check a span of a record of the matter against the live page, now.

        The answer has a link when the span holds, and a reason when it does not. A mapping goes to
        the database as it is. Needs ``matters:read``. Raises InvalidArgument for a malformed span,
        and NotFound for whatever is not there for this caller.
        """
        return self._run(calls.CITE, matter_id, span)

    def cite_many(self, matter_id: Id, spans: Iterable[Span]) -> list[CiteResolution | CiteError]:
        """Check many spans of one matter; a bad one becomes a CiteError in its place."""
        return self._run(calls.CITE_MANY, matter_id, spans)

    def cite_ledger_entry(self, entry_id: Id) -> CiteResolution:
        """Check the citation of a ledger entry, under the matter that the entry names."""
        return self._run(calls.CITE_LEDGER_ENTRY, entry_id)

    def resolve_span(self, span: Span) -> SpanResolution:
        """Compare a span with the live page. It checks no matter: to show it, call cite."""
        return self._run(calls.RESOLVE_SPAN, span)

    def recheck_document(self, document_id: Id) -> list[Recheck]:
        """Check every citation of a document against its live pages; it changes nothing."""
        return self._run(calls.RECHECK_DOCUMENT, document_id)

    def suggest_spans(self, matter_id: Id, span: Span, limit: int = 5) -> list[SuggestedSpan]:
        """Say where the quote of a span stands now, nearest first; nothing is verified by it."""
        return self._run(calls.SUGGEST_SPANS, matter_id, span, limit)

    def read_pages(
        self, matter_id: Id, document_id: Id, page_number: int | None = None
    ) -> list[PageBlock]:
        """Read the live text of a record of the matter, or one page of it."""
        return self._run(calls.READ_PAGES, matter_id, document_id, page_number)

    def replace_document_pages(self, document_id: Id, pages: Pages) -> int:
        """Replace all pages of a document; return how many it has now.

        ``pages`` is a list of ``{"page_number": 1, "blocks": ["...", "..."]}``, in any order.
        """
        return self._run(calls.REPLACE_DOCUMENT_PAGES, document_id, pages)

    def normalize_doi(self, doi: str | None) -> str | None:
        """Return the key of a DOI as printed, or None when the whole text is no DOI."""
        return self._run(calls.NORMALIZE_DOI, doi)

    def record_references(
        self, document_id: Id, dois: Collection[str | None], source: str = "crossref"
    ) -> RecordingReport:
        """Replace the document's reference list of one source, and resolve it.

        ``dois`` are the DOIs as printed, in their order. What is no DOI, or None, is counted.
        """
        return self._run(calls.RECORD_REFERENCES, document_id, dois, source)

    def record_crossref_work(self, document_id: Id, work: Mapping[str, object]) -> RecordingReport:
        """Record the references of a Crossref work, or of Crossref's answer that holds it."""
        return self._run(calls.RECORD_CROSSREF_WORK, document_id, work)

    def resolve_references(self, dry_run: bool = True) -> ResolutionReport:
        """Make all edges of the firm agree with all lists; say only what would change, by default.

        Recording and the triggers of documents do this all along: it is for repairs.
        """
        return self._run(calls.RESOLVE_REFERENCES, dry_run)

    def get_citations(self, document_id: Id) -> Citations:
        """Return what a document cites and who cites it. Needs ``matters:read``."""
        return self._run(calls.GET_CITATIONS, document_id)

    def walk_citations(
        self,
        document_ids: Iterable[Id],
        max_hops: int = 2,
        direction: Direction = "both",
    ) -> list[WalkedDocument]:
        """Return the documents within some citations of others. Needs ``matters:read``."""
        return self._run(calls.WALK_CITATIONS, document_ids, max_hops, direction)

    def graph_stage(
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
        return self._run(calls.GRAPH_STAGE, entity_names, max_hops, include_citations, scope, limit)

    def corpus_delete(self, document_ids: Iterable[Id]) -> DeletionReport:
        """Delete documents with all that was made of them; cited quotes stay with their turns."""
        return self._run(calls.CORPUS_DELETE, document_ids)

    def graph_gc(self, dry_run: bool = True) -> CollectionReport:
        """Sweep what nothing holds any more; by default only count it."""
        return self._run(calls.GRAPH_GC, dry_run)

    def has_permission(self, permission: str) -> bool:
        """Say whether the context holds a permission."""
        return self._run(calls.HAS_PERMISSION, permission)

    def check_integrity(self) -> list[IntegrityProblem]:
        """Return what does not hold together in the context's firm: nothing, when healthy."""
        return self._run(calls.CHECK_INTEGRITY)

    def version(self) -> str:
        """Return the version of the schema in the database."""
        return self._run(calls.VERSION)


class Bound(_Methods):
    """A client on one connection, for the length of a block."""

    __slots__ = ("_client", "_connection", "_ended")

    def __init__(self, client: CiteLedger, connection: Connection) -> None:
        """Be made by CiteLedger.context or CiteLedger.retry, not by hand."""
        self._client = client
        self._connection = connection
        self._ended = False

    @property
    def connection(self) -> Connection:
        """The connection of the block, for SQL of your own in the same transaction."""
        if self._ended:
            raise WrongState(
                "the block that this belongs to has ended",
                hint="Use it only inside its with statement.",
            )
        return self._connection

    def _run(self, call: Call[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        parameters = call.arguments(*args, **kwargs)
        return self._client._execute(self.connection, call, parameters)


class CiteLedger(_Methods):
    """Calls citeledger's functions through a connection or a pool that the caller owns.

    On a connection, every call joins the caller's transaction and never commits it. With a pool,
    a call outside of a ``context`` block runs on a connection of its own, in its own transaction.
    A client over a pool may be shared between threads.

    ``prepare_threshold``: after how many runs one of the client's statements is prepared on its
    connection (0: at once). None, the default, never prepares one, which is what a pooler in
    transaction mode needs.
    """

    __slots__ = ("_own", "_pool", "_prepare_threshold", "_version_known")

    def __init__(
        self,
        connection_or_pool: Connection | ConnectionPool[Any],
        *,
        prepare_threshold: int | None = None,
    ) -> None:
        """Take what the caller opened, and leave closing it to the caller."""
        self._own: Connection | None = None
        self._pool: ConnectionPool[Any] | None = None
        if isinstance(connection_or_pool, psycopg.Connection):
            self._own = connection_or_pool
        elif isinstance(connection_or_pool, ConnectionPool):
            self._pool = connection_or_pool
        else:
            raise InvalidArgument(
                "connection_or_pool is not valid",
                detail=f"connection_or_pool: a {type(connection_or_pool).__name__}.",
                hint="Pass a psycopg.Connection or a psycopg_pool.ConnectionPool.",
            )
        if (
            prepare_threshold is not None
            and int_argument("prepare_threshold", prepare_threshold) < 0
        ):
            raise InvalidArgument(
                "prepare_threshold is not valid",
                detail="prepare_threshold: negative.",
                hint="Pass None to prepare nothing, or a number from 0.",
            )
        self._prepare_threshold = prepare_threshold
        self._version_known = False

    # Running one call

    def _run(self, call: Call[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        parameters = call.arguments(*args, **kwargs)
        # A transaction of this one call may also fail at its commit.
        with translated(), self._borrowed() as connection:
            return self._execute(connection, call, parameters)

    def _execute(
        self, connection: Connection, call: Call[..., R], parameters: tuple[object, ...]
    ) -> R:
        if not self._version_known and call is not calls.VERSION:
            self._check_version(connection)
        return self._send(connection, call, parameters)

    def _send(
        self, connection: Connection, call: Call[..., R], parameters: tuple[object, ...]
    ) -> R:
        threshold = self._prepare_threshold
        before = connection.prepare_threshold
        # The client's own cursor: the connection may have another kind, with another placeholder.
        with translated(), psycopg.Cursor(connection, row_factory=tuple_row) as cursor:
            if threshold is None:
                cursor.execute(call.sql, parameters, prepare=False)
            else:
                connection.prepare_threshold = threshold
                try:
                    cursor.execute(call.sql, parameters)
                finally:
                    connection.prepare_threshold = before
            return call.result(cursor.fetchall())

    def _check_version(self, connection: Connection) -> None:
        if not self._send(connection, calls.HAS_VERSION, ()):
            raise SchemaVersionError(
                "citeledger is not installed in this database",
                detail="There is no function citeledger.version().",
                hint="Deploy it with Sqitch, or run sql/citeledger.sql, in the database that the "
                "connection is for.",
            )
        version = self._send(connection, calls.VERSION, ())
        if version not in SUPPORTED_SCHEMA:
            raise SchemaVersionError(
                "this client does not know the version of the schema",
                detail=f"The database has {version}; the client knows "
                f"{', '.join(sorted(SUPPORTED_SCHEMA))}.",
                hint="Install the release of the client that belongs to the schema, or deploy the "
                "schema that belongs to the client.",
            )
        self._version_known = True

    # Connections and transactions

    def _current(self) -> Bound | None:
        for bound in reversed(_bound.get()):
            if bound._client is self:
                return bound
        return None

    @contextmanager
    def _borrowed(self) -> Iterator[Connection]:
        """Give the connection for one call; with a pool, and outside a block, a transaction too."""
        if self._own is not None:
            yield self._own
        elif (current := self._current()) is not None:
            yield current.connection
        else:
            with self._checked_out() as connection:
                yield connection

    @contextmanager
    def _checked_out(self) -> Iterator[Connection]:
        """Check a connection out of the pool for one transaction."""
        assert self._pool is not None  # noqa: S101 - for the type checker
        # The pool commits by itself, but not on connections that it opened in autocommit mode.
        with self._pool.connection() as connection, connection.transaction():
            yield connection

    @contextmanager
    def _binding(self, connection: Connection) -> Iterator[Bound]:
        bound = Bound(self, connection)
        token = _bound.set((*_bound.get(), bound))
        try:
            yield bound
        finally:
            _bound.reset(token)
            bound._ended = True

    @contextmanager
    def context(
        self,
        *,
        firm_id: Id,
        user_id: Id | None = None,
        permissions: Collection[str] = (),
    ) -> Iterator[Bound]:
        """Act for a firm, and perhaps a person, inside the block.

        The context is local to the transaction. A transaction of the caller is joined, never
        committed or rolled back, and gets the context back that it had; on a connection that is
        not in autocommit mode, the caller's transaction begins here and stays open. On a
        connection in autocommit mode, and with a pool, the block is a transaction of its own:
        committed at its end, rolled back when it raises.
        """
        identity = calls.SET_CONTEXT.arguments(firm_id, user_id, permissions)
        connection = self._own
        if connection is None and (current := self._current()) is not None:
            connection = current.connection
        if connection is None:
            with (
                self._checked_out() as fresh,
                self._binding(fresh) as bound,
            ):
                self._execute(fresh, calls.SET_CONTEXT, identity)
                yield bound
        elif connection.autocommit and _status(connection) == TransactionStatus.IDLE:
            with connection.transaction(), self._binding(connection) as bound:
                self._execute(connection, calls.SET_CONTEXT, identity)
                yield bound
        else:
            with self._joined(connection, identity), self._binding(connection) as bound:
                yield bound

    @contextmanager
    def _joined(self, connection: Connection, identity: tuple[object, ...]) -> Iterator[None]:
        before = self._execute(connection, calls.READ_CONTEXT, ())
        self._execute(connection, calls.SET_CONTEXT, identity)
        try:
            yield
        finally:
            # A failed transaction takes no more SQL, and its rollback takes the context away.
            if _status(connection) == TransactionStatus.INTRANS:
                self._send(
                    connection,
                    calls.RESTORE_CONTEXT,
                    calls.RESTORE_CONTEXT.arguments(before),
                )

    def retry(self, work: Callable[[Bound], T], *, attempts: int = 5) -> T:
        """Run ``work`` in a transaction, and again when the database asks for it.

        A serialization failure (40001) or a deadlock (40P01) undoes the transaction, which then
        runs again, at most ``attempts`` times in all, after a short pause that grows and varies.
        Only the whole transaction can run again, so this refuses to work inside one.
        """
        if int_argument("attempts", attempts) < 1:
            raise InvalidArgument(
                "attempts is not valid", detail="attempts: less than 1.", hint="Pass 1 or more."
            )
        for attempt in range(1, attempts + 1):
            try:
                with self._whole_transaction() as bound:
                    return work(bound)
            except (psycopg.Error, CiteLedgerError) as error:
                if error.sqlstate not in _RETRYABLE or attempt == attempts:
                    raise
            pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (attempt - 1))
            time.sleep(random.uniform(pause / 2, pause))  # noqa: S311 - spreading, not secrecy
        raise AssertionError  # pragma: no cover - the last attempt returned or raised

    @contextmanager
    def _whole_transaction(self) -> Iterator[Bound]:
        refusal = WrongState(
            "retry cannot run inside a transaction",
            detail="Only the one who began the transaction can run it again.",
            hint="Call retry first, and open context blocks inside the function that it runs.",
        )
        if self._current() is not None:
            raise refusal
        if self._own is None:
            with self._checked_out() as connection, self._binding(connection) as bound:
                yield bound
        else:
            if _status(self._own) != TransactionStatus.IDLE:
                raise refusal
            with self._own.transaction(), self._binding(self._own) as bound:
                yield bound


def _status(connection: Connection) -> TransactionStatus:
    return connection.info.transaction_status
