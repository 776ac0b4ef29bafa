"""Cuts the text of a page into blocks, and changes nothing in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_LINE: Final = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")


@dataclass(frozen=True, slots=True)
class Page:
    """The blocks of one page; a page without text has none."""

    number: int
    blocks: tuple[str, ...]

    def as_json(self) -> dict[str, object]:
        """Return the page in the form of replace_document_pages."""
        return {"page_number": self.number, "blocks": list(self.blocks)}


def blocks_of(text: str) -> tuple[str, ...]:
    """Return the paragraphs of a page: lines up to a blank one, with the line ends between them.

    A line of nothing but white space is blank. Blank lines and the line end before one belong to no
    block; every other character stays as it is, indents and carriage returns included.
    """
    blocks: list[str] = []
    lines: list[str] = []
    end = ""
    for found in _LINE.finditer(text):
        line, line_end = found.groups()
        if line and not line.isspace():
            lines += (end, line) if lines else (line,)
            end = line_end
        elif lines:
            blocks.append("".join(lines))
            lines = []
    if lines:
        blocks.append("".join(lines))
    return tuple(blocks)
