"""The tools: how they are listed, and what they give; the SDK's client checks their schemas."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING
from uuid import uuid4

import anyio
import jsonschema
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import ListToolsResult, TextContent

from support.records import PERSON, QUOTE

if TYPE_CHECKING:
    from .conftest import Corpus, McpDoor


def listed(door: McpDoor) -> ListToolsResult:
    async def run() -> ListToolsResult:
        async with Client(door.server) as client:
            return await client.list_tools()

    return anyio.run(run)


def test_the_tools_are_these_and_only_read(door: McpDoor) -> None:
    tools = listed(door).tools
    assert [t.name for t in tools] == ["get_citations", "walk_citations", "cite", "ledger_trace"]
    for tool in tools:
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is True
        assert tool.annotations.destructive_hint is False
        assert tool.description


def test_the_schemas_are_schemas_and_closed(door: McpDoor) -> None:
    for tool in listed(door).tools:
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        assert tool.output_schema is not None
        jsonschema.Draft202012Validator.check_schema(tool.output_schema)
        assert tool.output_schema["type"] == "object"
        assert tool.input_schema["additionalProperties"] is False
        # Nobody becomes another by an argument.
        text = json.dumps(tool.input_schema)
        assert not any(word in text for word in ("firm", "user", "permission", "dsn"))


def test_get_citations(door: McpDoor, corpus: Corpus) -> None:
    assert door.data("get_citations", {"document_id": str(corpus.citing)}) == {
        "document_id": str(corpus.citing),
        "title": "Citing",
        "doi": "10.1000/citing",
        "references": [
            {
                "document_id": str(corpus.cited),
                "title": "Cited",
                "doi": "10.1000/Cited",
                "source": "crossref",
                "resolved": True,
            },
            {
                "document_id": None,
                "title": None,
                "doi": "10.1000/nowhere",
                "source": "crossref",
                "resolved": False,
            },
            {
                "document_id": None,
                "title": None,
                "doi": "10.1000/walled",
                "source": "crossref",
                "resolved": False,
            },
        ],
        "cited_by": [],
    }


def test_walk_citations(door: McpDoor, corpus: Corpus) -> None:
    seen = [
        {"document_id": str(corpus.citing), "hop": 0},
        {"document_id": str(corpus.cited), "hop": 1},
    ]
    start = {"document_ids": [str(corpus.citing), str(uuid4())]}
    assert door.data("walk_citations", start) == {"documents": seen}
    assert door.data("walk_citations", start | {"max_hops": 2147483647}) == {"documents": seen}
    assert door.data("walk_citations", start | {"max_hops": 0}) == {"documents": seen[:1]}
    up = start | {"max_hops": 1, "direction": "cited_by"}
    assert door.data("walk_citations", up) == {"documents": seen[:1]}


def test_cite(door: McpDoor, corpus: Corpus) -> None:
    records = corpus.records
    asked = {"matter_id": str(records.matter), "span": records.span()}
    found = door.data("cite", asked)
    assert (found["verified"], found["reason"]) == (True, None)
    assert found["deep_link"].endswith(f"/record/doc/{records.record}?page=1&block=1")
    assert found["span"] == records.span()
    missed = door.data("cite", asked | {"span": records.span(quote=QUOTE.upper())})
    assert (missed["verified"], missed["deep_link"]) == (False, None)
    assert missed["reason"] == "text_mismatch"
    page = {
        "document_id": str(records.record),
        "page_number": 1,
        "quote": QUOTE,
        "block_index": None,
        "char_start": None,
        "char_end": None,
    }
    assert door.data("cite", asked | {"span": page})["verified"] is True


def test_ledger_trace(door: McpDoor, corpus: Corpus) -> None:
    whole = door.data("ledger_trace", {"chat_id": str(corpus.chat)})
    assert whole["chat_id"] == str(corpus.chat)
    assert [e["source"]["kind"] for e in whole["entries"]] == ["kb_document", "web_search"]
    assert whole["entries"][0]["source"]["passages"][0]["text"] == QUOTE
    assert [g["gate_status"] for g in whole["gates"]] == ["fiduciary_grade"]
    one = {"chat_id": str(corpus.chat), "message_id": str(corpus.message)}
    assert door.data("ledger_trace", one) == whole
    assert door.data("ledger_trace", one | {"message_id": None}) == whole


def test_the_text_is_the_same_as_the_data(door: McpDoor, corpus: Corpus) -> None:
    result = door.call("get_citations", {"document_id": str(corpus.citing)})
    (content,) = result.content
    assert isinstance(content, TextContent)
    assert json.loads(content.text) == result.structured_content


def test_the_principal_decides(
    opened: Callable[..., McpDoor], door: McpDoor, corpus: Corpus
) -> None:
    asked = {"document_id": str(corpus.walled)}
    assert door.error("get_citations", asked)["code"] == "not_found"
    member = opened(user_id=PERSON)
    assert member.data("get_citations", asked)["title"] == "Walled"
    references = member.data("get_citations", {"document_id": str(corpus.citing)})["references"]
    assert [r["resolved"] for r in references] == [True, False, True]
    stranger = opened(firm_id=uuid4())
    assert stranger.error("get_citations", asked)["code"] == "not_found"


@pytest.mark.parametrize("name", ["corpus_delete", "record_references", "Cite", ""])
def test_a_tool_that_is_not_there(door: McpDoor, name: str) -> None:
    async def run() -> str:
        async with Client(door.server) as client:
            try:
                await client.call_tool(name, {})
            except MCPError as error:
                return error.message
        return "no error"

    assert anyio.run(run) == "There is no tool of this name."
