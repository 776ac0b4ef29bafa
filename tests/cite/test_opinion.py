"""A real opinion as pages and blocks: spans cut from it verify, and nothing that is nearly one.

The text is no part of the repository. It lies beside it, in ../shared/data; without it the tests
are skipped and say so.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import psycopg
import pytest

from citeledger import CiteLedger, CiteResolution, SourceSpan
from support.deploy import REPOSITORY
from support.world import World

FILE = REPOSITORY.parent / "shared" / "data" / "opinion_fisher_v_ut_2013.txt"
SPANS = 1000

pytestmark = pytest.mark.skipif(
    not FILE.is_file(), reason=f"the opinion is not there: {FILE.name} in ../shared/data"
)


def pages_of(text: str) -> list[list[str]]:
    """Cut the text at form feeds into pages, and these at blank lines into blocks."""
    return [re.split(r"\n[ \t]*\n\s*", page) for page in text.split("\f")]


@pytest.fixture(scope="module")
def pages() -> list[list[str]]:
    found = pages_of(FILE.read_bytes().decode("utf-8"))
    assert len(found) == 41
    return found


@pytest.fixture
def matter(world: World) -> UUID:
    return world.project()


@pytest.fixture
def document(world: World, matter: UUID) -> UUID:
    return world.document(matter, title="Fisher v. University of Texas at Austin")


@pytest.fixture
def check(
    app: psycopg.Connection[Any], world: World, matter: UUID, document: UUID, pages: list[list[str]]
) -> Callable[[list[SourceSpan]], list[str]]:
    """Put the opinion in, and return what checks spans: verified, or the reason."""
    client = CiteLedger(app)
    with client.context(firm_id=world.firm_id):
        count = client.replace_document_pages(
            document, [{"page_number": n, "blocks": b} for n, b in enumerate(pages, start=1)]
        )
    assert count == len(pages)
    app.commit()

    def checked(spans: list[SourceSpan]) -> list[str]:
        with client.context(firm_id=world.firm_id, permissions=["matters:read"]):
            found = client.cite_many(matter, spans)
        assert len(found) == len(spans)
        verdicts = []
        for span, item in zip(spans, found, strict=True):
            assert isinstance(item, CiteResolution)
            assert item.span == span
            assert item.verified == (item.deep_link is not None) == (item.reason is None)
            verdicts.append(item.reason or "verified")
        return verdicts

    return checked


@pytest.fixture
def spans(document: UUID, pages: list[list[str]]) -> list[SourceSpan]:
    """Cut spans out of blocks and whole pages, each with letters and unlike its neighbour."""
    chance = random.Random(20130624)
    found: list[SourceSpan] = []
    while len(found) < SPANS:
        page = chance.randrange(len(pages))
        block = chance.choice([None, *range(len(pages[page]))])
        unit = "\n".join(pages[page]) if block is None else pages[page][block]
        length = chance.randint(8, 240)
        if len(unit) <= length:
            continue
        start = chance.randrange(len(unit) - length)
        quote = unit[start : start + length]
        if sum(map(str.isalpha, quote)) < 5:
            continue
        if quote != unit[start + 1 : start + length + 1] and quote.swapcase() not in unit:
            found.append(SourceSpan(document, page + 1, quote, block, start, start + length))
    return found


def hyphenated(quote: str) -> str:
    """Join a word that the line broke, or break one that it did not."""
    if re.search(r"\w-\n *\w", quote):
        return re.sub(r"(\w)-\n *(\w)", r"\1\2", quote)
    middle = len(quote) // 2
    return f"{quote[:middle]}-\n{quote[middle:]}"


def moved(span: SourceSpan, by: int) -> SourceSpan:
    assert span.char_start is not None
    assert span.char_end is not None
    return replace(span, char_start=span.char_start + by, char_end=span.char_end + by)


def test_spans_cut_from_it_verify(
    check: Callable[[list[SourceSpan]], list[str]], spans: list[SourceSpan]
) -> None:
    assert len(set(spans)) > 0.9 * SPANS
    assert any("\u201c" in s.quote for s in spans)
    assert any("-\n" in s.quote for s in spans)
    assert check(spans) == ["verified"] * SPANS
    # So they do without offsets: the words are there somewhere.
    loose = [replace(s, char_start=None, char_end=None) for s in spans]
    assert check(loose) == ["verified"] * SPANS


NEARLY: dict[str, Callable[[SourceSpan], SourceSpan]] = {
    "shifted by one": lambda s: moved(s, 1),
    "truncated words": lambda s: replace(s, quote=s.quote[:-1]),
    "truncated span": lambda s: replace(s, char_end=(s.char_end or 0) - 1),
    "re-cased": lambda s: replace(s, quote=s.quote.swapcase()),
    "re-hyphenated": lambda s: replace(s, quote=hyphenated(s.quote)),
    "re-cased, without offsets": lambda s: replace(
        s, quote=s.quote.swapcase(), char_start=None, char_end=None
    ),
}


@pytest.mark.parametrize("change", NEARLY.values(), ids=NEARLY)
def test_nothing_that_is_nearly_one_verifies(
    check: Callable[[list[SourceSpan]], list[str]],
    spans: list[SourceSpan],
    pages: list[list[str]],
    change: Callable[[SourceSpan], SourceSpan],
) -> None:
    verdicts = check([change(span) for span in spans])
    outcomes = Counter(verdicts)
    assert outcomes["verified"] == 0, [
        s for s, v in zip(spans, verdicts, strict=True) if v == "verified"
    ][:3]
    assert sum(outcomes.values()) == SPANS


def test_shifted_the_other_way(
    check: Callable[[list[SourceSpan]], list[str]], spans: list[SourceSpan]
) -> None:
    back = [moved(s, -1) for s in spans if s.char_start]
    same = [
        v
        for v, s in zip(check(back), back, strict=True)
        if v == "verified" and len(set(s.quote)) > 1
    ]
    assert same == []
