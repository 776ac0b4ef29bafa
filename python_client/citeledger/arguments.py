"""Checks of arguments, before any SQL is sent.

They refuse what PostgreSQL would refuse less clearly, or would take for something else: it accepts
an id in braces or without dashes, Python's own reader accepts ``urn:uuid:`` too, and True would
become 1. One form of each thing passes, and every refusal names the argument.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final
from uuid import UUID

from .errors import InvalidArgument

_ID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")
_LABEL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}", re.ASCII)
_DEEPEST: Final = 8
_LONGEST_INT: Final = 1024  # bits; Python itself will not write integers of many digits
_INT4_MAX: Final = 2**31 - 1

SPAN: Final = "span"


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
    found = _UNSTORABLE.search(value)
    if found is None:
        return value
    if found.group() == "\0":
        raise _refuse(
            field,
            f"a NUL character at position {found.start()}",
            "PostgreSQL cannot store it; record the source as unverified instead of cutting "
            "the character out, which would shift every offset behind it.",
        )
    raise _refuse(
        field,
        f"a lone surrogate at position {found.start()}",
        "Decode the text with the right encoding before it is passed on.",
    )


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


def bool_argument(field: str, value: object) -> bool:
    """Take True or False, and nothing that only counts as one of them."""
    if not isinstance(value, bool):
        raise _refuse(field, f"a {type(value).__name__}", "Pass True or False.")
    return value


def optional_text_argument(field: str, value: object) -> str | None:
    """Take what text_argument takes, or None."""
    return None if value is None else text_argument(field, value)


def optional_texts_argument(field: str, value: object) -> list[str | None]:
    """Take a collection of texts in which some may be None; a single text is not one."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Collection):
        raise _refuse(field, f"a {type(value).__name__}", "Pass a list of str.")
    return [optional_text_argument(f"{field}[{i}]", item) for i, item in enumerate(value)]


def json_argument(field: str, value: object) -> str:
    """Write a value as JSON, whatever it holds: what it means is for the database to judge.

    Only what no JSON in PostgreSQL can hold is refused: a NUL, half of a surrogate pair, a number
    that is not finite, and things that JSON has no word for. An id becomes its text. The keys of
    ``SPAN`` are fields of their own, as they are in the database's refusals.
    """
    return json.dumps(_jsonable(field, value, _DEEPEST), ensure_ascii=False, allow_nan=False)


def _jsonable(field: str, value: object, deepest: int) -> object:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return text_argument(field, value)
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, int) and value.bit_length() <= _LONGEST_INT:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, int | float):
        raise _refuse(field, "a number beyond every range", "Pass a number.")
    if deepest == 0:
        raise _refuse(field, "nested too deeply", "Pass it in the form that the call documents.")
    if isinstance(value, Mapping):
        return {
            _key(field, key): _jsonable(_member(field, key), item, deepest - 1)
            for key, item in value.items()
        }
    if isinstance(value, Collection) and not isinstance(value, bytes | bytearray | memoryview):
        return [_jsonable(f"{field}[{i}]", item, deepest - 1) for i, item in enumerate(value)]
    raise _refuse(field, f"a {type(value).__name__}", "Pass what JSON can say.")


def _key(field: str, key: object) -> str:
    if not isinstance(key, str):
        raise _refuse(field, f"a key that is a {type(key).__name__}", "Pass keys of type str.")
    return text_argument(field, key)


def _member(field: str, key: object) -> str:
    """Name a member of an object, but repeat no key that may be content."""
    if isinstance(key, str) and _LABEL.fullmatch(key):
        return key if field == SPAN else f"{field}.{key}"
    return field
