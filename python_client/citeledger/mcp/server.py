"""The server: lists the tools and calls them, for one principal, in read-only transactions."""

from __future__ import annotations

import logging
from typing import Any, Final

import anyio.to_thread
import psycopg
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
)
from psycopg_pool import ConnectionPool

from citeledger._version import __version__
from citeledger.client import CiteLedger

from .failures import failure
from .principal import Principal
from .tools import TOOLS, ReadTool

_LOG: Final = logging.getLogger("citeledger.mcp")
_INSTRUCTIONS: Final = (
    "Read-only tools over the citation ledger of one firm. A quote is only verified when cite says "
    "so, with a link; never present another as checked."
)
STATEMENT_TIMEOUT: Final = "30s"


def open_pool(dsn: str) -> ConnectionPool[Any]:
    """Make a pool of connections that can only read; it is opened by whoever uses it."""
    return ConnectionPool(
        dsn,
        min_size=1,
        max_size=4,
        timeout=5,
        configure=_configure,
        check=ConnectionPool.check_connection,
        name="citeledger.mcp",
        open=False,
    )


def _configure(connection: psycopg.Connection[Any]) -> None:
    connection.read_only = True
    connection.execute(f"set statement_timeout = '{STATEMENT_TIMEOUT}'")
    connection.commit()


def create_server(pool: ConnectionPool[Any], principal: Principal) -> Server[Any]:
    """Make the server. The pool is the caller's, to open and to close.

    Every call runs in the principal's context. No argument of a tool names a firm, a person or a
    permission. The pool's login needs ``citeledger_reader`` and nothing more.
    """
    client = CiteLedger(pool)
    tools = {tool.name: tool for tool in TOOLS}

    def ask(tool: ReadTool, given: dict[str, Any]) -> Any:
        with client.context(
            firm_id=principal.firm_id,
            user_id=principal.user_id,
            permissions=principal.permissions,
        ) as bound:
            return tool.asks(bound, given)

    async def list_tools(
        _: ServerRequestContext[Any], __: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return ListToolsResult(tools=[tool.definition for tool in TOOLS])

    async def call_tool(
        _: ServerRequestContext[Any], params: CallToolRequestParams
    ) -> CallToolResult:
        tool = tools.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, "There is no tool of this name.")
        try:
            given = tool.takes.read("arguments", params.arguments or {})
            return tool.result(await anyio.to_thread.run_sync(ask, tool, given))
        except Exception as error:
            # Its class alone: a message may hold what a document says.
            _LOG.info("%s: %s", tool.name, type(error).__name__)
            return failure(error)

    return Server(
        "citeledger",
        version=__version__,
        title="citeledger",
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
