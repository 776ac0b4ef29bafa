"""The short ways that most spans take say what the long ways say, and take only what they may.

``is_plain_span`` lets a span pass without ``span_fault``, and ``quote_fault`` spares itself the
count of the characters of a text: both are put to every case of a small world.
"""

from __future__ import annotations

import itertools
import json
import random
from typing import Any
from uuid import UUID

import psycopg

from support.records import Records
from support.world import set_context

DOCUMENT = "b2f6c1de-93aa-4f07-8bce-5d0e7fa1c9d4"
NUMBERS = (
    "0", "1", "2", "7", "2147483647", "2147483648", "9999999999", "1e400", "-1", "-0", "1.0",
    "1e0", "0.5", "1.5", '"1"', '""', "true", "null", "[]", "[1]", "[1, 2]", "{}", '{"a": 1}',
)  # fmt: skip
DOCUMENTS = (
    f'"{DOCUMENT}"', f'"{DOCUMENT.upper()}"', f'"{{{DOCUMENT}}}"', f'"{DOCUMENT} "',
    f'"{DOCUMENT}\\n"', f'"{DOCUMENT.replace("-", "")}"', f'"{DOCUMENT[:-1]}"',
    f'"{DOCUMENT[:-1]}g"', f'"{DOCUMENT[:-1]}\uff11"', f'"-{DOCUMENT[1:]}"',
    '"------------------------------------"', "1", "null", f'["{DOCUMENT}"]', "{}", '""',
)  # fmt: skip
QUOTES = (
    '"rent"', '"\u201crent\u201d"', '" rent"', '"\u200b\u00ad"', '" "', '""', '"\\n"', '"\u200bx"',
    '"\U000e0001"', "1", "null", '["rent"]', "{}", "true",
)  # fmt: skip
VALUES = {
    "document_id": DOCUMENTS,
    "page_number": NUMBERS,
    "block_index": NUMBERS,
    "char_start": NUMBERS,
    "char_end": NUMBERS,
    "quote": QUOTES,
    "limit": ("null", "1", '"x"'),
}
GOOD = {
    "document_id": f'"{DOCUMENT}"',
    "page_number": "3",
    "block_index": "0",
    "char_start": "4",
    "char_end": "8",
    "quote": '"rent"',
}
NOT_OBJECTS = (None, "null", "[]", "5", '"{}"', "true", '"document_id"', '["document_id"]', "[{}]")


def written(keys: dict[str, str]) -> str:
    return "{" + ", ".join(f'"{key}": {value}' for key, value in keys.items()) + "}"


def spans() -> list[str | None]:
    """Change or leave out every two keys of a good span, in every way."""
    found = {written({}), *NOT_OBJECTS}
    for first, second in itertools.combinations(VALUES, 2):
        for a, b in itertools.product((None, *VALUES[first]), (None, *VALUES[second])):
            changed = {k: v for k, v in GOOD.items() if k not in (first, second)}
            found.add(
                written(changed | {k: v for k, v in ((first, a), (second, b)) if v is not None})
            )
    return list(found)


def test_a_plain_span_is_well_formed_and_written_as_it_is(su: psycopg.Connection[Any]) -> None:
    every = spans()
    assert len(every) > 5000
    found = su.execute(
        """
        select
          s.span::text, citeledger_private.is_plain_span(s.span),
          citeledger_private.span_fault(s.span)
        from unnest(%s::text[]::jsonb[]) as s (span)
        """,
        (every,),
    ).fetchall()
    plain = [text for text, is_plain, _ in found if is_plain]
    well_formed = [text for text, _, fault in found if fault is None]
    assert {is_plain for _, is_plain, _ in found} == {True, False}
    assert set(plain) < set(well_formed)
    rewritten = su.execute(
        """
        select s.span::text,
          citeledger_private.write_span(citeledger_private.to_span(s.span))::text
        from unnest(%s::text[]::jsonb[]) as s (span)
        """,
        (well_formed,),
    ).fetchall()
    # No less either: what is written so is plain, or most spans would go the long way.
    assert set(plain) == {text for text, again in rewritten if text == again}
    assert len(plain) > 100


def test_to_span_reads_every_well_formed_span(su: psycopg.Connection[Any]) -> None:
    rows = su.execute(
        """
        select s.span, to_jsonb(citeledger_private.to_span(s.span))
        from unnest(%s::text[]::jsonb[]) as s (span)
        where citeledger_private.span_fault(s.span) is null
        """,
        (spans(),),
    ).fetchall()
    assert len(rows) > 400
    for span, read in rows:
        wanted = {key: span.get(key) for key in GOOD}
        assert read == wanted | {"document_id": wanted["document_id"].lower()}, span


def fault(content: str | None, start: int | None, end: int | None, quote: str) -> str | None:
    """Say what quote_fault must."""
    blank = not quote.strip()
    if start is None or end is None:
        return None if content and quote in content and not blank else "quote_absent"
    if content is not None and end > len(content):
        return "offsets_out_of_range"
    same = content is not None and content[start:end] == quote
    return None if same and not blank else "text_mismatch"


def test_every_quote_in_every_small_text(su: psycopg.Connection[Any]) -> None:
    """Letters of one, two and four bytes, and a blank."""
    letters = ("a", "\u00e9", "\U0001f4c4", " ")
    contents = ["".join(c) for n in range(5) for c in itertools.product(letters, repeat=n)]
    quotes = ["".join(c) for n in range(3) for c in itertools.product(letters, repeat=n)]
    places: list[tuple[int | None, int | None]] = [(None, None)]
    places += [(a, b) for a in range(5) for b in range(a + 1, 7)]
    rows = su.execute(
        """
        select c.content, p.char_start, p.char_end, q.quote,
          citeledger_private.quote_fault(c.content, p.char_start, p.char_end, q.quote)
        from unnest(%s::text[]) as c (content),
          unnest(%s::text[]) as q (quote),
          rows from (unnest(%s::integer[]), unnest(%s::integer[])) as p (char_start, char_end)
        """,
        ([*contents, None], quotes, [a for a, _ in places], [b for _, b in places]),
    ).fetchall()
    assert len(rows) == (len(contents) + 1) * len(quotes) * len(places)
    for content, start, end, quote, found in rows:
        assert found == fault(content, start, end, quote), (content, start, end, quote)


def test_a_quote_in_a_long_text_is_not_searched_for(su: psycopg.Connection[Any]) -> None:
    """It is cut out: an unlucky pair of texts would take many seconds to search."""
    content, quote = "a" * 200_000, "b" + "a" * 80_000
    places = (
        (0, len(quote), quote, "text_mismatch"),
        (100_000, 100_000 + len(quote), quote[1:] + "a", None),
        (120_000, 120_000 + len(quote), quote[1:] + "a", "offsets_out_of_range"),
        (199_999, 200_000, "a", None),
    )
    su.execute("set statement_timeout = '3s'")
    for start, end, piece, wanted in places:
        row = su.execute(
            "select citeledger_private.quote_fault(%s, %s, %s, %s)", (content, start, end, piece)
        ).fetchone()
        assert row == (wanted,), (start, end)
    su.execute("reset statement_timeout")


def test_the_last_offset_that_there_can_be(su: psycopg.Connection[Any]) -> None:
    row = su.execute(
        "select citeledger_private.quote_fault('rent', 2147483646, 2147483647, 't'),"
        " citeledger_private.quote_fault('rent', 3, 2147483647, 't'),"
        " citeledger_private.quote_fault('rent', 0, 2147483647, 'rent'),"
        " citeledger_private.quote_fault('rent', 0, 4, null)"
    ).fetchone()
    assert row == ("offsets_out_of_range",) * 3 + ("text_mismatch",)


def test_optional_keys_may_be_left_out_of_a_plain_span(su: psycopg.Connection[Any]) -> None:
    offsets = ("char_start", "char_end")
    for left_out in ((), ("block_index",), offsets, ("block_index", *offsets)):
        span = {k: v for k, v in GOOD.items() if k not in left_out}
        row = su.execute(
            "select citeledger_private.is_plain_span(%s::jsonb)", (written(span),)
        ).fetchone()
        assert row == (True,), span


def test_the_planner_puts_them_in_place_of_their_calls(su: psycopg.Connection[Any]) -> None:
    """Else each would be called for every span of a list, and nothing would be wrong but slow."""
    plan = "\n".join(
        line
        for (line,) in su.execute(
            """
            explain (verbose, costs off)
            select
              citeledger_private.is_plain_span(s.span),
              citeledger_private.quote_fault(s.quote, s.n, s.n, s.quote),
              citeledger_private.page_link(s.quote, s.id, s.n, s.n)
            from (values ('{}'::jsonb, 'q', 1, gen_random_uuid()), ('{}', 'r', 2, null))
              as s (span, quote, n, id)
            """
        )
    )
    assert "citeledger_private.is_blank" in plan
    assert all(name not in plan for name in ("is_plain_span", "quote_fault", "page_link")), plan


def test_a_link_that_is_put_together_is_the_link(su: psycopg.Connection[Any]) -> None:
    rows = su.execute(
        """
        select
          citeledger.deep_link(m.number, d.id, p.page, b.block),
          citeledger_private.page_link(
            citeledger_private.matter_link(m.number), d.id, p.page, b.block
          ),
          format('/matters/%%s/record/doc/%%s?page=%%s', m.written, d.id, p.page)
            || coalesce('&block=' || b.block, '')
        from (values ('2026-7', '2026-7'), ('a/b \u00e9%%', 'a%%2Fb%%20%%C3%%A9%%25'), (null, null))
            as m (number, written),
          (values (%s::uuid), (null)) as d (id),
          (values (3), (null)) as p (page),
          (values (0), (2147483647), (null)) as b (block)
        """,
        (DOCUMENT,),
    ).fetchall()
    assert len(rows) == 36
    for link, again, wanted in rows:
        assert link == again == wanted


def test_a_list_of_every_kind_is_answered_item_by_item(
    su: psycopg.Connection[Any], app: psycopg.Connection[Any]
) -> None:
    """The items that need a second look keep their places among those that need none."""
    records = Records.make(su)
    kinds = [
        records.span(),
        records.span(block_index=...),
        records.span(block_index=..., char_start=..., char_end=...),
        records.span(block_index=None),
        records.span(char_start=..., char_end=...),
        records.span(document_id=str(records.record).upper()),
        records.span(quote="nowhere"),
        records.span(block_index=7),
        records.span(page_number=7),
        records.span(page_number=7, block_index=...),
        records.span(page_number=0),
        records.span(quote=" "),
        records.span(UUID(DOCUMENT)),
        records.span(UUID(DOCUMENT), block_index=...),
        records.span(char_end=9999),
        5,
    ]
    set_context(app, records.firm_id)

    def alone(span: object) -> Any:
        try:
            with app.transaction():
                row = app.execute(
                    "select citeledger.cite(%s, %s::jsonb) - 'checked_at'",
                    (records.matter, json.dumps(span)),
                ).fetchone()
        except psycopg.Error as error:
            return error.sqlstate
        assert row is not None
        return row[0]

    wanted = [alone(span) for span in kinds]
    assert len({json.dumps(w, sort_keys=True) for w in wanted}) >= 8
    draw = random.Random(7)
    for _ in range(40):
        order = [draw.randrange(len(kinds)) for _ in range(draw.randrange(1, 24))]
        row = app.execute(
            "select citeledger.cite_many(%s, %s::jsonb)",
            (records.matter, json.dumps([kinds[n] for n in order])),
        ).fetchone()
        assert row is not None
        found = [
            item["error"]["sqlstate"]
            if "error" in item
            else {key: value for key, value in item.items() if key != "checked_at"}
            for item in row[0]
        ]
        assert found == [wanted[n] for n in order], order
