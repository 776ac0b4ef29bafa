"""What the OpenAPI document says beyond what FastAPI reads from the code."""

from __future__ import annotations

from typing import Any, Final

from .problems import MEDIA_TYPE

SUMMARY: Final = (
    "The HTTP door of citeledger. A quote is compared byte for byte with the live page of a "
    "document, and only what holds gets a link. Numbers are judged by their value: 3.0 and 3e0 are "
    '3, while 3.7, "3" and true are refused.'
)

_INT4_MAX: Final = 2147483647


def _number(least: int, what: str, *, optional: bool = False) -> dict[str, Any]:
    return {
        "type": ["integer", "null"] if optional else "integer",
        "minimum": least,
        "maximum": _INT4_MAX,
        "description": what,
    }


REQUEST_BODY: Final[dict[str, Any]] = {
    "required": True,
    "description": "The span. A key given twice, NaN, and a number that would have to be rounded "
    "are refused.",
    "content": {
        "application/json": {
            "schema": {
                "title": "Span",
                "type": "object",
                "additionalProperties": False,
                "required": ["document_id", "page_number", "quote"],
                "dependentRequired": {"char_start": ["char_end"], "char_end": ["char_start"]},
                "properties": {
                    "document_id": {
                        "type": "string",
                        "format": "uuid",
                        "pattern": "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$",
                        "description": "The document, a record of the matter.",
                    },
                    "page_number": _number(1, "The page, from 1."),
                    "block_index": _number(
                        0,
                        "The block of the page, from 0; without it the offsets count in the page, "
                        "its blocks joined by one line feed.",
                        optional=True,
                    ),
                    "char_start": _number(
                        0,
                        "Where the quote begins, in Unicode code points from 0; both offsets or "
                        "neither.",
                        optional=True,
                    ),
                    "char_end": _number(
                        1, "Where it ends, exclusive; after char_start.", optional=True
                    ),
                    "quote": {
                        "type": "string",
                        "minLength": 1,
                        "description": "The quoted words, byte for byte; something in them has to "
                        "be visible.",
                    },
                },
                "examples": [
                    {
                        "document_id": "550e8400-e29b-41d4-a716-446655440000",
                        "page_number": 7,
                        "block_index": 2,
                        "quote": "ninety (90) days",
                    }
                ],
            }
        }
    },
}

_PROBLEM: Final[dict[str, Any]] = {
    "title": "Problem",
    "description": "Problem details (RFC 9457).",
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "additionalProperties": False,
    "properties": {
        "type": {"type": "string", "const": "about:blank"},
        "title": {"type": "string", "description": "The phrase of the status."},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
}

_FIELD: Final[dict[str, Any]] = {
    "type": "string",
    "description": "The key of the span that is at fault, or span.",
}

_HEADERS: Final[dict[int, dict[str, Any]]] = {
    401: {"WWW-Authenticate": "The scheme: Bearer."},
    503: {"Retry-After": "After how many seconds to try again."},
}

_WHEN: Final = {
    401: "There is no principal: no token, or one that proves nothing.",
    403: "The principal has no permission to read matters.",
    404: "The matter or the document is not there for the principal. One answer for an id that is "
    "malformed in the path, unknown, of another firm, of another matter, deleted, privileged, or "
    "behind a wall.",
    405: "The method is not POST.",
    413: "The body is larger than allowed.",
    415: "The body is not called application/json.",
    422: "The span is malformed; field says where.",
    503: "The database cannot be reached, or is too busy.",
}


def _response(status: int, when: str) -> dict[str, Any]:
    schema = dict(_PROBLEM)
    if status == 422:
        schema |= {
            "required": [*_PROBLEM["required"], "field"],
            "properties": {**_PROBLEM["properties"], "field": _FIELD},
        }
    response: dict[str, Any] = {
        "description": when,
        "content": {MEDIA_TYPE: {"schema": schema}},
    }
    if status in _HEADERS:
        response["headers"] = {
            name: {"description": text, "required": True, "schema": {"type": "string"}}
            for name, text in _HEADERS[status].items()
        }
    return response


RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    status: _response(status, when) for status, when in _WHEN.items()
}
"""What a request may get beside 200, in the order of the status; the checks come in the order 401,
413, 404 for an id that is malformed in the path, 403, 415, 422, 404."""
