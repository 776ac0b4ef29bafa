"""``python -m citeledger.mcp``: the door over stdio."""

from __future__ import annotations

import os
import sys
from typing import Any, cast

import anyio
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, ErrorData, JSONRPCError

from citeledger.errors import CiteLedgerError

from .lines import LONGEST_LINE, Lines, LineTooLongError
from .principal import Configuration, configuration
from .server import create_server, open_pool


async def serve(configured: Configuration) -> None:
    """Serve one client over stdin and stdout, until it leaves."""
    write: Any = None

    async def answer(identifier: int | str | None, problem: str) -> None:
        error = ErrorData(code=INVALID_REQUEST, message=problem)
        await write.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=identifier, error=error)))

    with open_pool(configured.dsn) as pool:
        server = create_server(pool, configured.principal)
        lines = Lines(sys.stdin.buffer, answer)
        # The SDK only iterates over it.
        async with stdio_server(stdin=cast("Any", lines)) as (read, write):
            await server.run(read, write, server.create_initialization_options())


def main() -> int:
    """Start the door; return what the process is to exit with."""
    try:
        configured = configuration(sys.argv[1:], os.environ)
    except CiteLedgerError as error:
        print(f"python -m citeledger.mcp: {error.message}", file=sys.stderr)
        return 2
    code = 0
    try:
        anyio.run(serve, configured)
    except* LineTooLongError:
        print(f"a message was longer than {LONGEST_LINE} bytes", file=sys.stderr)
        code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
