"""Checks of arguments, before any SQL is sent.

They refuse what PostgreSQL would refuse less clearly, or would take for something else: it accepts
an id in braces or without dashes, Python's own reader accepts ``urn:uuid:`` too, and True would
become 1. One form of each thing passes, and every refusal names the argument.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final
from uuid import UUID

from .errors import InvalidArgument

_ID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)
_INT4_MAX: Final = 2**31 - 1


def _refuse(field: str, problem: str, hint: str) -> InvalidArgument:
    return InvalidArgument(f"{field} is not valid", detail=f"{field}: {problem}.", hint=hint)


def uuid_argument(field: str, value: object) -> UUID:
    """Take a UUID, or its canonical form of 36 characters."""
    if isinstance(value, UUID):
        return value
    if isinstance(value, str):
        if _ID.fullmatch(value):
            return UUID(value)
        problem = f"a text of {len(value)} characters that is not in the form of an id"
    else:
        problem = f"a {type(value).__name__}"
    raise _refuse(
        field, problem, "Pass a uuid.UUID, or text like 01234567-89ab-cdef-0123-456789abcdef."
    )


def optional_uuid_argument(field: str, value: object) -> UUID | None:
    """Take what uuid_argument takes, or None."""
    return None if value is None else uuid_argument(field, value)


def uuids_argument(field: str, value: object) -> list[UUID]:
    """Take any iterable of ids, none at all included; a single text is not one."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise _refuse(field, f"a {type(value).__name__}", "Pass a list of ids.")
    return [uuid_argument(f"{field}[{i}]", item) for i, item in enumerate(value)]


def text_argument(field: str, value: object) -> str:
    """Take text that PostgreSQL can store: no NUL, no half of a surrogate pair."""
    if not isinstance(value, str):
        raise _refuse(field, f"a {type(value).__name__}", "Pass a str.")
    for position, character in enumerate(value):
        if character == "\0":
            raise _refuse(
                field,
                f"a NUL character at position {position}",
                "PostgreSQL cannot store it; record the source as unverified instead of cutting "
                "the character out, which would shift every offset behind it.",
            )
        if "\ud800" <= character <= "\udfff":
            raise _refuse(
                field,
                f"a lone surrogate at position {position}",
                "Decode the text with the right encoding before it is passed on.",
            )
    return value


def texts_argument(field: str, value: object) -> list[str]:
    """Take a collection of texts; a single text is not one."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Collection):
        raise _refuse(field, f"a {type(value).__name__}", "Pass a list of str.")
    return [text_argument(f"{field}[{i}]", item) for i, item in enumerate(value)]


def int_argument(field: str, value: object) -> int:
    """Take an int that PostgreSQL's integer can hold; a bool is none."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise _refuse(field, f"a {type(value).__name__}", "Pass an int.")
    if not -_INT4_MAX - 1 <= value <= _INT4_MAX:
        raise _refuse(field, "beyond the range of integer", "Pass a number of at most 2147483647.")
    return value
