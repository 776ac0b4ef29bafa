"""Reads a file into pages, whichever kind it is, or says in a few words why it cannot go in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import pdf, text
from .errors import UnreadableFileError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .blocks import Page

__all__ = ["ReadFile", "UnreadableFileError", "read_file"]


@dataclass(frozen=True, slots=True)
class ReadFile:
    """What was read from a file."""

    pages: list[Page]
    replaced: int
    """How many characters that PostgreSQL cannot store became U+FFFD."""


def read_file(
    path: Path, on_page: Callable[[int, int], None] = lambda _page, _pages: None
) -> ReadFile:
    """Read a PDF or a plain text; its content says which it is, not its name."""
    data = _bytes_of(path)
    if not data:
        msg = "is empty"
        raise UnreadableFileError(msg)
    of_pdf = pdf.is_pdf(data)
    if of_pdf:
        pages, replaced = pdf.pages_of(data, on_page)
    elif path.suffix.lower() == ".pdf":
        msg = "is not a PDF, whatever its name says"
        raise UnreadableFileError(msg)
    else:
        pages, replaced = text.pages_of(text.decode(data)), 0
    if not any(page.blocks for page in pages):
        number = f"any of its {len(pages)} pages" if len(pages) > 1 else "its page"
        advice = "; a scan needs OCR first" if of_pdf else ""
        msg = f"has no text on {number}{advice}"
        raise UnreadableFileError(msg)
    return ReadFile(pages, replaced)


def _bytes_of(path: Path) -> bytes:
    if path.is_dir():
        msg = "is a directory"
        raise UnreadableFileError(msg)
    try:
        if not path.exists():
            msg = "does not exist"
            raise UnreadableFileError(msg)
        if not path.is_file():
            msg = "is not a regular file"
            raise UnreadableFileError(msg)
        return path.read_bytes()
    except OSError as error:
        msg = f"cannot be read: {error.strerror or type(error).__name__}"
        raise UnreadableFileError(msg) from None
