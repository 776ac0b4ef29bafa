"""The rules of DOI keys, and of edges, in Python: an oracle, plain and slow."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from urllib.parse import unquote_to_bytes

_BLANKS = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009"
    "\u200a\u200b\u2028\u2029\u202f\u205f\u3000\ufeff"
)
_PUNCTUATION = ".,;:!?'\"\u2019\u201d\u00bb\u2026"
_PAIRS = {")": "(", "]": "[", "}": "{", ">": "<"}
_PREFIX = re.compile(r"(?:doi:|(?:https?://)?(?:dx\.|www\.)?doi\.org/)", re.ASCII | re.IGNORECASE)
_KEY = re.compile(r"10\.[0-9]+(?:\.[0-9]+)*/.+", re.DOTALL)
_UPPER = {ord(c): c.lower() for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


def key_of(printed: str | None) -> str | None:
    """Return the key of a DOI as printed, or None."""
    if printed is None:
        return None
    text = printed.strip(_BLANKS)
    is_address = False
    while prefix := _PREFIX.match(text):
        is_address = is_address or prefix.group().endswith("/")
        text = text[prefix.end() :].lstrip(_BLANKS)
    if is_address:
        text = re.split(r"[?#]", text, maxsplit=1)[0]
        try:
            text = unquote_to_bytes(text).decode("utf-8")
        except UnicodeDecodeError:
            return None
        if "\0" in text:
            return None
    text = text.translate(_UPPER)
    while any(entity in text for entity in ("&amp;", "&lt;", "&gt;")):
        text = text.replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">")
    while text:
        last = text[-1]
        if last in _PAIRS:
            if text.count(last) <= text.count(_PAIRS[last]):
                break
        elif last not in _PUNCTUATION + _BLANKS + "([{<":
            break
        text = text[:-1]
    if not _KEY.fullmatch(text) or len(text.encode()) > 2048:
        return None
    return None if any(blank in text for blank in _BLANKS) else text


def edges_of(
    dois: Mapping[str, str | None], lists: Mapping[str, Iterable[str]]
) -> set[tuple[str, str]]:
    """Say which documents cite which, from their DOIs and their reference lists."""
    holders: defaultdict[str, list[str]] = defaultdict(list)
    for document, doi in dois.items():
        if key := key_of(doi):
            holders[key].append(document)
    found = set()
    for document, printed in lists.items():
        for doi in printed:
            named = holders.get(key_of(doi) or "", [])
            if len(named) == 1 and named[0] != document:
                found.add((document, named[0]))
    return found
