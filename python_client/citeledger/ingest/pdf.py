"""Reads a PDF with pypdf, the extra ``citeledger[pdf]``."""

from __future__ import annotations

import io
import logging
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from .blocks import Page, blocks_of
from .characters import storable
from .errors import UnreadableFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pypdf import PdfReader

_MARK: Final = b"%PDF-"
_MARK_WITHIN: Final = 1024
"""Readers of PDF look for the mark in this many bytes, since some have rubbish before it."""


def is_pdf(data: bytes) -> bool:
    """Say whether the file calls itself a PDF."""
    return _MARK in data[:_MARK_WITHIN]


def looks_like_pdf(path: Path) -> bool:
    """Say whether the file calls itself a PDF, from its beginning alone."""
    try:
        with path.open("rb") as file:
            return is_pdf(file.read(_MARK_WITHIN))
    except OSError:
        return False


def pages_of(
    data: bytes, on_page: Callable[[int, int], None] = lambda _page, _pages: None
) -> tuple[list[Page], int]:
    """Return the pages, and how many characters had to be replaced.

    ``on_page`` hears of every page that is read: its number, and how many there are. A font without
    a proper table gives characters that PostgreSQL cannot store: each one becomes U+FFFD.
    """
    with _quiet():
        try:
            return _pages(_open(data), on_page)
        except UnreadableFileError:
            raise
        except Exception as error:
            # pypdf raises whatever a broken file makes it stumble over.
            msg = f"is damaged or cut off and cannot be read as a PDF ({type(error).__name__})"
            raise UnreadableFileError(msg) from error


def _open(data: bytes) -> PdfReader:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError

    reader = PdfReader(io.BytesIO(data), strict=False)
    if reader.is_encrypted:
        try:
            opened = bool(reader.decrypt(""))
        except DependencyError:
            msg = "is an encrypted PDF of a kind that needs one more package: cryptography"
            raise UnreadableFileError(msg) from None
        if not opened:
            msg = "is an encrypted PDF; take its password off first"
            raise UnreadableFileError(msg)
    return reader


def _pages(reader: PdfReader, on_page: Callable[[int, int], None]) -> tuple[list[Page], int]:
    total = len(reader.pages)
    pages: list[Page] = []
    replaced = 0
    for number, page in enumerate(reader.pages, start=1):
        text, count = storable(page.extract_text())
        replaced += count
        pages.append(Page(number, blocks_of(text)))
        on_page(number, total)
    if total == 0:
        msg = "is a PDF without pages"
        raise UnreadableFileError(msg)
    return pages, replaced


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep pypdf from telling about every oddity of a file."""
    logger = logging.getLogger("pypdf")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)
