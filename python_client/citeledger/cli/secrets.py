"""Keeps passwords out of what is printed."""

from __future__ import annotations

import re
from typing import Final

_IN_URL: Final = re.compile(r"(?<=://)([^\s/@:]*):\S*@")
_IN_PAIRS: Final = re.compile(
    r"\b((?:ssl)?password)\s*=\s*(?:'(?:[^'\\]|\\.)*'|[^\s&]+)", re.IGNORECASE
)
_HIDDEN: Final = "***"
_SHORT: Final = 6
_known: set[str] = set()


def remember(secret: str | None) -> None:
    """Print this text never again."""
    if secret:
        _known.add(secret)


def redact(text: str) -> str:
    """Return the text without any password that is known, or that stands where one stands."""
    text = _IN_URL.sub(rf"\1:{_HIDDEN}@", text)
    text = _IN_PAIRS.sub(rf"\1={_HIDDEN}", text)
    for secret in sorted(_known, key=len, reverse=True):
        # A short one is a part of many words, which would tell it by their gaps.
        word = (r"(?<!\w)", r"(?!\w)") if len(secret) < _SHORT else ("", "")
        text = re.sub(re.escape(secret).join(word), _HIDDEN, text)
    return text
