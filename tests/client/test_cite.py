"""Cite through the client: what goes to the database, what comes back, and what is refused here."""

from __future__ import annotations

import dataclasses
import json
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

import citeledger
from citeledger import (
    CiteError,
    CiteLedger,
    CiteResolution,
    InvalidArgument,
    NotFound,
    PageBlock,
    PermissionDenied,
    Recheck,
    SourceSpan,
    SpanResolution,
    SuggestedSpan,
    calls,
)
from citeledger import arguments as check
from support.records import BLOCKS, QUOTE, READ, Records


@pytest.fixture
def records(su: psycopg.Connection[Any]) -> Records:
    return Records.make(su)


@pytest.fixture
def client(app: psycopg.Connection[Any]) -> CiteLedger:
    return CiteLedger(app)


def span_of(records: Records, **changes: Any) -> SourceSpan:
    start = BLOCKS[1].index(QUOTE)
    span = SourceSpan(records.record, 1, QUOTE, 1, start, start + len(QUOTE))
    return dataclasses.replace(span, **changes)


def test_cite(client: CiteLedger, records: Records) -> None:
    span = span_of(records)
    with client.context(firm_id=records.firm_id, permissions=READ):
        found = client.cite(records.matter, span)
        drifted = client.cite(str(records.matter), span_of(records, quote="Ninety"))
        by_mapping = client.cite(records.matter, records.span())
        by_page = client.cite(records.matter, SourceSpan(records.record, 1, QUOTE))
    assert isinstance(found, CiteResolution)
    assert (found.verified, found.reason, found.engine_state) == (True, None, "live")
    assert found.deep_link is not None
    assert found.deep_link.endswith(f"/record/doc/{records.record}?page=1&block=1")
    assert found.checked_at.utcoffset() is not None
    assert found.span == span
    assert (drifted.verified, drifted.reason, drifted.deep_link) == (False, "text_mismatch", None)
    assert dataclasses.replace(by_mapping, checked_at=found.checked_at) == found
    assert by_page.verified
    assert by_page.span == SourceSpan(records.record, 1, QUOTE)


def test_cite_many(client: CiteLedger, records: Records) -> None:
    spans: list[SourceSpan | dict[str, Any]] = [
        span_of(records),
        {"page_number": "1"},
        span_of(records, document_id=uuid4()),
        span_of(records, page_number=9),
        span_of(records, page_number=0),
    ]
    with client.context(firm_id=records.firm_id, permissions=READ):
        found = client.cite_many(records.matter, iter(spans))
        assert client.cite_many(records.matter, []) == []
    good, malformed, missing, drifted, page_0 = found
    assert isinstance(good, CiteResolution)
    assert good.verified
    assert isinstance(drifted, CiteResolution)
    assert drifted.reason == "page_missing"
    assert isinstance(malformed, CiteError)
    assert malformed.sqlstate == "22023"
    assert malformed.message.endswith("document_id: missing")
    assert missing == CiteError("P0002", "record not found")
    assert isinstance(page_0, CiteError)


@pytest.mark.parametrize("spans", [{}, "[]", b"[]", None, 5])
def test_cite_many_of_no_list(client: CiteLedger, records: Records, spans: Any) -> None:
    with (
        pytest.raises(InvalidArgument, match="spans"),
        client.context(firm_id=records.firm_id, permissions=READ),
    ):
        client.cite_many(records.matter, spans)


def test_cite_ledger_entry(client: CiteLedger, records: Records) -> None:
    world = records.world
    chat = world.chat(records.matter)
    message = world.message(chat)
    world.citation(message, source_document_id=records.record, source_page=1, source_text=QUOTE)
    world.citation(message, source_document_id=records.record, source_text=QUOTE)
    with client.context(firm_id=records.firm_id, permissions=READ):
        client.finalize_turn(message)
        anchored, loose = (e.id for e in client.ledger_trace(chat).entries)
        found = client.cite_ledger_entry(anchored)
        assert found.verified
        nowhere = client.cite_ledger_entry(str(loose))
        assert (nowhere.verified, nowhere.reason) == (False, "not_anchored")
        assert nowhere.span == SourceSpan(records.record, None, QUOTE)
        with pytest.raises(NotFound):
            client.cite_ledger_entry(uuid4())


def test_pages(client: CiteLedger, records: Records) -> None:
    world = records.world
    message = world.turn(records.matter)
    citation = world.citation(
        message, source_document_id=records.record, source_page=1, source_text=QUOTE
    )
    with client.context(firm_id=records.firm_id, permissions=READ):
        assert client.read_pages(records.matter, records.record) == [
            PageBlock(1, n, content) for n, content in enumerate(BLOCKS)
        ]
        assert client.read_pages(records.matter, records.record, 2) == []
        assert client.resolve_span(span_of(records)) == SpanResolution(True, None)
        assert client.recheck_document(records.record) == [Recheck(citation, message, True, None)]
        pages = [{"page_number": 3, "blocks": ("x", QUOTE)}, {"page_number": 1, "blocks": ["é"]}]
        assert client.replace_document_pages(records.record, pages) == 2
        assert client.read_pages(records.matter, str(records.record), page_number=3) == [
            PageBlock(3, 0, "x"),
            PageBlock(3, 1, QUOTE),
        ]
        assert client.resolve_span(span_of(records)) == SpanResolution(False, "block_out_of_range")
        assert client.recheck_document(records.record) == [
            Recheck(citation, message, False, "quote_absent")
        ]
        assert client.suggest_spans(records.matter, span_of(records)) == [
            SuggestedSpan(3, 1, 0, len(QUOTE))
        ]
        assert client.suggest_spans(records.matter, span_of(records, quote="gone"), limit=1) == []
        assert client.replace_document_pages(records.record, []) == 0


def test_has_permission(client: CiteLedger, records: Records) -> None:
    with client.context(firm_id=records.firm_id, permissions=READ):
        assert client.has_permission("matters:read")
        assert not client.has_permission("Matters:read")
    with client.context(firm_id=records.firm_id):
        assert not client.has_permission("matters:read")


def test_what_the_database_refuses(
    client: CiteLedger, records: Records, app: psycopg.Connection[Any]
) -> None:
    """A mapping goes as it is: its form is judged there, and there alone."""
    for changes, key in (
        ({"page_number": "1"}, "page_number"),
        ({"page_number": 1.5}, "page_number"),
        ({"page_number": True}, "page_number"),
        ({"page_number": 3_000_000_000}, "page_number"),
        ({"quote": "\u00a0"}, "quote"),
        ({"limit": 5}, "limit"),
        ({"char_end": ...}, "char_end"),
        ({"document_id": "x"}, "document_id"),
    ):
        with (
            pytest.raises(InvalidArgument) as caught,
            client.context(firm_id=records.firm_id, permissions=READ),
        ):
            client.cite(records.matter, records.span(**changes))
        assert caught.value.sqlstate == "22023"
        assert (caught.value.detail or "").startswith(f"{key}: ")
        assert caught.value.hint
        app.rollback()
    with (
        pytest.raises(PermissionDenied),
        client.context(firm_id=records.firm_id),
    ):
        client.cite(records.matter, {})


def test_whole_numbers_and_ids_are_taken_as_json_has_them(
    client: CiteLedger, records: Records
) -> None:
    with client.context(firm_id=records.firm_id, permissions=READ):
        span = records.span(page_number=1.0, document_id=records.record, block_index=None)
        assert client.resolve_span(span | {"char_start": None, "char_end": None}).verified


NO_SQL: dict[str, Any] = {
    "NUL": "a\0b",
    "lone surrogate": "\ud800",
    "reversed pair": "\udc00\ud800",
    "NaN": float("nan"),
    "infinity": float("inf"),
    "bytes": b"x",
    "a thing": object(),
    "a key that is no text": {1: 2},
    "an endless number": 10**400,
}


@pytest.mark.parametrize("value", NO_SQL.values(), ids=NO_SQL)
def test_what_never_gets_there(app: psycopg.Connection[Any], value: Any) -> None:
    client = CiteLedger(app)
    one: dict[str, Any] = {"document_id": uuid4(), "page_number": 1, "quote": value}
    span = SourceSpan(uuid4(), 1, value)
    matter = uuid4()
    for call, field in (
        (lambda: client.cite(matter, one), "quote"),
        (lambda: client.cite(matter, span), "quote"),
        (lambda: client.resolve_span(one), "quote"),
        (lambda: client.suggest_spans(matter, span), "quote"),
        (lambda: client.cite_many(matter, [{}, one]), "spans[1].quote"),
        (lambda: client.cite_many(matter, [span]), "spans[0].quote"),
        (
            lambda: client.replace_document_pages(
                matter, [{"page_number": 1, "blocks": ["x", value]}]
            ),
            "pages[0].blocks[1]",
        ),
    ):
        with pytest.raises(InvalidArgument) as caught:
            call()
        assert caught.value.sqlstate is None
        assert (caught.value.detail or "").startswith(f"{field}: ")
    # The connection would have begun a transaction otherwise.
    assert app.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


def test_a_refusal_repeats_no_content() -> None:
    with pytest.raises(InvalidArgument) as caught:
        check.json_argument(check.SPAN, {"the tenant's secret": "more secret\0"})
    assert "secret" not in str(caught.value)
    assert (caught.value.detail or "").startswith("span: a NUL")
    with pytest.raises(InvalidArgument):
        check.json_argument(check.SPAN, {"a\0": 1})


def test_nesting_has_an_end() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InvalidArgument, match="deeply"):
        check.json_argument("pages", endless)


@pytest.mark.parametrize(
    "value",
    [
        "100% of %s {x}",
        "\U0001f4c4 e\u0301 \u2028",
        'it\'s "so" \\ \\u0000',
        True,
        None,
        1.5,
        -7,
        [],
    ],
)
def test_json_keeps_a_value_as_it_is(value: object) -> None:
    assert json.loads(check.json_argument("x", {"a": value})) == {"a": value}


def test_ids_that_are_refused_here(app: psycopg.Connection[Any]) -> None:
    client = CiteLedger(app)
    bad: Any = "nope"
    good = uuid4()
    for call in (
        lambda: client.cite(bad, {}),
        lambda: client.cite_many(bad, []),
        lambda: client.cite_ledger_entry(bad),
        lambda: client.recheck_document(bad),
        lambda: client.suggest_spans(bad, {}),
        lambda: client.suggest_spans(good, {}, limit=True),
        lambda: client.read_pages(bad, good),
        lambda: client.read_pages(good, bad),
        lambda: client.read_pages(good, good, bad),
        lambda: client.replace_document_pages(bad, []),
        lambda: client.has_permission(5),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidArgument):
            call()
    assert app.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


@pytest.mark.parametrize(
    ("call", "row"),
    [
        (calls.SUGGEST_SPANS, SuggestedSpan),
        (calls.READ_PAGES, PageBlock),
        (calls.RECHECK_DOCUMENT, Recheck),
        (calls.RESOLVE_SPAN, SpanResolution),
    ],
)
def test_rows_have_the_columns_of_their_functions(
    su: psycopg.Connection[Any], call: calls.Call[..., Any], row: Any
) -> None:
    found = su.execute(
        "select array_agg(coalesce(a.name, b.name) order by coalesce(a.place, b.place))"
        " from pg_catalog.pg_proc as p"
        " left join lateral unnest(p.proargnames, p.proargmodes)"
        "   with ordinality as a (name, mode, place) on a.mode = 't'"
        " left join lateral (select t.attname::text as name, t.attnum as place"
        "   from pg_catalog.pg_type as y join pg_catalog.pg_attribute as t"
        "   on t.attrelid = y.typrelid and t.attnum > 0 where y.oid = p.prorettype) as b"
        "   on p.proargmodes is null"
        " where p.pronamespace = 'citeledger'::regnamespace and p.proname = %s",
        (call.name,),
    ).fetchone()
    assert found is not None
    assert [f.name for f in dataclasses.fields(row)] == found[0]


def test_the_json_has_no_keys_that_the_rows_lack(
    su: psycopg.Connection[Any], records: Records
) -> None:
    with su.transaction():
        su.execute(
            "select citeledger.set_context(%s, null, array['matters:read'])", (records.firm_id,)
        )
        row = su.execute(
            "select citeledger.cite(%s, %s::jsonb)", (records.matter, json.dumps(records.span()))
        ).fetchone()
    assert row is not None
    assert set(row[0]) == {f.name for f in dataclasses.fields(CiteResolution)}
    assert set(row[0]["span"]) == {f.name for f in dataclasses.fields(SourceSpan)}
    assert isinstance(UUID(row[0]["span"]["document_id"]), UUID)
    assert citeledger.SourceSpan is SourceSpan
