"""A matter with records of any page size, and spans that stand on their pages.

The words are drawn from a small vocabulary, so that a page is about as compressible as prose is.
For the floor each page is also kept as one text, as a team would that stores pages whole.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Final
from uuid import UUID

from . import ledger_data
from .ledger_data import FIRM

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .server import Connection

MATTER: Final = UUID("00000000-0000-4000-8000-000000000002")
BLOCK: Final = 1_000
"""Characters in a block, about a paragraph."""
PAGES: Final = 100
_SEED: Final = 20_240_229


def _words() -> list[str]:
    """Make three thousand words of two to twelve letters."""
    letters = random.Random(_SEED)
    common = "etaoinshrdlucmfwypvbgk"
    return [
        "".join(
            letters.choices(common, weights=range(len(common), 0, -1), k=letters.randint(2, 12))
        )
        for _ in range(3_000)
    ]


def _block(words: Sequence[str], draw: random.Random, size: int) -> str:
    # Few words are frequent and many are rare, as in prose.
    text = ""
    while len(text) < size:
        text += words[int(len(words) * draw.random() ** 3)] + " "
    return text[: size - 1].rstrip() + "."


def document_of(size: int) -> UUID:
    """Return the document whose pages have so many characters."""
    return UUID(int=size + (4 << 76) + (8 << 60))


def load(connection: Connection, sizes: Sequence[int]) -> None:
    """Load one document for each page size, and each page once more as one text."""
    ledger_data.prepare(connection)
    connection.execute(
        "insert into citeledger.projects (firm_id, id, matter_number, name)"
        " values (%s, %s, '2026-0147', 'A matter')",
        (FIRM, MATTER),
    )
    connection.execute(
        "create table bench.whole_pages (firm_id uuid, document_id uuid, page_number integer,"
        " content text, primary key (firm_id, document_id, page_number))"
    )
    connection.execute("grant usage on schema bench to public")
    connection.execute("grant select on bench.whole_pages to public")
    words, draw = _words(), random.Random(_SEED)
    for size in sizes:
        document = document_of(size)
        connection.execute(
            "insert into citeledger.documents (firm_id, id, project_id, title)"
            " values (%s, %s, %s, 'A record')",
            (FIRM, document, MATTER),
        )
        pages = [
            {
                "page_number": page,
                "blocks": [
                    _block(words, draw, min(BLOCK, size)) for _ in range(max(1, size // BLOCK))
                ],
            }
            for page in range(1, PAGES + 1)
        ]
        with connection.transaction():
            connection.execute("select citeledger.set_context(%s, null, '{matters:read}')", (FIRM,))
            connection.execute(
                "select citeledger.replace_document_pages(%s, %s)", (document, json.dumps(pages))
            )
    connection.execute(
        "insert into bench.whole_pages select b.firm_id, b.document_id, b.page_number,"
        " string_agg(b.content, E'\\n' order by b.block_index)"
        " from citeledger.document_page_blocks as b group by 1, 2, 3"
    )
    connection.execute("vacuum (analyze)")


def spans(connection: Connection, size: int, count: int) -> list[dict[str, object]]:
    """Return so many spans of the pages of one size: a block, its offsets and the quote."""
    rows = connection.execute(
        "select b.page_number, b.block_index, b.content from citeledger.document_page_blocks as b"
        " where b.firm_id = %s and b.document_id = %s order by 1, 2",
        (FIRM, document_of(size)),
    ).fetchall()
    draw = random.Random(_SEED)
    found: list[dict[str, object]] = []
    for _ in range(count):
        page, block, content = draw.choice(rows)
        start = draw.randrange(len(content) - 100)
        # A quote that can be seen begins with a letter.
        while content[start] == " ":
            start += 1
        found.append(
            {
                "document_id": str(document_of(size)),
                "page_number": page,
                "block_index": block,
                "char_start": start,
                "char_end": start + 80,
                "quote": content[start : start + 80],
            }
        )
    return found
