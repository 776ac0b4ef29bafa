"""Marks a verified quote in the blocks of its page.

Who calls this has just had the quote verified by cite, in the snapshot that the blocks come from.
Nothing is compared here. Offsets are Unicode code points, as Python counts its text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Final

from .views import BlockView, Piece

if TYPE_CHECKING:
    from citeledger.rows import PageBlock, SourceSpan

MOST_MARKS: Final = 200
"""A quote of one letter may stand in thousands of places, and marking them shows nothing."""

Range = tuple[int, int]


def marked_blocks(
    blocks: Sequence[PageBlock], span: SourceSpan | None, named: int | None
) -> tuple[tuple[BlockView, ...], int, bool]:
    """Return the blocks with the span's quote marked, in how many places, and whether in all.

    With offsets the quote stands in one place. Without, the citation does not say which place it
    means: every place in the anchored block or page is marked.
    """
    ranges: list[Range] = []
    more = False
    if span is not None:
        text, shift = _unit(blocks, span)
        places = list(islice(_places(text, span), MOST_MARKS + 1))
        more = len(places) > MOST_MARKS
        ranges = [(start + shift, end + shift) for start, end in places[:MOST_MARKS]]
    views = []
    first = True
    # A range of the page may run over the ends of blocks: each block shows its own part of it.
    for block, start in zip(blocks, _starts(blocks), strict=True):
        length = len(block.content)
        clipped = ((max(begin - start, 0), min(end - start, length)) for begin, end in ranges)
        inside = [(begin, end) for begin, end in clipped if begin < end]
        views.append(
            BlockView(
                block.block_index, _pieces(block.content, inside, first), block.block_index == named
            )
        )
        first = first and not inside
    return tuple(views), len(ranges), more


def _starts(blocks: Sequence[PageBlock]) -> list[int]:
    """Where each block begins in the page, its blocks joined by one line feed."""
    return list(accumulate((len(b.content) + 1 for b in blocks), initial=0))[: len(blocks)]


def _unit(blocks: Sequence[PageBlock], span: SourceSpan) -> tuple[str, int]:
    """Return the text that the span is anchored in, and where that begins in the page."""
    if span.block_index is None:
        return "\n".join(b.content for b in blocks), 0
    for block, start in zip(blocks, _starts(blocks), strict=True):
        if block.block_index == span.block_index:
            return block.content, start
    return "", 0


def _places(text: str, span: SourceSpan) -> Iterator[Range]:
    if span.char_start is not None and span.char_end is not None:
        yield span.char_start, span.char_end
        return
    at = text.find(span.quote)
    while at >= 0:
        yield at, at + len(span.quote)
        at = text.find(span.quote, at + len(span.quote))


def _pieces(text: str, ranges: Sequence[Range], first: bool) -> tuple[Piece, ...]:
    pieces = []
    at = 0
    for number, (start, end) in enumerate(ranges):
        if at < start:
            pieces.append(Piece(text[at:start], marked=False))
        pieces.append(Piece(text[start:end], marked=True, first=first and number == 0))
        at = end
    if at < len(text):
        pieces.append(Piece(text[at:], marked=False))
    return tuple(pieces)
