"""What PostgreSQL cannot store in text: NUL, and half of a surrogate pair."""

from __future__ import annotations

import re
from typing import Final

_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")


def is_storable(text: str) -> bool:
    """Say whether PostgreSQL can store the text."""
    return _UNSTORABLE.search(text) is None


def storable(text: str) -> tuple[str, int]:
    """Replace what cannot be stored, one character by one, and return how many there were.

    Nothing is taken out, so every other character keeps its offset. Two halves that belong together
    are one character, as which the text means them.
    """
    if is_storable(text):
        return text, 0
    whole = _PAIR.sub(
        lambda found: found.group().encode("utf-16-le", "surrogatepass").decode("utf-16-le"), text
    )
    return _UNSTORABLE.subn(_REPLACEMENT, whole)
