"""What a call that failed says: a short code and plain words, with nothing to learn from.

No message of the database, no SQL, no name of a schema and no word of the request or of a document
gets out, but for the field and the problem that the client or the database named in the form
``field: problem``, which by their own rule never quotes.
"""

from __future__ import annotations

import json
import re
from typing import Final

import psycopg
from mcp_types import CallToolResult, TextContent

from citeledger.errors import CiteLedgerError, InvalidArgument, NotFound, PermissionDenied

MESSAGES: Final = {
    "invalid_argument": "The arguments are malformed.",
    "permission_denied": "The permission to read matters is required.",
    "not_found": "Nothing of this kind is here for you.",
    "timeout": "The answer took too long. Ask for less.",
    "unavailable": "The database cannot be reached. Try again later.",
    "internal": "The request could not be answered.",
}
"""What each code says; for invalid_argument it may be the field and its problem instead."""

_NAMED: Final = re.compile(
    r"(?P<field>[A-Za-z_][A-Za-z0-9_]{0,31})(?:\[\d+\]|\.[A-Za-z_][A-Za-z0-9_]{0,31})*"
    r": [A-Za-z0-9_ ,'()-]+\."
)


def failure(error: Exception) -> CallToolResult:
    """Say what an error of the client or of the driver is to a tool's caller."""
    if isinstance(error, InvalidArgument):
        named = _NAMED.fullmatch(error.detail or "")
        return _result("invalid_argument", named and named.group(), named and named["field"])
    if isinstance(error, PermissionDenied):
        return _result("permission_denied")
    if isinstance(error, NotFound):
        return _result("not_found")
    if isinstance(error, psycopg.errors.QueryCanceled):
        return _result("timeout")
    # Away, too busy, or not as it was deployed: what it is belongs into the log, not on the wire.
    if isinstance(error, psycopg.Error | CiteLedgerError):
        return _result("unavailable")
    return _result("internal")


def _result(code: str, message: str | None = None, field: str | None = None) -> CallToolResult:
    told = {"code": code, "message": message or MESSAGES[code]}
    if field:
        told["field"] = field
    return CallToolResult(
        content=[TextContent(type="text", text=json.dumps({"error": told}))],
        structured_content={"error": told},
        is_error=True,
    )
