"""Reads plain text: UTF-8, a form feed between pages."""

from __future__ import annotations

from .blocks import Page, blocks_of
from .errors import UnreadableFileError


def decode(data: bytes) -> str:
    """Return the text of a file, or say why it is none."""
    nul = data.find(b"\0")
    if nul >= 0:
        msg = f"is neither a PDF nor plain text: it has a NUL byte at position {nul}"
        raise UnreadableFileError(msg)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        msg = (
            f"is neither a PDF nor UTF-8 text: byte 0x{data[error.start]:02x} at position "
            f"{error.start}; convert it to UTF-8 first"
        )
        raise UnreadableFileError(msg) from None


def pages_of(text: str) -> list[Page]:
    """Cut the text at form feeds. One that has only white space behind it ends the last page."""
    parts = text.split("\f")
    if len(parts) > 1 and not parts[-1].strip():
        parts.pop()
    return [Page(number, blocks_of(part)) for number, part in enumerate(parts, start=1)]
