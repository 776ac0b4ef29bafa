"""What is refused: arguments of another type, form or size, and what is not there for the caller.

An error has a code and plain words. It never repeats a value, SQL, a name of the database, or a
word of a document.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import jsonschema
import psycopg
import pytest

from citeledger import calls
from citeledger.client import CiteLedger
from citeledger.mcp import Principal, create_server
from citeledger.mcp.server import open_pool
from citeledger.mcp.tools import LONGEST_QUOTE, MOST_DOCUMENTS, TOOLS
from support.records import QUOTE

from .conftest import McpDoor

if TYPE_CHECKING:
    from .conftest import Corpus

ID = "00000000-0000-4000-8000-0000000000d1"
SPAN: dict[str, Any] = {"document_id": ID, "page_number": 1, "quote": "SECRET"}
BAD_IDS = {
    "no id": "SECRET",
    "empty": "",
    "null": None,
    "the word null": "null",
    "dashes": "-" * 36,
    "a line break": ID + "\n",
    "braces": f"{{{ID}}}",
    "urn": f"urn:uuid:{ID}",
    "no dashes": ID.replace("-", ""),
    "other digits": ID.replace("0", "\uff10"),
    "a number": 7,
    "a list": [ID],
}
BAD_NUMBERS = {
    "text": "3",
    "a float": 3.0,
    "a fraction": 3.7,
    "true": True,
    "the word null": "null",
    "too large": 3_000_000_000,
    "huge": 10**30,
    "NaN": float("nan"),
    "negative": -1,
}


def span(**changes: Any) -> dict[str, Any]:
    changed = SPAN | changes
    return {"matter_id": ID, "span": {k: v for k, v in changed.items() if v is not ...}}


CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    **{
        f"document_id: {why}": ("get_citations", {"document_id": value}, "document_id")
        for why, value in BAD_IDS.items()
    },
    **{
        f"document_ids: {why}": ("walk_citations", {"document_ids": [ID, value]}, "document_ids")
        for why, value in BAD_IDS.items()
    },
    **{
        f"matter_id: {why}": ("cite", span() | {"matter_id": value}, "matter_id")
        for why, value in BAD_IDS.items()
    },
    **{
        f"message_id: {why}": (
            "ledger_trace",
            {"chat_id": ID, "message_id": value},
            "message_id",
        )
        for why, value in BAD_IDS.items()
        if value is not None
    },
    **{
        f"max_hops: {why}": (
            "walk_citations",
            {"document_ids": [ID], "max_hops": value},
            "max_hops",
        )
        for why, value in (BAD_NUMBERS | {"null": None}).items()
    },
    **{
        f"{field}: {why}": ("cite", span(**{field: value}), field)
        for field in ("page_number", "block_index", "char_start", "char_end")
        for why, value in BAD_NUMBERS.items()
        # The SDK's client writes NaN as null, which leaves an optional field out.
        if field == "page_number" or why != "NaN"
    },
    "page 0": ("cite", span(page_number=0), "page_number"),
    "no page": ("cite", span(page_number=...), "page_number"),
    "a page of null": ("cite", span(page_number=None), "page_number"),
    "no quote": ("cite", span(quote=...), "quote"),
    "an empty quote": ("cite", span(quote=""), "quote"),
    "a quote of null": ("cite", span(quote=None), "quote"),
    "a quote that is no text": ("cite", span(quote=["SECRET"]), "quote"),
    "a quote with a NUL": ("cite", span(quote="SECRET\0"), "quote"),
    "a quote that is too long": ("cite", span(quote="SECRET" * LONGEST_QUOTE), "quote"),
    "a blank quote": ("cite", span(quote="\u200b "), "quote"),
    "one offset": ("cite", span(char_start=1), "char_end"),
    "offsets the wrong way round": ("cite", span(char_start=3, char_end=2), "char_end"),
    "an unknown key of a span": ("cite", span(limit=1), "limit"),
    "an unknown key that is content": ("cite", span(**{"SECRET is due": 1}), "span"),
    "a span as text": ("cite", {"matter_id": ID, "span": '{"quote": "SECRET"}'}, "span"),
    "a span that is null": ("cite", {"matter_id": ID, "span": None}, "span"),
    "a list as span": ("cite", {"matter_id": ID, "span": [SPAN]}, "span"),
    "no span": ("cite", {"matter_id": ID}, "span"),
    "no arguments": ("get_citations", {}, "document_id"),
    "an unknown argument": ("get_citations", {"document_id": ID, "limit": 5}, "limit"),
    "another's firm": ("get_citations", {"document_id": ID, "firm_id": ID}, "firm_id"),
    "an argument that is content": (
        "get_citations",
        {"document_id": ID, "SECRET is due": 1},
        "arguments",
    ),
    "no list": ("walk_citations", {"document_ids": ID}, "document_ids"),
    "an empty list": ("walk_citations", {"document_ids": []}, "document_ids"),
    "a long list": (
        "walk_citations",
        {"document_ids": [ID] * (MOST_DOCUMENTS + 1)},
        "document_ids",
    ),
    "a direction": (
        "walk_citations",
        {"document_ids": [ID], "direction": "SECRET"},
        "direction",
    ),
    "a direction of null": (
        "walk_citations",
        {"document_ids": [ID], "direction": None},
        "direction",
    ),
}


@pytest.mark.parametrize(("tool", "arguments", "field"), CASES.values(), ids=CASES)
def test_malformed(door: McpDoor, tool: str, arguments: dict[str, Any], field: str) -> None:
    result = door.call(tool, arguments)
    assert result.is_error
    assert isinstance(result.structured_content, dict)
    error = result.structured_content["error"]
    assert (error["code"], error["field"]) == ("invalid_argument", field)
    assert error["message"].startswith(field)
    assert "SECRET" not in str(result)


def test_what_a_schema_refuses_is_refused_and_the_other_way_round(door: McpDoor) -> None:
    """The schemas that are shown say what the door does, but for what only the database knows."""
    only_the_database = {
        "a quote with a NUL",
        "a blank quote",
        "one offset",
        "offsets the wrong way round",
    }
    # JSON Schema counts 3.0 as an integer, and has no word for a line break at the end.
    beyond_schemas = ("a float", "a line break")
    schemas = {t.name: t.takes.schema for t in TOOLS}
    for why, (tool, arguments, _) in CASES.items():
        valid = jsonschema.Draft202012Validator(schemas[tool]).is_valid(arguments)
        beyond = why in only_the_database or why.endswith(beyond_schemas)
        assert valid <= beyond, why
    for tool, good in (
        ("get_citations", {"document_id": ID}),
        ("walk_citations", {"document_ids": [ID], "max_hops": 0, "direction": "cites"}),
        ("cite", span()),
        ("cite", span(block_index=0, char_start=0, char_end=1)),
        ("cite", span(block_index=None, char_start=None, char_end=None)),
        ("ledger_trace", {"chat_id": ID, "message_id": None}),
    ):
        jsonschema.Draft202012Validator(schemas[tool]).validate(good)


@pytest.mark.parametrize("why", ["withdrawn", "walled", "nowhere"])
def test_not_found_is_one_answer(door: McpDoor, corpus: Corpus, why: str) -> None:
    there = {"withdrawn": corpus.withdrawn, "walled": corpus.walled, "nowhere": uuid4()}
    assert door.error("get_citations", {"document_id": str(there[why])}) == {
        "code": "not_found",
        "message": "Nothing of this kind is here for you.",
    }


def test_cite_of_what_is_not_there(door: McpDoor, corpus: Corpus) -> None:
    answers = [
        door.error(
            "cite",
            {"matter_id": str(matter), "span": corpus.records.span(document)},
        )
        for matter, document in corpus.records.not_there.values()
    ]
    assert answers
    assert all(a == answers[0] for a in answers)
    assert answers[0]["code"] == "not_found"


def test_ledger_trace_of_what_is_not_there(door: McpDoor) -> None:
    assert door.error("ledger_trace", {"chat_id": str(uuid4())})["code"] == "not_found"


def test_without_the_permission(opened: Callable[..., McpDoor], corpus: Corpus) -> None:
    blind = opened(permissions=())
    for tool, arguments in (
        ("get_citations", {"document_id": str(corpus.citing)}),
        ("walk_citations", {"document_ids": [str(corpus.citing)]}),
        ("cite", {"matter_id": str(corpus.records.matter), "span": corpus.records.span()}),
        ("ledger_trace", {"chat_id": str(corpus.chat)}),
    ):
        assert blind.error(tool, arguments)["code"] == "permission_denied"


def test_a_database_that_is_away(corpus: Corpus) -> None:
    with open_pool("host=127.0.0.1 port=1 user=nobody dbname=SECRET") as pool:
        pool.timeout = 0.2
        door = McpDoor(create_server(pool, Principal(corpus.firm_id)))
        result = door.call("get_citations", {"document_id": ID})
    assert result.is_error
    assert isinstance(result.structured_content, dict)
    assert result.structured_content["error"]["code"] == "unavailable"
    assert "SECRET" not in str(result)


def test_what_the_database_says_stays_inside(
    door: McpDoor, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise psycopg.errors.InternalError_(f"relation citeledger.chunks: {QUOTE}")

    monkeypatch.setattr(CiteLedger, "_send", fails)
    result = door.call("get_citations", {"document_id": ID})
    assert result.is_error
    assert QUOTE not in str(result)
    assert "citeledger.chunks" not in str(result)


def test_a_slow_answer_is_cut(dsn: str, corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = dataclasses.replace(
        calls.GET_CITATIONS, sql="select pg_catalog.pg_sleep(5)::text, %s::uuid"
    )
    monkeypatch.setattr("citeledger.mcp.server.STATEMENT_TIMEOUT", "50ms")
    monkeypatch.setattr(calls, "GET_CITATIONS", slow)
    with open_pool(dsn) as pool:
        cut = McpDoor(create_server(pool, Principal(corpus.firm_id)))
        assert cut.error("get_citations", {"document_id": ID})["code"] == "timeout"


def test_the_connections_can_only_read(dsn: str) -> None:
    with (
        open_pool(dsn) as pool,
        pool.connection() as connection,
        pytest.raises(psycopg.errors.ReadOnlySqlTransaction),
    ):
        connection.execute("create table public.t ()")
