"""The view model: what the pages show, as the database said it, and nothing computed from it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from citeledger.rows import CiteResolution, Gate, LedgerEntry, SuggestedSpan, Tier


@dataclass(frozen=True, slots=True)
class Heading:
    """Where a page belongs, and when it was read."""

    firm_name: str | None
    matter_number: str | None
    matter_name: str | None
    read_at: datetime
    """When the one transaction began that everything on the page comes from."""


@dataclass(frozen=True, slots=True)
class EntryView:
    """An entry of the ledger, and its live check where one was made."""

    entry: LedgerEntry
    document_title: str | None
    """None for what is no document, and for a document that is withheld."""
    checked: bool
    """Whether a live check was asked for."""
    check: CiteResolution | None
    """None when none was asked for, or when it found nothing that could be checked."""


@dataclass(frozen=True, slots=True)
class Said:
    """What somebody said before the turn answered."""

    message_id: UUID
    content: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class TurnView:
    """A turn of the assistant: what was asked, the answer, the verdict, the ledger."""

    number: int
    message_id: UUID
    asked: tuple[Said, ...]
    answer: str | None
    created_at: datetime
    finalized_at: datetime | None
    gate: Gate | None
    entries: tuple[EntryView, ...]


@dataclass(frozen=True, slots=True)
class LiveCounts:
    """How many live checks held, did not, or found nothing to check."""

    hold: int
    drifted: int
    """Those that do not hold now of quotes that were verified, or at least not refuted, before."""
    never_held: int
    """Those that do not hold now of quotes that were recorded as failed."""
    uncheckable: int

    @property
    def total(self) -> int:
        """How many were made."""
        return self.hold + self.drifted + self.never_held + self.uncheckable


@dataclass(frozen=True, slots=True)
class ChatView:
    """A chat with its turns."""

    heading: Heading
    chat_id: UUID
    title: str | None
    turns: tuple[TurnView, ...]

    @property
    def live_counts(self) -> LiveCounts:
        """How many of the live checks found what."""
        views = [v for turn in self.turns for v in turn.entries if v.checked]
        found = [(v.check.verified, v.entry.tier) for v in views if v.check is not None]
        hold = sum(verified for verified, _ in found)
        never_held = sum(not verified and tier == "fail" for verified, tier in found)
        drifted = len(found) - hold - never_held
        return LiveCounts(hold, drifted, never_held, len(views) - len(found))


@dataclass(frozen=True, slots=True)
class ChatLine:
    """A chat in a list of chats."""

    chat_id: UUID
    title: str | None
    matter_number: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a block's text, marked or not."""

    text: str
    marked: bool
    first: bool = False
    """Whether it is where the first mark of the page begins."""


@dataclass(frozen=True, slots=True)
class BlockView:
    """A block of the live page."""

    index: int
    pieces: tuple[Piece, ...]
    named: bool
    """Whether the link or the citation names it."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A place where the quote stands now: an offer, with the link that the database gave it."""

    place: SuggestedSpan
    deep_link: str


@dataclass(frozen=True, slots=True)
class CitationView:
    """The citation that a page was opened for, and its live check in the page's own snapshot."""

    chat_id: UUID
    entry_id: UUID
    verification_status: str
    tier: Tier | None
    confidence: float | None
    check: CiteResolution
    marks: int
    """In how many places the quote is marked on this page."""
    more: bool
    """Whether it stands in further places that are not marked."""
    suggestions: tuple[Suggestion, ...]


@dataclass(frozen=True, slots=True)
class PageView:
    """A page of a record, live."""

    heading: Heading
    document_id: UUID
    document_title: str
    pages: tuple[int, ...]
    """The numbers of the pages that the document has now."""
    page_number: int | None
    """The page that was asked for; None when the document has none."""
    block_index: int | None
    """The block that was asked for."""
    blocks: tuple[BlockView, ...]
    """None at all when the page is not there."""
    citation: CitationView | None

    @property
    def previous_page(self) -> int | None:
        """The page before this one."""
        return max((n for n in self.pages if n < (self.page_number or 0)), default=None)

    @property
    def next_page(self) -> int | None:
        """The page after this one."""
        return min((n for n in self.pages if n > (self.page_number or 0)), default=None)

    @property
    def is_long(self) -> bool:
        """Whether a reader at its end would have to go far back to turn the page."""
        length = sum(len(piece.text) for block in self.blocks for piece in block.pieces)
        return len(self.blocks) > 8 or length > 3000

    @property
    def block_is_there(self) -> bool:
        """Whether the page has the block that was asked for."""
        return any(block.named for block in self.blocks)
