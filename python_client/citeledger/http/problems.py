"""What a request gets when it is refused: problem details (RFC 9457), with nothing to learn from.

The texts are of our own making. No message of the database, no SQL, no name of a schema and no word
of the request gets into them, but for the field and the problem that the client or the database
named in the form ``field: problem``, which by their own rule never quotes.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import psycopg
from starlette.responses import JSONResponse

from citeledger.arguments import SPAN
from citeledger.errors import (
    CiteLedgerError,
    InvalidArgument,
    NotFound,
    PermissionDenied,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

MEDIA_TYPE: Final = "application/problem+json"

# The phrases of RFC 9110, which Python's own list has only since 3.13, and what each status says;
# for 422 it may be the field and its problem instead.
_TEXTS: Final = {
    400: ("Bad Request", "The request is malformed."),
    401: ("Unauthorized", "A valid bearer token is required."),
    403: ("Forbidden", "The permission to read matters is required."),
    404: ("Not Found", "Nothing of this kind is here for you."),
    405: ("Method Not Allowed", "The method is not allowed here."),
    413: ("Content Too Large", "The body is larger than allowed."),
    415: ("Unsupported Media Type", "The body must be application/json in UTF-8."),
    422: ("Unprocessable Content", "The span is malformed."),
    500: ("Internal Server Error", "The request could not be answered."),
    503: ("Service Unavailable", "The database cannot be reached. Try again later."),
}

_HEADERS: Final = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "5"}}
# What the database and the client say of a malformed span: a field of ours, and plain words.
_NAMED: Final = re.compile(
    r"(?P<field>[A-Za-z_][A-Za-z0-9_]{0,31})(?:\[\d+\]|\.[A-Za-z_][A-Za-z0-9_]{0,31})*"
    r": [A-Za-z0-9_ ,'()-]+\."
)


class Problem(Exception):  # noqa: N818 - the name of the RFC
    """A request that is refused, with the status and what may be said of it."""

    def __init__(self, status: int, detail: str | None = None, field: str | None = None) -> None:
        """Take the status; the detail is the status's own unless given."""
        super().__init__(status)
        self.status = status
        self.title, own = _TEXTS.get(status) or (HTTPStatus(status).phrase, "It was refused.")
        self.detail = detail or own
        self.field = field

    def response(self, headers: Mapping[str, str] | None = None) -> JSONResponse:
        """Write it as a response."""
        content: dict[str, Any] = {
            "type": "about:blank",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
        }
        if self.field is not None:
            content["field"] = self.field
        return JSONResponse(
            content,
            self.status,
            {**_HEADERS.get(self.status, {}), **(headers or {})},
            MEDIA_TYPE,
        )


def problem_of(error: Exception) -> Problem:
    """Say what an error of the client or of the driver is over HTTP."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, PermissionDenied):
        return Problem(403)
    if isinstance(error, NotFound):
        return Problem(404)
    if isinstance(error, InvalidArgument):
        named = _NAMED.fullmatch(error.detail or "")
        return Problem(422, named and named.group(), named["field"] if named else SPAN)
    # Away, too busy, or not as it was deployed: what it is belongs into the log, not on the wire.
    if isinstance(error, psycopg.Error | CiteLedgerError):
        return Problem(503)
    return Problem(500)
