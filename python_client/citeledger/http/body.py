"""Reads the body of a request: not more than is allowed, and as JSON of one meaning only.

Python's own reader takes NaN, keeps the last of two equal keys, rounds long numbers and gives up on
deep nesting with an error of the interpreter. What a span means is for the database to judge; here
is only what no JSON of one meaning may hold.
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import ClientDisconnect

from citeledger.arguments import SPAN

from .problems import Problem

if TYPE_CHECKING:
    from fastapi import Request

_LABEL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}", re.ASCII)
_LONGEST_NUMBER: Final = 64


async def read_body(request: Request, most: int) -> bytes:
    """Read the body, and stop at once when it is too large, whatever its header says."""
    declared = request.headers.get("content-length", "")
    # The header only saves reading; a body that has none, or a false one, is counted below.
    if declared.isascii() and declared.isdigit() and int(declared[:20]) > most:
        raise Problem(413)
    parts = []
    size = 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise Problem(413)
            parts.append(part)
    except ClientDisconnect:
        raise _malformed("the body ended early") from None
    return b"".join(parts)


def require_json(request: Request) -> None:
    """Refuse a body that is not called JSON."""
    kinds = request.headers.getlist("content-type")
    kind, _, parameters = (kinds[0] if len(kinds) == 1 else "").partition(";")
    charset = re.sub(r"\s", "", parameters).lower()
    if kind.strip().lower() != "application/json" or charset not in (
        "",
        "charset=utf-8",
        'charset="utf-8"',
    ):
        raise Problem(415)


def read_json(body: bytes) -> Any:
    """Read JSON of one meaning, or raise the Problem that names the field."""
    try:
        return json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_float=_number,
            parse_int=_number,
        )
    except UnicodeDecodeError:
        problem = "not UTF-8"
    except RecursionError:
        problem = "nested too deeply"
    except ValueError:
        problem = "not JSON"
    raise _malformed(problem)


def _malformed(problem: str, field: str = SPAN) -> Problem:
    return Problem(422, f"{field}: {problem}.", field)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        field = key if _LABEL.fullmatch(key) else SPAN
        if key in found:
            raise _malformed("given twice", field)
        if isinstance(value, float) and math.isnan(value):
            raise _malformed("a number that cannot be kept exactly", field)
        found[key] = value
    return found


def _constant(_: str) -> float:
    return math.nan


def _number(text: str) -> int | float:
    """Read a number without changing it; one that would have to be rounded is no number."""
    if len(text) > _LONGEST_NUMBER:
        return math.nan
    if text.lstrip("-").isdigit():
        return int(text)
    value = float(text)
    if not math.isfinite(value) or Decimal(repr(value)) != Decimal(text):
        return math.nan
    return value
