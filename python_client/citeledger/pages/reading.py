"""Reads what the pages show: in one snapshot that cannot write, under the rights of who asks.

Whatever a page says was true together. A quote is marked in the very text that cite compared it
with, even while the document is being replaced; and since the transaction is read-only, looking
changes nothing, whatever the login may otherwise do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any, Final, LiteralString
from uuid import UUID

import psycopg
from psycopg import IsolationLevel
from psycopg.rows import tuple_row
from psycopg_pool import ConnectionPool

from citeledger.arguments import text_argument, uuid_argument
from citeledger.client import Bound, CiteLedger
from citeledger.errors import InvalidArgument, NotFound, translated
from citeledger.methods import Id
from citeledger.rows import (
    CiteResolution,
    DocumentSource,
    Gate,
    LedgerEntry,
    SourceSpan,
    SuggestedSpan,
)

from .marks import marked_blocks
from .views import (
    ChatLine,
    ChatView,
    CitationView,
    EntryView,
    Heading,
    PageView,
    Said,
    Suggestion,
    TurnView,
)

PERMISSION: Final = "matters:read"


def _nothing_here() -> NotFound:
    """Say what the database says of everything that is not there for who asks."""
    return NotFound("record not found", sqlstate="P0002")


@contextmanager
def reading(
    connection_or_pool: psycopg.Connection[Any] | ConnectionPool[Any],
    *,
    firm_id: Id,
    user_id: Id | None = None,
    permissions: Collection[str] = (),
) -> Iterator[Reading]:
    """Begin to read for a firm, and perhaps a person; the transaction ends with the block.

    A connection must not be in a transaction. The login needs ``citeledger_app``: the reader's role
    may ask for traces and checks, but not for the titles and texts around them.
    """
    lent = (
        connection_or_pool.connection()
        if isinstance(connection_or_pool, ConnectionPool)
        else nullcontext(connection_or_pool)
    )
    with translated(), lent as connection:
        before = (connection.autocommit, connection.isolation_level, connection.read_only)
        connection.set_autocommit(True)
        connection.set_isolation_level(IsolationLevel.REPEATABLE_READ)
        connection.set_read_only(True)
        try:
            with CiteLedger(connection).context(
                firm_id=firm_id, user_id=user_id, permissions=permissions
            ) as bound:
                yield Reading(bound, uuid_argument("firm_id", firm_id))
        finally:
            if not connection.closed:
                connection.set_autocommit(before[0])
                connection.set_isolation_level(before[1])
                connection.set_read_only(before[2])


class Reading:
    """What can be read in one snapshot."""

    def __init__(self, bound: Bound, firm_id: UUID) -> None:
        """Be made by ``reading``."""
        self._bound = bound
        self._firm_id = firm_id

    def may_read(self) -> bool:
        """Say whether the context holds the permission to read matters."""
        return self._bound.has_permission(PERMISSION)

    # Chats

    def chats(self) -> tuple[ChatLine, ...]:
        """List the chats, the newest first: those of no matter and those of a visible one."""
        rows = self._rows(
            """
            select c.id, c.title, p.matter_number, c.created_at
            from citeledger.chats as c
            left join citeledger.projects as p on p.firm_id = %s and p.id = c.project_id
            where c.firm_id = %s and (c.project_id is null or p.id is not null)
            order by c.created_at desc, c.id
            """,
            self._firm_id,
            self._firm_id,
        )
        return tuple(ChatLine(*row) for row in rows)

    def chat(self, chat_id: Id, *, check: bool) -> ChatView:
        """Read a chat: its turns, their verdicts and their ledgers.

        With ``check``, every citation of a document is checked against the live page, now.
        """
        wanted = _id(chat_id)
        trace = self._bound.ledger_trace(wanted)
        ((title, project_id),) = self._rows(
            "select c.title, c.project_id from citeledger.chats as c"
            " where c.firm_id = %s and c.id = %s",
            self._firm_id,
            wanted,
        )
        titles = self._titles(trace.entries)
        entries: dict[UUID, list[EntryView]] = {}
        for entry in trace.entries:
            entries.setdefault(entry.message_id, []).append(self._entry(entry, titles, check))
        gates = {gate.message_id: gate for gate in trace.gates}
        return ChatView(
            heading=self._heading(project_id),
            chat_id=wanted,
            title=title,
            turns=self._turns(wanted, entries, gates),
        )

    def _turns(
        self, chat_id: UUID, entries: dict[UUID, list[EntryView]], gates: dict[UUID, Gate]
    ) -> tuple[TurnView, ...]:
        turns: list[TurnView] = []
        asked: list[Said] = []
        # A question and its answer may have been recorded in one transaction, at one time.
        rows = self._rows(
            """
            select m.id, m.role, m.content, m.created_at, m.finalized_at
            from citeledger.messages as m
            where m.firm_id = %s and m.chat_id = %s and m.role in ('user', 'assistant')
            order by m.created_at, m.role = 'assistant', m.id
            """,
            self._firm_id,
            chat_id,
        )
        for message_id, role, content, created_at, finalized_at in rows:
            if role == "user":
                asked.append(Said(message_id, content, created_at))
                continue
            turns.append(
                TurnView(
                    number=len(turns) + 1,
                    message_id=message_id,
                    asked=tuple(asked),
                    answer=content,
                    created_at=created_at,
                    finalized_at=finalized_at,
                    gate=gates.get(message_id),
                    entries=tuple(entries.get(message_id, ())),
                )
            )
            asked = []
        return tuple(turns)

    def _entry(self, entry: LedgerEntry, titles: dict[UUID, str], check: bool) -> EntryView:
        source = entry.source
        if not isinstance(source, DocumentSource):
            return EntryView(entry, None, checked=False, check=None)
        return EntryView(
            entry,
            titles.get(source.document_id) if source.document_id is not None else None,
            checked=check,
            check=self._check(entry.id) if check else None,
        )

    def _check(self, entry_id: UUID) -> CiteResolution | None:
        try:
            # What is not there must not end the transaction for the rest.
            with self._bound.connection.transaction():
                return self._bound.cite_ledger_entry(entry_id)
        except NotFound:
            return None

    def _titles(self, entries: Sequence[LedgerEntry]) -> dict[UUID, str]:
        """Read the titles of the documents whose quotes the trace did not withhold."""
        wanted = {
            entry.source.document_id
            for entry in entries
            if isinstance(entry.source, DocumentSource) and not entry.source.withheld
        } - {None}
        rows = self._rows(
            "select d.id, d.title from citeledger.documents as d"
            " where d.firm_id = %s and d.id = any(%s::uuid[])",
            self._firm_id,
            list(wanted),
        )
        return dict(rows)

    # Pages

    def page(
        self,
        matter_number: str,
        document_id: Id,
        page_number: int | None = None,
        block_index: int | None = None,
    ) -> PageView:
        """Read a page of a record of a matter; the first one unless another is asked for.

        A link names a page and perhaps a block, but no quote: nothing is marked in the text.
        """
        document = _id(document_id)
        rows = self._rows(
            "select p.id from citeledger.projects as p"
            " where p.firm_id = %s and p.matter_number = %s",
            self._firm_id,
            _text(matter_number),
        )
        if not rows:
            raise _nothing_here()
        return self._page(rows[0][0], document, page_number, block_index, None)

    def entry(self, chat_id: Id, entry_id: Id, page_number: int | None = None) -> PageView:
        """Check the citation of an entry now, and read the page that it names.

        Its quote is marked when the check verifies it. When it has drifted, the page comes without
        a mark, and with the places where the quote stands now. Another page may be asked for.
        """
        chat, wanted = _id(chat_id), _id(entry_id)
        rows = self._rows(
            """
            select e.project_id, e.verification_status, e.confidence
            from citeledger.citation_ledger_entry as e
            where e.firm_id = %s and e.chat_id = %s and e.id = %s
            """,
            self._firm_id,
            chat,
            wanted,
        )
        if not rows:
            raise _nothing_here()
        ((matter_id, status, confidence),) = rows
        check = self._bound.cite_ledger_entry(wanted)
        citation = CitationView(
            chat_id=chat,
            entry_id=wanted,
            verification_status=status,
            tier=self._bound.verification_tier(status),
            confidence=confidence,
            check=check,
            marks=0,
            more=False,
            suggestions=() if check.verified else self._suggestions(matter_id, check.span),
        )
        span = check.span
        shown = page_number or span.page_number
        block = span.block_index if shown == span.page_number else None
        return self._page(matter_id, span.document_id, shown, block, citation)

    def _page(
        self,
        matter_id: UUID,
        document_id: UUID,
        page_number: int | None,
        block_index: int | None,
        citation: CitationView | None,
    ) -> PageView:
        numbers = self._rows(
            "select p.page_number from citeledger.document_pages as p"
            " where p.firm_id = %s and p.document_id = %s order by p.page_number",
            self._firm_id,
            document_id,
        )
        pages = tuple(number for (number,) in numbers)
        shown = page_number or min(pages, default=None)
        # Asked for even when there is no such page: it also says who may see the document.
        blocks = self._bound.read_pages(matter_id, document_id, shown or 1)
        span = None
        if citation is not None and citation.check.verified:
            span = citation.check.span if citation.check.span.page_number == shown else None
        views, marks, more = marked_blocks(blocks, span, block_index)
        ((title,),) = self._rows(
            "select d.title from citeledger.documents as d where d.firm_id = %s and d.id = %s",
            self._firm_id,
            document_id,
        )
        return PageView(
            heading=self._heading(matter_id),
            document_id=document_id,
            document_title=title,
            pages=pages,
            page_number=shown,
            block_index=block_index,
            blocks=views,
            citation=_counted(citation, marks, more),
        )

    def _suggestions(self, matter_id: UUID, span: SourceSpan) -> tuple[Suggestion, ...]:
        """Find where the quote stands now. Each link comes from a check of that very place."""
        # A citation without a page is looked for from the first page on.
        anchored = SourceSpan(
            span.document_id,
            span.page_number or 1,
            span.quote,
            span.block_index,
            span.char_start,
            span.char_end,
        )
        try:
            with self._bound.connection.transaction():
                places = self._bound.suggest_spans(matter_id, anchored)
        except InvalidArgument:
            # A quote that cannot be seen is no span, and stands nowhere.
            return ()
        spans = [_span_at(anchored, place) for place in places]
        answers = self._bound.cite_many(matter_id, spans)
        return tuple(
            Suggestion(place, answer.deep_link)
            for place, answer in zip(places, answers, strict=True)
            if isinstance(answer, CiteResolution) and answer.deep_link is not None
        )

    # What pages have in common

    def _heading(self, matter_id: UUID | None) -> Heading:
        ((firm_name, matter_number, matter_name, read_at),) = self._rows(
            """
            select f.name, p.matter_number, p.name, transaction_timestamp()
            from (select %s::uuid as firm_id, %s::uuid as matter_id) as k
            left join citeledger.firms as f on f.id = k.firm_id
            left join citeledger.projects as p on p.firm_id = k.firm_id and p.id = k.matter_id
            """,
            self._firm_id,
            matter_id,
        )
        return Heading(firm_name, matter_number, matter_name, read_at)

    def _rows(self, statement: LiteralString, *parameters: object) -> list[tuple[Any, ...]]:
        connection = self._bound.connection
        with translated(), psycopg.Cursor(connection, row_factory=tuple_row) as cursor:
            return cursor.execute(statement, parameters, prepare=False).fetchall()


def _id(value: Id) -> UUID:
    """Take an id; a text in another form leads nowhere, as an unknown id does."""
    try:
        return uuid_argument("id", value)
    except InvalidArgument:
        raise _nothing_here() from None


def _text(value: str) -> str:
    """Take text; what no database can hold leads nowhere either."""
    try:
        return text_argument("matter_number", value)
    except InvalidArgument:
        raise _nothing_here() from None


def _span_at(span: SourceSpan, place: SuggestedSpan) -> SourceSpan:
    return SourceSpan(
        document_id=span.document_id,
        page_number=place.page_number,
        quote=span.quote,
        block_index=place.block_index,
        char_start=place.char_start,
        char_end=place.char_end,
    )


def _counted(citation: CitationView | None, marks: int, more: bool) -> CitationView | None:
    return None if citation is None else replace(citation, marks=marks, more=more)
