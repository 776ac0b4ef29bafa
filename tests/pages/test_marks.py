"""The marks: they stand exactly where the quote does, and nothing of the text changes."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citeledger.pages.marks import MOST_MARKS, marked_blocks
from citeledger.pages.views import BlockView
from citeledger.rows import PageBlock, SourceSpan

DOCUMENT = UUID(int=1)


def page(*texts: str) -> list[PageBlock]:
    return [PageBlock(1, index, text) for index, text in enumerate(texts)]


def span(quote: str, block: int | None = None, start: int | None = None) -> SourceSpan:
    end = None if start is None else start + len(quote)
    return SourceSpan(DOCUMENT, 1, quote, block, start, end)


def marked(blocks: tuple[BlockView, ...]) -> list[tuple[int, str]]:
    return [(b.index, p.text) for b in blocks for p in b.pieces if p.marked]


def whole(blocks: tuple[BlockView, ...]) -> list[str]:
    return ["".join(p.text for p in b.pieces) for b in blocks]


def test_offsets_count_code_points() -> None:
    blocks, marks, more = marked_blocks(
        page("\U0001f4c4\U0001f4c4 rent due"), span("rent", 0, 3), 0
    )
    assert (marked(blocks), marks, more) == ([(0, "rent")], 1, False)
    assert whole(blocks) == ["\U0001f4c4\U0001f4c4 rent due"]


def test_offsets_in_the_page_count_one_line_feed_between_blocks() -> None:
    blocks, marks, _ = marked_blocks(
        page("the lessee shall", "notify", "the owner"), span("shall\nnotify\nthe", None, 11), None
    )
    assert marked(blocks) == [(0, "shall"), (1, "notify"), (2, "the")]
    assert marks == 1
    assert [p.first for b in blocks for p in b.pieces if p.marked] == [True, False, False]


def test_a_block_that_is_empty_or_only_touched_has_no_mark() -> None:
    blocks, _, _ = marked_blocks(page("a", "", "b", "c"), span("\n\nb\n", None, 1), None)
    assert marked(blocks) == [(2, "b")]


def test_without_offsets_every_place_in_the_unit_is_marked() -> None:
    texts = page("rent, rent", "rent")
    assert marked(marked_blocks(texts, span("rent", 0), 0)[0]) == [(0, "rent"), (0, "rent")]
    blocks, marks, _ = marked_blocks(texts, span("rent"), None)
    assert (len(marked(blocks)), marks) == (3, 3)


def test_places_do_not_overlap() -> None:
    assert marked(marked_blocks(page("aaaaa"), span("aa", 0), 0)[0]) == [(0, "aa"), (0, "aa")]


def test_the_same_offset_in_another_block_is_not_marked() -> None:
    assert marked(marked_blocks(page("rent", "rent"), span("rent", 1, 0), 1)[0]) == [(1, "rent")]


def test_a_quote_of_one_letter_does_not_drown_the_page() -> None:
    blocks, marks, more = marked_blocks(page("a" * 10_000), span("a", 0), 0)
    assert (marks, more) == (MOST_MARKS, True)
    assert whole(blocks) == ["a" * 10_000]


def test_no_span_no_mark() -> None:
    blocks, marks, _ = marked_blocks(page("a", "b"), None, 1)
    assert (marked(blocks), marks) == ([], 0)
    assert [b.named for b in blocks] == [False, True]


@pytest.mark.parametrize("anchor", ["page", "block"])
@given(data=st.data())
def test_what_is_marked_is_the_quote(anchor: str, data: st.DataObject) -> None:
    texts = data.draw(st.lists(st.text("ab\n\U0001f4c4", max_size=6), min_size=1, max_size=4))
    block = data.draw(st.integers(0, len(texts) - 1)) if anchor == "block" else None
    unit = "\n".join(texts) if block is None else texts[block]
    start = data.draw(st.integers(0, max(len(unit) - 1, 0)))
    end = data.draw(st.integers(start, len(unit)))
    quote = unit[start:end]
    if not quote:
        return
    blocks, _, _ = marked_blocks(page(*texts), span(quote, block, start), block)
    assert whole(blocks) == texts
    # Line feeds between blocks are in the quote, but in no block.
    between = "\n".join(texts)
    shift = 0 if block is None else sum(len(t) + 1 for t in texts[:block])
    ends = {sum(len(t) + 1 for t in texts[: i + 1]) - 1 for i in range(len(texts))}
    expected = "".join(
        c for i, c in enumerate(between) if start + shift <= i < end + shift and i not in ends
    )
    assert "".join(text for _, text in marked(blocks)) == expected
