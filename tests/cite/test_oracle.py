"""resolve_span, cite and cite_many against an oracle in Python, on spans of every awkward kind.

Python's strings count code points and compare them one by one, so the rule is a few lines there.
Each example is a document with many spans, checked in one round trip, so that there can be many.
"""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from support.world import World, set_context

DOCUMENTS = 350
SPANS = 24
LEAST = 5000

# What pages of a court's record are made of, once they went through OCR and a text layer.
PIECES = (
    "The lessee", "shall", "notify", "the owner", "rent due", "modern", "modem", " ", " ", "\n",
    "\r\n", "\r", "\t", "\u00a0", "\u2009", "\u3000", "\u200b", "\u200d", "\ufeff", "\u00ad",
    "\u00ad\n", "-\n", "pro\ufb01t", "profit", "\u00a7\u00a02", "\u00a7 2", "e\u0301", "\u00e9",
    "a\u0328\u0301", "\u1100\u1161", "\uac00", "\U0001f4c4", "\U0001f468\u200d\U0001f469",
    "\U0001d518", "\u0640\u0644\u0627", "\u202e\u05d0\u05d1\u202c", "\u200f", "12% (est", "%", "_",
    "\\", ".*", "'", '"', "{x}", "I", "\u0130", "\u0131", "\u00df", "ss", "\u017f", "\u212b",
    "\u2126", "\u0378", "\uffff", "\U0010ffff", "\u0001", "\u007f",
)  # fmt: skip

text = st.lists(
    st.one_of(
        st.sampled_from(PIECES),
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=3),
    ),
    min_size=2,
    max_size=14,
).map("".join)

# What a careless hand does to a quote.
CHANGES = (
    lambda s: s,
    str.upper,
    str.lower,
    str.swapcase,
    str.strip,
    lambda s: s[:-1],
    lambda s: s[1:],
    lambda s: s + " ",
    lambda s: s.replace("\r\n", "\n"),
    lambda s: s.replace("\n", " "),
    lambda s: s.replace("\u00a0", " "),
    lambda s: s.replace("\u00ad", ""),
    lambda s: s.replace("-\n", ""),
    lambda s: s.replace("\u200b", ""),
    lambda s: s.replace("\ufeff", ""),
    lambda s: unicodedata.normalize("NFC", s),
    lambda s: unicodedata.normalize("NFD", s),
    lambda s: unicodedata.normalize("NFKC", s),
    lambda s: s[::-1],
)


@dataclass(frozen=True)
class Example:
    """A document, and spans to look for in it."""

    pages: dict[int, list[str]]
    spans: list[dict[str, Any]]


@st.composite
def examples(draw: st.DrawFn) -> Example:
    blocks_of_a_page = st.lists(st.one_of(text, text, text, st.just("")), max_size=4)
    pages = draw(st.dictionaries(st.integers(1, 4), blocks_of_a_page, min_size=1, max_size=3))
    if draw(st.integers(0, 19)) == 0:
        pages = {}
    numbers = [*sorted(pages) * 5, 1, 5]
    spans = []
    for _ in range(SPANS):
        page = draw(st.sampled_from(numbers))
        blocks = pages.get(page, [])
        block = draw(st.one_of(st.none(), st.sampled_from([*range(len(blocks))] * 5 + [9])))
        if block is None:
            unit = "\n".join(blocks)
        else:
            unit = blocks[block] if block < len(blocks) else "beyond"
        start = draw(st.integers(0, len(unit)))
        end = draw(st.integers(start, min(len(unit), start + 12)))
        change = draw(st.sampled_from(CHANGES)) if draw(st.booleans()) else CHANGES[0]
        quote = change(unit[start:end])
        if draw(st.integers(0, 9)) == 0:
            quote = draw(text)
        if not quote:
            quote = draw(st.sampled_from(PIECES))
        span: dict[str, Any] = {"page_number": page, "quote": quote}
        if block is not None or draw(st.booleans()):
            span["block_index"] = block
        if draw(st.integers(0, 3)) > 0:
            shift = draw(st.sampled_from((0, 0, 0, 0, 1, -1, 2, 7)))
            span["char_start"] = max(start + shift, 0)
            length = draw(st.sampled_from((len(quote), len(quote), len(quote), end - start)))
            span["char_end"] = span["char_start"] + max(length, 1)
        spans.append(span)
    return Example(pages, spans)


# The oracle

# Beyond white space, format characters and separators: what is drawn as nothing.
_FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
# Format characters that are drawn.
_DRAWN = "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"


def unseen(character: str) -> bool | None:
    """Say whether a character shows nothing; None where that is a matter of opinion."""
    code = ord(character)
    if character in _FILLERS or character.isspace():
        return True
    if 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF:
        return True
    category = unicodedata.category(character)
    if category == "Cf":
        if character in _DRAWN or 0x13430 <= code <= 0x1343F:
            return None
        return True
    if category in ("Zs", "Zl", "Zp"):
        return True
    return None if category == "Cn" and (code == 0x2065 or 0xE0000 <= code <= 0xE0FFF) else False


def blank(quote: str) -> bool | None:
    found = {unseen(character) for character in quote}
    if False in found:
        return False
    return True if found <= {True} else None


def expected(example: Example, span: dict[str, Any]) -> str | None:
    """Say what must come out: verified, a reason, or 22023; None for a matter of opinion."""
    quote = span["quote"]
    if (nothing := blank(quote)) is not False:
        return "22023" if nothing else None
    if not example.pages:
        return "no_pages"
    if span["page_number"] not in example.pages:
        return "page_missing"
    blocks = example.pages[span["page_number"]]
    block = span.get("block_index")
    if block is not None and block >= len(blocks):
        return "block_out_of_range"
    unit = "\n".join(blocks) if block is None else blocks[block]
    if "char_start" not in span:
        return "verified" if quote in unit else "quote_absent"
    if span["char_end"] > len(unit):
        return "offsets_out_of_range"
    same = unit[span["char_start"] : span["char_end"]] == quote
    return "verified" if same else "text_mismatch"


VERDICT = """
create function pg_temp.verdict(p_span jsonb)
returns text
language plpgsql
as $$
declare
  v_found citeledger.span_resolution;
begin
  v_found := citeledger.resolve_span(p_span);
  if v_found.verified is distinct from (v_found.reason is null) then
    return 'contradiction';
  end if;
  return coalesce(v_found.reason, 'verified');
exception
  when others then
    return sqlstate;
end
$$
"""

# What cite answers, by the same words, and whether it is a CiteResolution in all its parts.
CITED = """
create function pg_temp.cited(p_answer jsonb, p_matter_number text, p_span jsonb)
returns text
language plpgsql
as $$
declare
  v_span jsonb := jsonb_strip_nulls(p_span);
  v_is_verified boolean := p_answer ->> 'reason' is null;
begin
  if p_answer ? 'error' then
    return p_answer #>> '{error,sqlstate}';
  end if;
  if p_answer::text <> jsonb_build_object(
    'verified', v_is_verified,
    'reason', p_answer -> 'reason',
    'deep_link', case
      when v_is_verified then concat(
        '/matters/', p_matter_number, '/record/doc/', v_span ->> 'document_id',
        '?page=' || (v_span ->> 'page_number'), '&block=' || (v_span ->> 'block_index')
      )
    end,
    'engine_state', 'live',
    'checked_at', statement_timestamp(),
    'span', v_span
  )::text then
    return 'contradiction';
  end if;
  return coalesce(p_answer ->> 'reason', 'verified');
end
$$
"""
CITE = """
create function pg_temp.cite(p_matter_id uuid, p_span jsonb)
returns jsonb
language plpgsql
as $$
begin
  return citeledger.cite(p_matter_id, p_span);
exception
  when others then
    return jsonb_build_object('error', jsonb_build_object('sqlstate', sqlstate));
end
$$
"""
EVERY_ANSWER = """
select
  pg_temp.verdict(s.span),
  pg_temp.cited(pg_temp.cite(%(matter)s, s.span), %(number)s, s.span),
  pg_temp.cited(m.answer, %(number)s, s.span)
from jsonb_array_elements(%(spans)s::jsonb) with ordinality as s (span, place)
left join jsonb_array_elements(citeledger.cite_many(%(matter)s, %(spans)s::jsonb))
  with ordinality as m (answer, place) on m.place = s.place
order by s.place
"""


NUMBER = "2026-7"


@pytest.fixture
def matter(world: World) -> UUID:
    return world.project(matter_number=NUMBER)


@pytest.fixture
def document(app: psycopg.Connection[Any], world: World, matter: UUID) -> Iterator[UUID]:
    identifier = world.document(matter)
    set_context(app, world.firm_id, permissions=("matters:read",))
    for function in (VERDICT, CITED, CITE):
        app.execute(function)
    yield identifier
    app.rollback()


def test_every_answer_equals_the_oracle(
    app: psycopg.Connection[Any], matter: UUID, document: UUID
) -> None:
    outcomes: Counter[str] = Counter()

    @settings(
        max_examples=DOCUMENTS,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(examples())
    def compare(example: Example) -> None:
        pages = [{"page_number": n, "blocks": b} for n, b in example.pages.items()]
        spans = [{"document_id": str(document)} | span for span in example.spans]
        app.execute(
            "select citeledger.replace_document_pages(%s::uuid, %s::jsonb)",
            (document, json.dumps(pages)),
        )
        found = app.execute(
            EVERY_ANSWER, {"matter": matter, "number": NUMBER, "spans": json.dumps(spans)}
        ).fetchall()
        for span, verdicts in zip(example.spans, found, strict=True):
            # Also where it is a matter of opinion, it is one.
            assert len(set(verdicts)) == 1, (verdicts, example.pages, span)
            wanted = expected(example, span)
            if wanted is not None:
                outcomes[wanted] += 1
                assert verdicts[0] == wanted, (example.pages, span)

    compare()
    assert sum(outcomes.values()) >= LEAST, outcomes
    assert set(outcomes) == {
        "verified", "no_pages", "page_missing", "block_out_of_range", "offsets_out_of_range",
        "text_mismatch", "quote_absent", "22023",
    }  # fmt: skip
    # Both answers were put to the test in earnest.
    assert outcomes["verified"] > 500
    assert outcomes["text_mismatch"] > 500
    print(dict(outcomes))


def test_the_oracle_can_fail(app: psycopg.Connection[Any], document: UUID) -> None:
    """An oracle that agrees with anything guards nothing."""
    example = Example({1: ["\U0001f4c4\U0001f4c4\U0001f4c4 rent due"]}, [])
    for start, end, wanted in (
        (4, 12, "verified"),
        (7, 15, "offsets_out_of_range"),
        (13, 21, "offsets_out_of_range"),
        (3, 11, "text_mismatch"),
    ):
        span = {"page_number": 1, "char_start": start, "char_end": end, "quote": "rent due"}
        assert expected(example, span) == wanted
    assert expected(example, {"page_number": 1, "quote": "Rent due"}) == "quote_absent"
    assert expected(example, {"page_number": 1, "quote": "\u200b"}) == "22023"
    assert expected(example, {"page_number": 2, "quote": "x"}) == "page_missing"
    assert expected(example, {"page_number": 1, "block_index": 1, "quote": "x"}) == (
        "block_out_of_range"
    )
