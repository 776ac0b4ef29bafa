"""The tools: each is one call of the client, with typed arguments and a typed result."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from mcp_types import CallToolResult, TextContent, Tool, ToolAnnotations
from pydantic import TypeAdapter

from citeledger import rows
from citeledger.client import Bound

from .parameters import Fields, Id, ListOf, OneOf, Text, Whole

MOST_DOCUMENTS: Final = 1_000
LONGEST_QUOTE: Final = 20_000


@dataclass(frozen=True, slots=True)
class Walk:
    """The documents of a walk, by hop."""

    documents: list[rows.WalkedDocument]


@dataclass(frozen=True, slots=True)
class ReadTool:
    """One tool: what it takes, what it asks the client, what it gives."""

    name: str
    title: str
    description: str
    takes: Fields
    gives: TypeAdapter[Any]
    asks: Callable[[Bound, dict[str, Any]], Any]

    @property
    def definition(self) -> Tool:
        """The tool as it is listed."""
        return Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=self.takes.schema,
            output_schema=self.gives.json_schema(mode="serialization"),
            annotations=ToolAnnotations(
                title=self.title,
                read_only_hint=True,
                destructive_hint=False,
                idempotent_hint=True,
                open_world_hint=False,
            ),
        )

    def result(self, answer: Any) -> CallToolResult:
        """Write an answer as data, and as the same data in text for clients that want text."""
        data = self.gives.dump_python(answer, mode="json")
        text = json.dumps(data, ensure_ascii=False)
        return CallToolResult(
            content=[TextContent(type="text", text=text)], structured_content=data
        )


_SPAN: Final = Fields(
    {
        "document_id": Id("The document that is quoted."),
        "page_number": Whole("The page, from 1.", least=1),
        "block_index": Whole(
            "The block of the page, from 0; left out, the quote is looked for in the page, its "
            "blocks joined by one newline.",
            optional=True,
        ),
        "char_start": Whole(
            "Where the quote starts, in Unicode code points from 0, in the block or the page; "
            "both offsets or neither.",
            optional=True,
        ),
        "char_end": Whole("Where the quote ends, exclusive.", optional=True),
        "quote": Text("The quoted text, exactly as it stands in the document.", LONGEST_QUOTE),
    },
    {"block_index": None, "char_start": None, "char_end": None},
    "Where a quote is said to stand.",
    "span",
)

TOOLS: Final = (
    ReadTool(
        "get_citations",
        "What a document cites, and who cites it",
        "Returns the reference list of a document in printed order, each entry with the document "
        "that it resolves to when that document is present, and the documents that cite it.",
        Fields({"document_id": Id("The document.")}),
        TypeAdapter(rows.Citations),
        lambda client, given: client.get_citations(**given),
    ),
    ReadTool(
        "walk_citations",
        "Documents within some citations",
        "Returns the documents within max_hops citations of the given ones, each once, with its "
        "least number of hops; the given ones that are present have 0.",
        Fields(
            {
                "document_ids": ListOf("Where to start.", Id("A document."), MOST_DOCUMENTS),
                "max_hops": Whole("How many citations to follow at most."),
                "direction": OneOf(
                    "Along what a document cites, against it, or both.",
                    ("cites", "cited_by", "both"),
                ),
            },
            {"max_hops": 2, "direction": "both"},
        ),
        TypeAdapter(Walk),
        lambda client, given: Walk(client.walk_citations(**given)),
    ),
    ReadTool(
        "cite",
        "Check a quote against the live page",
        "Compares a quote of a matter's record byte for byte with the page as it is now. verified "
        "is true, with a link, only if it stands exactly there; otherwise reason says why not. "
        "Nothing is corrected or searched for: to cite another passage, ask with another span.",
        Fields({"matter_id": Id("The matter that holds the document."), "span": _SPAN}),
        TypeAdapter(rows.CiteResolution),
        lambda client, given: client.cite(
            given["matter_id"], {k: v for k, v in given["span"].items() if v is not None}
        ),
    ),
    ReadTool(
        "ledger_trace",
        "The ledger and the verdicts of a chat",
        "Returns every source that the turns of a chat brought in, with the status of its "
        "verification, and the verdict of each turn.",
        Fields(
            {
                "chat_id": Id("The chat."),
                "message_id": Id("One turn of it; left out, all of them.", optional=True),
            },
            {"message_id": None},
        ),
        TypeAdapter(rows.LedgerTrace),
        lambda client, given: client.ledger_trace(**given),
    ),
)
"""Everything that the door can be asked."""
