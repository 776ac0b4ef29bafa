"""A firm with records, citations and a finalized turn, and the door on it; nothing is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

import anyio
import pytest
from mcp import Client
from mcp.server.lowlevel import Server
from mcp_types import CallToolResult
from psycopg.conninfo import conninfo_to_dict

from citeledger.mcp import Principal, create_server
from citeledger.mcp.server import open_pool
from support.records import QUOTE, Records
from support.server import Copies
from support.world import set_context

if TYPE_CHECKING:
    from conftest import Database


@dataclass(frozen=True, slots=True)
class Corpus:
    """The ids of it all."""

    records: Records
    citing: UUID
    cited: UUID
    walled: UUID
    withdrawn: UUID
    chat: UUID
    message: UUID

    @property
    def firm_id(self) -> UUID:
        return self.records.firm_id


@dataclass(frozen=True, slots=True)
class McpDoor:
    """A door for one principal, and the SDK's own client, connected to it in this process."""

    server: Server[Any]

    def call(self, name: str, arguments: dict[str, Any] | None = None) -> CallToolResult:
        """Call one tool; the SDK checks what comes back against the tool's output schema."""

        async def run() -> CallToolResult:
            async with Client(self.server) as client:
                return await client.call_tool(name, arguments)

        return anyio.run(run)

    def data(self, name: str, arguments: dict[str, Any]) -> Any:
        """Call a tool that is to succeed; return its data."""
        result = self.call(name, arguments)
        assert not result.is_error, result
        return result.structured_content

    def error(self, name: str, arguments: Any) -> dict[str, str]:
        """Call a tool that is to fail; return its code, message and perhaps field."""
        result = self.call(name, arguments)
        assert result.is_error, result
        assert isinstance(result.structured_content, dict)
        error = result.structured_content["error"]
        assert isinstance(error, dict)
        return error


@pytest.fixture(scope="module")
def dsn(deployed: Database, copies: Copies) -> Iterator[str]:
    """Give the connection string of a reader to a database of the module's own."""
    name = copies.take()
    yield deployed.server.dsn("t_reader", name)
    copies.give_back(name)


@pytest.fixture(scope="module")
def corpus(deployed: Database, dsn: str) -> Corpus:
    """Make the firm."""
    name = str(conninfo_to_dict(dsn)["dbname"])
    with deployed.server.connect(dbname=name, autocommit=True) as superuser:
        records = Records.make(superuser)
        world = records.world
        citing = world.document(title="Citing", doi="10.1000/citing")
        cited = world.document(title="Cited", doi="10.1000/cited")
        walled = world.document(records.walled, title="Walled", doi="10.1000/walled")
        withdrawn = world.document(title="Withdrawn", deleted_at="2026-01-01")
        chat = world.chat(records.matter)
        message = world.message(chat)
        world.citation(message, source_document_id=records.record, source_page=1, source_text=QUOTE)
        world.tool(message)
        with superuser.transaction():
            set_context(superuser, world.firm_id)
            world.finalize(message)
            superuser.execute(
                "select citeledger.record_references(%s, %s)",
                (citing, ["10.1000/Cited", "10.1000/nowhere", "10.1000/walled"]),
            )
    return Corpus(records, citing, cited, walled, withdrawn, chat, message)


@pytest.fixture(scope="module")
def opened(dsn: str, corpus: Corpus) -> Iterator[Callable[..., McpDoor]]:
    """Give a maker of doors for other principals of the firm."""
    with open_pool(dsn) as pool:

        def make(**changes: Any) -> McpDoor:
            principal = Principal(**({"firm_id": corpus.firm_id} | changes))
            return McpDoor(create_server(pool, principal))

        yield make


@pytest.fixture(scope="module")
def door(opened: Callable[..., McpDoor]) -> McpDoor:
    """Give the door for a person behind no wall, who may read matters."""
    return opened()
