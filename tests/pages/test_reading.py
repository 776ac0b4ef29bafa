"""The view model: one snapshot, read-only, under the rights of who asks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

from citeledger.errors import NotFound, PermissionDenied
from citeledger.pages import PageView, Reading, reading
from reader.library import BOOK, HOSTILE, RESCANNED, Library
from support.records import PERSON, put_pages

if TYPE_CHECKING:
    from conftest import Database

READ = ("matters:read",)


@contextmanager
def room_of(
    shelf: Database, library: Library, user: str = "t_app", **changes: Any
) -> Iterator[Reading]:
    identity: dict[str, Any] = {"firm_id": library.firm_id, "permissions": READ} | changes
    with shelf.connect(user) as connection, reading(connection, **identity) as room:
        yield room


@pytest.fixture
def room(shelf: Database, library: Library) -> Iterator[Reading]:
    with room_of(shelf, library) as opened:
        yield opened


def marks(page: PageView) -> list[tuple[int, str]]:
    return [(b.index, p.text) for b in page.blocks for p in b.pieces if p.marked]


def entry(room: Reading, library: Library, name: str) -> PageView:
    return room.entry(library.chat, library.entries[name])


def test_a_chat_has_its_turns_in_order(room: Reading, library: Library) -> None:
    chat = room.chat(library.chat, check=False)
    assert chat.title == HOSTILE
    assert [t.message_id for t in chat.turns] == list(library.turns.values())
    assert [len(t.asked) for t in chat.turns] == [1, 1, 0]
    first, second, third = chat.turns
    assert first.gate is not None
    assert first.gate.gate_status == "flagged"
    assert second.gate is not None
    assert (second.gate.gate_status, second.gate.total_assertions) == ("fiduciary_grade", 0)
    assert (third.gate, third.finalized_at) == (None, None)
    assert {v.entry.id for v in first.entries} == set(library.entries.values())
    assert not any(v.checked for v in first.entries)


def test_every_document_is_checked_when_asked_for(room: Reading, library: Library) -> None:
    chat = room.chat(library.chat, check=True)
    names = {id_: name for name, id_ in library.entries.items()}
    found = {names[v.entry.id]: v for v in chat.turns[0].entries}
    holds = {n for n, v in found.items() if v.check is not None and v.check.verified}
    assert holds == {
        "astral", "everywhere", "across", "far", "hostile", "long", "line ends", "judged",
    }  # fmt: skip
    reasons = {n: v.check.reason for n, v in found.items() if v.check and not v.check.verified}
    assert reasons == {
        "utf-16": "text_mismatch",
        "moved": "quote_absent",
        "moved across": "quote_absent",
        "page gone": "page_missing",
        "unanchored": "not_anchored",
        "absent": "quote_absent",
        "never held": "quote_absent",
    }
    unchecked = {n for n, v in found.items() if not v.checked}
    assert unchecked == {"case law", "tool", "bad link 0", "bad link 1", "bad link 2"}
    nothing = {n for n, v in found.items() if v.checked and v.check is None}
    assert {"privileged", "deleted", "in a walled matter", "work product"} <= nothing
    for name in ("privileged", "deleted", "in a walled matter"):
        assert found[name].document_title is None
    counts = chat.live_counts
    assert (counts.hold, counts.drifted, counts.never_held) == (8, 6, 1)
    assert (counts.uncheckable, counts.total) == (len(nothing), 15 + len(nothing))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("astral", [(1, "rent due")]),
        ("everywhere", [(1, "rent due"), (2, "rent due"), (2, "rent due")]),
        ("across", [(0, "shall"), (1, "notify")]),
        ("hostile", [(0, HOSTILE)]),
    ],
)
def test_what_holds_is_marked(
    room: Reading, library: Library, name: str, expected: list[tuple[int, str]]
) -> None:
    page = entry(room, library, name)
    assert page.citation is not None
    assert page.citation.check.verified
    assert marks(page) == expected
    assert page.citation.suggestions == ()


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("utf-16", [(1, 1), (1, 2), (1, 2)]),
        ("moved", [(3, 150)]),
        ("moved across", [(2, None)]),
        ("page gone", [(3, 150)]),
        ("unanchored", [(3, 150)]),
        ("absent", []),
    ],
)
def test_what_drifted_is_not_marked_but_looked_for(
    room: Reading, library: Library, name: str, places: list[tuple[int, int | None]]
) -> None:
    page = entry(room, library, name)
    assert page.citation is not None
    assert not page.citation.check.verified
    assert page.citation.check.deep_link is None
    assert marks(page) == []
    found = page.citation.suggestions
    assert [(s.place.page_number, s.place.block_index) for s in found] == places
    for suggestion in found:
        block = suggestion.place.block_index
        end = f"?page={suggestion.place.page_number}" + ("" if block is None else f"&block={block}")
        assert suggestion.deep_link.endswith(f"/record/doc/{library.book}{end}")


def test_another_page_has_no_marks(room: Reading, library: Library) -> None:
    page = room.entry(library.chat, library.entries["astral"], 2)
    assert page.citation is not None
    assert page.citation.check.verified
    assert (page.page_number, page.block_index, marks(page)) == (2, None, [])
    assert (page.previous_page, page.next_page) == (1, 3)


def test_a_page_without_a_citation(room: Reading, library: Library, shelf: Database) -> None:
    number = room.chat(library.chat, check=False).heading.matter_number
    assert number is not None
    page = room.page(number, library.book, 2, 1)
    assert [b.named for b in page.blocks] == [False, True, False]
    assert page.pages == tuple(BOOK)
    assert room.page(number, library.book).page_number == 1
    empty, gone = room.page(number, library.book, 6), room.page(number, library.book, 5)
    assert (empty.blocks, gone.blocks) == ((), ())
    assert (6 in empty.pages, 5 in gone.pages) == (True, False)
    with pytest.raises(NotFound):
        room.page("no such number", library.book)


def test_a_page_is_what_the_check_compared_with(
    shelf: Database, library: Library, db: Database
) -> None:
    with db.connect(autocommit=True) as superuser:
        other = Library.make(superuser)
        with room_of(db, other) as room:
            assert room.may_read()  # the snapshot begins
            put_pages(superuser, other.firm_id, other.book, RESCANNED)
            before = entry(room, other, "astral")
        with room_of(db, other) as room:
            after = entry(room, other, "astral")
    assert marks(before) == [(1, "rent due")]
    assert after.citation is not None
    assert (marks(after), after.citation.check.reason) == ([], "text_mismatch")


def test_reading_cannot_write(shelf: Database, library: Library) -> None:
    with (
        pytest.raises(psycopg.errors.ReadOnlySqlTransaction),
        room_of(shelf, library) as room,
    ):
        room._bound.connection.execute("insert into citeledger.chats (title) values ('x')")


def test_the_connection_is_given_back_as_it_was(shelf: Database, library: Library) -> None:
    with shelf.connect("t_app", row_factory=dict_row) as connection:
        with reading(connection, firm_id=library.firm_id, permissions=READ) as room:
            assert room.chat(library.chat, check=True).title == HOSTILE
        assert (connection.autocommit, connection.isolation_level, connection.read_only) == (
            False,
            None,
            None,
        )
        connection.execute("select citeledger.set_context(%s)", (library.firm_id,))
        connection.execute("insert into citeledger.chats (title) values ('x')")
        connection.rollback()


def test_a_pool_will_do(shelf: Database, library: Library) -> None:
    with ConnectionPool(shelf.dsn("t_app"), min_size=1, max_size=1) as pool:
        for _ in range(2):
            with reading(pool, firm_id=library.firm_id, permissions=READ) as room:
                assert room.chat(library.chat, check=False).title == HOSTILE
        with pool.connection() as connection:
            row = connection.execute(
                "select current_setting('transaction_read_only'),"
                " current_setting('transaction_isolation'), citeledger.current_firm_id()"
            ).fetchone()
        assert row == ("off", "read committed", None)


def test_who_may_not_see_it_finds_nothing(shelf: Database, library: Library) -> None:
    _, foreign = library.records.not_there["of another firm"]
    with shelf.connect(autocommit=True) as superuser:
        row = superuser.execute(
            "select firm_id from citeledger.documents where id = %s", (foreign,)
        ).fetchone()
    assert row is not None
    with room_of(shelf, library, firm_id=row[0]) as room:
        for ask in (
            lambda: room.chat(library.chat, check=True),
            lambda: room.entry(library.chat, library.entries["astral"]),
            lambda: room.page("2026/01 é&?#%", library.records.record),
        ):
            with pytest.raises(NotFound), room._bound.connection.transaction():
                ask()
        assert room.chats() == ()


@pytest.mark.parametrize("bad", ["", "not-an-id", str(uuid4()) + "\n", "\0"])
def test_a_malformed_id_is_not_there(room: Reading, library: Library, bad: str) -> None:
    with pytest.raises(NotFound):
        room.chat(bad, check=False)
    with pytest.raises(NotFound):
        room.entry(library.chat, bad)
    with pytest.raises(NotFound):
        room.entry(bad, library.entries["far"])
    with pytest.raises(NotFound):
        room.page(bad, library.book)
    with pytest.raises(NotFound):
        room.page("2026/01 é&?#%", bad)


def test_an_entry_is_found_in_its_own_chat_alone(
    shelf: Database, library: Library, room: Reading
) -> None:
    with shelf.connect(autocommit=True) as superuser:
        other = library.world.on(superuser).chat(library.matter)
    with pytest.raises(NotFound):
        room.entry(other, library.entries["far"])


def test_the_wall_opens_for_the_person(shelf: Database, library: Library) -> None:
    with shelf.connect(autocommit=True) as superuser:
        world = library.world.on(superuser)
        chat = world.chat(library.records.walled, title="Behind a wall")
    with room_of(shelf, library) as room:
        assert "Behind a wall" not in [c.title for c in room.chats()]
        with pytest.raises(NotFound):
            room.chat(chat, check=False)
    with room_of(shelf, library, user_id=PERSON) as room:
        assert "Behind a wall" in [c.title for c in room.chats()]
        assert room.chat(chat, check=False).turns == ()


def test_without_the_permission_nothing_is_read(shelf: Database, library: Library) -> None:
    with room_of(shelf, library, permissions=()) as room:
        assert not room.may_read()
        with pytest.raises(PermissionDenied):
            room.chat(library.chat, check=False)


def test_another_firm_has_another_page_of_the_same_number(
    shelf: Database, library: Library
) -> None:
    with shelf.connect(autocommit=True) as superuser:
        number = "2026/01 é&?#%"
        other = type(library.world).make(superuser, "Twin")
        matter = other.project(matter_number=number)
        book = other.document(matter, title="Of the twin")
        put_pages(superuser, other.firm_id, book, {1: ["twin"]})
    with room_of(shelf, library, firm_id=other.firm_id) as room:
        assert room.page(number, book).document_title == "Of the twin"
        with pytest.raises(NotFound):
            room.page(number, library.records.record)
    assert isinstance(book, UUID)
