"""A firm's record and chats to read: quotes that hold, that drifted, and that are hostile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg

from support.records import Records, put_pages
from support.world import World, set_context

HOSTILE = (
    "<script>alert(1)</script>\"'><img src=x onerror=alert(2)><svg onload=alert(3)>"
    "</title></style></textarea><a href='javascript:alert(4)'>{{ 7 * 7 }}{% raw %}&amp;"
    " \u202egnorw\u202c \u2028 <!-- ]]> -->"
)
"""Whatever markup, template or script might take for its own."""
LONG = "W" * 3000
"""A word that no line can hold."""
NUMBERS = (
    ".",
    "..",
    "...",
    "a/../b",
    "/",
    "//a//",
    "a/record/doc/b",
    "2026/01 é&?#%;=+",
    "%2F..%2f",
    "<script>alert(1)</script>",
    "two\nlines\r\n",
    " at the ends ",
    "\U0001f4c4 案件",
    "e\u0301",
    "\u202egnorw",
)
"""Numbers that a matter may have."""
BOOK: dict[int, Sequence[str]] = {
    1: [
        "Lease, page 1",
        "\U0001f4c4\U0001f4c4\U0001f4c4 rent due on 1 May",
        "rent due; and rent due again",
    ],
    2: ["the lessee shall", "notify the owner", "of the damage"],
    3: [f"Clause {n}. " + "It goes on for a while. " * 8 for n in range(200)],
    4: [f"Words like {HOSTILE} in a row", LONG, "\n one\r\ntwo \r\n"],
    6: [],
}
FAR = "Clause 150."
RESCANNED = BOOK | {1: ["Lease, page 1", "\U0001f4c4 rcnt due on 1 May", "nothing"]}
"""What a worse scan makes of the first page."""


@dataclass(frozen=True, slots=True)
class Library:
    """The ids of it all."""

    records: Records
    matter: UUID
    book: UUID
    chat: UUID
    entries: dict[str, UUID]
    turns: dict[str, UUID]

    @property
    def world(self) -> World:
        """The firm."""
        return self.records.world

    @property
    def firm_id(self) -> UUID:
        """Its id."""
        return self.records.firm_id

    def path(self, entry: str) -> str:
        """Return the path of the click on an entry."""
        return f"/chats/{self.chat}/entries/{self.entries[entry]}"

    @classmethod
    def make(cls, superuser: psycopg.Connection[Any]) -> Library:
        """Make it, as the superuser in autocommit mode."""
        records = Records.make(superuser)
        world = records.world
        matter = world.project(matter_number=f"H/{HOSTILE}"[:200], name=HOSTILE)
        book = world.document(matter, title=HOSTILE)
        put_pages(superuser, world.firm_id, book, BOOK)
        chat = world.chat(matter, title=HOSTILE)
        world.message(chat, "user", content=HOSTILE)
        turn = world.message(chat, content=HOSTILE + "\n" + LONG)
        citations = {
            "astral": quote(book, 1, 1, "rent due", 4),
            "utf-16": quote(book, 1, 1, "rent due", 7),
            "everywhere": quote(book, 1, None, "rent due"),
            "across": quote(book, 2, None, "shall\nnotify", 11),
            "far": quote(book, 3, 150, FAR),
            "moved": quote(book, 3, 10, FAR),
            "moved across": quote(book, 1, None, "shall\nnotify"),
            "page gone": quote(book, 99, None, FAR),
            "unanchored": quote(book, None, None, FAR),
            "hostile": quote(book, 4, 0, HOSTILE),
            "long": quote(book, 4, 1, LONG),
            "line ends": quote(book, 4, 2, "one\r\ntwo ", 2),
            "absent": quote(book, 2, 0, "These words stand nowhere."),
        }
        for why, (_, document) in records.not_there.items():
            if not why.startswith("random") and "another firm" not in why:
                citations[why] = quote(document, 1, 1, "The Tenant")
        rows = {key: world.citation(turn, **values) for key, values in citations.items()}
        rows["judged"] = world.citation(
            turn, "paraphrase_judge", **quote(book, 1, 0, "Lease"), verification_confidence=0.96
        )
        rows["never held"] = world.citation(
            turn, "failed", **quote(book, 2, 0, "These words never stood.")
        )
        rows["case law"] = world.caselaw(turn, "failed", source_text=HOSTILE)
        rows["tool"] = world.tool(
            turn, label=HOSTILE, subtitle=HOSTILE, url="https://search.example/?q=a&b=<i>"
        )
        for number, url in enumerate(
            ("javascript:alert(5)", " JavaScript:alert(6)", "data:text/html,<script>alert(7)")
        ):
            rows[f"bad link {number}"] = world.tool(turn, url=url, external_ref=HOSTILE)
        finalize(world, turn)
        world.message(chat, "user", content="Thank you.")
        nothing = world.message(chat, content="You are welcome.")
        finalize(world, nothing)
        unfinished = world.message(chat, content="I am still looking")
        with psycopg.Cursor(superuser) as cursor:
            found = cursor.execute(
                "select coalesce(message_citation_id, message_caselaw_citation_id,"
                " message_tool_source_id), id from citeledger.citation_ledger_entry"
                " where chat_id = %s",
                (chat,),
            ).fetchall()
        ids = dict(found)
        return cls(
            records,
            matter,
            book,
            chat,
            {key: ids[row] for key, row in rows.items()},
            {"sources": turn, "nothing": nothing, "unfinished": unfinished},
        )


def finalize(world: World, turn: UUID) -> None:
    """Finalize a turn, for its firm."""
    with world.connection.transaction():
        set_context(world.connection, world.firm_id)
        report = world.finalize(turn)
    assert report["finalized"], report
    assert not report["failures"], report


def quote(
    document: UUID, page: int | None, block: int | None, text: str, start: int | None = None
) -> dict[str, Any]:
    """Return the columns of a citation."""
    return {
        "source_document_id": document,
        "source_page": page,
        "source_block": block,
        "source_text": text,
        "source_offset_start": start,
        "source_offset_end": None if start is None else start + len(text),
    }


def number_of(connection: psycopg.Connection[Any], matter: UUID) -> str:
    """Return the number of a matter."""
    with psycopg.Cursor(connection) as cursor:
        row = cursor.execute(
            "select matter_number from citeledger.projects where id = %s", (matter,)
        ).fetchone()
    assert row is not None
    return str(row[0])
