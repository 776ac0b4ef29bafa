"""Reads the documentation: its blocks of code, and what the comments before them ask for.

A comment of its own line before a block says how a test treats it:

``<!-- as: deployer -->``  who runs it: ``admin`` (the default), ``deployer`` or ``superuser``
``<!-- raises 55000 -->``  the last statement of the block fails with this SQLSTATE
``<!-- output -->``        the block shows what the block before it prints
``<!-- id: name -->``      a name by which a test finds the block
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

_BLOCK = re.compile(
    r"(?P<comments>(?:^<!--[^\n]*-->\n)*)^```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_COMMENT = re.compile(r"<!-- (?P<key>[a-z]+):? ?(?P<value>.*?) ?-->")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block of a page."""

    page: str
    line: int
    language: str
    text: str
    asks: dict[str, str]


def blocks(page: str) -> list[Block]:
    """Return the blocks of a page, in order."""
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    return [
        Block(
            page,
            text.count("\n", 0, found.start("text")) + 1,
            found["language"],
            found["text"],
            {c["key"]: c["value"] for c in _COMMENT.finditer(found["comments"])},
        )
        for found in _BLOCK.finditer(text)
    ]


def named(page: str, name: str) -> Block:
    """Return the block of a page that a test knows by name."""
    (found,) = (b for b in blocks(page) if b.asks.get("id") == name)
    return found
