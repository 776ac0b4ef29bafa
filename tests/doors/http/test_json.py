"""One meaning or none: what loose readers of JSON let through is refused, with the field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from citeledger.http import create_app
from support.door import Door, principal, running
from support.records import Records

MALFORMED: dict[str, dict[str, Any]] = {
    "page_number": {
        "text": "3", "half": 3.7, "true": True, "null as text": "null", "null": None,
        "beyond int4": 3_000_000_000, "zero": 0, "negative": -1, "list": [1], "object": {},
        "missing": ..., "huge": 10**60,
    },
    "block_index": {"text": "0", "negative": -1, "false": False, "half": 0.5},
    "char_start": {"text": "0", "negative": -1, "missing": ...},
    "char_end": {"not after the start": 0, "missing": ..., "true": True},
    "quote": {
        "empty": "", "blank": " \t\u00a0\u200b\ufeff\u00ad", "number": 5, "null": None,
        "missing": ..., "list": ["x"],
    },
    "document_id": {"null": None, "missing": ..., "number": 5, "list": []},
    "limit": {"unknown key": 5},
    "Quote": {"unknown key": "x"},
}  # fmt: skip

CASES = [
    pytest.param(key, value, id=f"{key}: {why}")
    for key, values in MALFORMED.items()
    for why, value in values.items()
]


@pytest.mark.parametrize(("key", "value"), CASES)
def test_a_malformed_span(door: Door, records: Records, key: str, value: object) -> None:
    span = {k: v for k, v in (records.span() | {key: value}).items() if v is not ...}
    answer = door.cite(span)
    assert answer.status == 422, answer.body
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json["field"] == key
    assert answer.json["detail"].startswith(f"{key}: ")
    assert set(answer.json) == {"type", "title", "status", "detail", "field"}


def written(records: Records, key: str, value: str) -> bytes:
    """Write the span with one value as raw JSON."""
    span = records.span() | {key: "@@"}
    return json.dumps(span).replace('"@@"', value).encode()


@pytest.mark.parametrize(
    "number",
    [
        "NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1e-999", "1.00000000000000000001",
        "2147483647.0000000001", "1" + "0" * 5000, "1." + "0" * 5000 + "1", "0.1e1" + "0" * 99,
    ],
)  # fmt: skip
def test_a_number_that_would_be_changed(door: Door, records: Records, number: str) -> None:
    for key in ("page_number", "char_end", "limit"):
        answer = door.cite(raw=written(records, key, number))
        assert (answer.status, answer.json["field"]) == (422, key), answer.body


@pytest.mark.parametrize("number", ["1.0", "1e0", "10e-1", "0.1e1", "1.000"])
def test_a_whole_number_in_another_writing(door: Door, records: Records, number: str) -> None:
    answer = door.cite(raw=written(records, "page_number", number))
    assert answer.status == 200
    assert answer.json["verified"]
    assert answer.json["span"]["page_number"] == 1


@pytest.mark.parametrize("number", ["01", "+1", "0x1", ".1e1", "1.", "1_0", "\uff11"])
def test_what_is_no_number_in_json(door: Door, records: Records, number: str) -> None:
    answer = door.cite(raw=written(records, "page_number", number))
    assert (answer.status, answer.json["field"]) == (422, "span")


def test_a_key_that_is_given_twice(door: Door, records: Records) -> None:
    span = json.dumps(records.span())
    for key in ("page_number", "quote", "document_id"):
        raw = span[:-1] + f', "{key}": {json.dumps(records.span()[key])}}}'
        answer = door.cite(raw=raw.encode())
        assert (answer.status, answer.json["field"]) == (422, key)
        escaped = raw.replace(f', "{key}"', f', "\\u{ord(key[0]):04x}{key[1:]}"')
        assert door.cite(raw=escaped.encode()).json["field"] == key
    nested = json.dumps(records.span() | {"quote": "@@"}).replace('"@@"', '{"a": 1, "a": 2}')
    assert door.cite(raw=nested.encode()).json["field"] == "a"


@pytest.mark.parametrize(
    "raw",
    [
        b"", b" ", b"null", b"[]", b"5", b"true", b'"{}"', b"{", b"{}{}", b"{}x", b"{'a': 1}",
        b"\xff\xfe{\x00}\x00", b'{"quote": "\xff"}', b"\xef\xbb\xbf{}",
        b'{"quote": "\xed\xa0\x80"}',
        b'{"quote": "a\nb"}', b"[" * 60_000, b'{"a":' * 10_000, b"{/**/}", b'{"a": 1,}', b"NaN",
    ],
    ids=lambda raw: repr(raw[:20]),
)  # fmt: skip
def test_what_is_no_span_at_all(door: Door, raw: bytes) -> None:
    answer = door.cite(raw=raw)
    assert (answer.status, answer.json["field"]) == (422, "span"), answer.body


def test_a_span_as_a_text_of_json(door: Door, records: Records) -> None:
    answer = door.cite(json.dumps(records.span()))
    assert (answer.status, answer.json["field"]) == (422, "span")


def test_nested_more_deeply_than_a_reader_can_go(door: Door, dsn: str, records: Records) -> None:
    raw = written(records, "quote", "[" * 100 + "]" * 100)
    answer = door.cite(raw=raw)
    assert (answer.status, answer.json["field"]) == (422, "quote")
    app = create_app(dsn, principal=principal(), max_body_bytes=10_000_000)
    with running(app, records) as wide:
        for nested in ("[" * 100_000 + "]" * 100_000, '{"a":' * 100_000 + "1" + "}" * 100_000):
            answer = wide.cite(raw=written(records, "quote", nested))
            assert (answer.status, answer.json["field"]) == (422, "span")
            assert wide.cite(raw=nested[:100_000].encode()).status == 422
        assert wide.cite().status == 200


@pytest.mark.parametrize("text", ["a\\u0000b", "\\ud800", "\\udc00\\ud800", "a\\udfff"])
def test_text_that_the_database_cannot_hold(door: Door, records: Records, text: str) -> None:
    answer = door.cite(raw=written(records, "quote", f'"{text}"'))
    assert (answer.status, answer.json["field"]) == (422, "quote")


def test_a_pair_of_surrogates_is_a_character(door: Door, records: Records) -> None:
    answer = door.cite(raw=written(records, "quote", '"\\ud83d\\udcc4"'))
    assert answer.status == 200
    assert answer.json["span"]["quote"] == "\U0001f4c4"


@pytest.mark.parametrize(
    "quote",
    [
        "pro\ufb01t share", "Ver\u00ad\ntrag", "\u00a7\u00a02", "\ufeffArticle 1",
        "line1\r\nline2", "e\u0301", "\u202eabc", "100% of %s {x}", "it's \\ \"so\"", "\u2028",
        " padded ", "\U0001f468\u200d\U0001f469",
    ],
)  # fmt: skip
def test_a_quote_arrives_as_it_is(door: Door, records: Records, quote: str) -> None:
    answer = door.cite(records.span(quote=quote))
    if quote == "\u2028":
        assert answer.json["field"] == "quote"
    else:
        assert answer.json["span"]["quote"] == quote
        assert not answer.json["verified"]


@pytest.mark.parametrize(
    "kind",
    ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
     "application/json; charset=latin-1", "application/jsonx", "text/json",
     "application/json, text/plain", "application/json; charset=utf-8; charset=utf-16"],
)  # fmt: skip
def test_another_kind_of_content(door: Door, kind: str) -> None:
    assert door.cite(headers={"Content-Type": kind}).status == 415


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON", 'application/json; charset="UTF-8"']
)
def test_this_kind_of_content(door: Door, kind: str) -> None:
    assert door.cite(headers={"Content-Type": kind}).status == 200


def test_a_body_that_is_compressed_is_no_json(door: Door, records: Records) -> None:
    import gzip

    raw = gzip.compress(json.dumps(records.span()).encode())
    assert door.cite(raw=raw, headers={"Content-Encoding": "gzip"}).status == 422
