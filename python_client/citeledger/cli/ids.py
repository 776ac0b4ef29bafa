"""Ids as people give them, checked before a connection is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from citeledger.arguments import uuid_argument
from citeledger.errors import InvalidArgument

from .exits import CommandError

if TYPE_CHECKING:
    from uuid import UUID


def given_id(name: str, value: str) -> UUID:
    """Take an id in its canonical form, or say which argument is none."""
    try:
        return uuid_argument(name, value)
    except InvalidArgument:
        msg = f"{name} is not an id"
        raise CommandError(
            msg, hint="Write it like 01234567-89ab-cdef-0123-456789abcdef."
        ) from None


def optional_id(name: str, value: str | None) -> UUID | None:
    """Take what given_id takes, or None."""
    return None if value is None else given_id(name, value)
