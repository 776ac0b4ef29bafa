"""Pages are replaced whole: a reader sees the old or the new, of two writers one whole result."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from uuid import UUID

import psycopg
import pytest

from support.races import Race
from support.world import World, set_context

if TYPE_CHECKING:
    from conftest import Database

REPLACE = "select citeledger.replace_document_pages(%s::uuid, %s::jsonb)"


def written(word: str, pages: int = 6, blocks: int = 4) -> str:
    """Write pages that say one word everywhere."""
    return json.dumps(
        [
            {"page_number": n, "blocks": [f"{word} {n} {b}" for b in range(blocks)]}
            for n in range(1, pages + 1)
        ]
    )


@pytest.fixture
def matter(world: World) -> UUID:
    return world.project()


@pytest.fixture
def document(world: World, matter: UUID, su: psycopg.Connection[Any]) -> UUID:
    identifier = world.document(matter)
    with su.transaction():
        set_context(su, world.firm_id)
        su.execute(REPLACE, (identifier, written("old")))
    return identifier


def words(rows: list[tuple[int, int, str]]) -> set[tuple[str, int]]:
    """Return which word stands there, and on how many blocks in all."""
    found = {content.split()[0] for _, _, content in rows}
    return {(word, len(rows)) for word in found}


def test_a_reader_never_sees_a_mixture(
    db: Database, world: World, matter: UUID, document: UUID
) -> None:
    done = threading.Event()
    # The two differ in their number of pages and blocks too.
    versions = {"old": (6, 4), "new": (9, 2)}

    def write() -> int:
        rounds = 0
        with db.connect("t_app") as connection:
            while not done.is_set():
                for word, (pages, blocks) in versions.items():
                    set_context(connection, world.firm_id)
                    connection.execute(REPLACE, (document, written(word, pages, blocks)))
                    connection.commit()
                    rounds += 1
        return rounds

    def read(_: int) -> set[tuple[str, int]]:
        seen: set[tuple[str, int]] = set()
        with db.connect("t_reader", autocommit=True) as connection:
            for _ in range(150):
                with connection.transaction():
                    set_context(connection, world.firm_id)
                    seen |= words(
                        connection.execute(
                            "select * from citeledger.read_pages(%s, %s)", (matter, document)
                        ).fetchall()
                    )
                    # One call of cite_many is one moment too: all of a page's words, or none.
                    spans = [
                        {"document_id": str(document), "page_number": n, "quote": f"{word} {n} 1"}
                        for word in versions
                        for n in range(1, 7)
                    ]
                    (found,) = connection.execute(
                        "select citeledger.cite_many(%s, %s::jsonb)", (matter, json.dumps(spans))
                    ).fetchone() or ([],)
                    held = [item["verified"] for item in found]
                    assert held in ([True] * 6 + [False] * 6, [False] * 6 + [True] * 6)
        return seen

    with ThreadPoolExecutor(3) as pool:
        writer = pool.submit(write)
        try:
            seen = set().union(*pool.map(read, range(2)))
        finally:
            done.set()
        assert writer.result() > 2
    assert seen == {("old", 24), ("new", 18)}


@pytest.mark.parametrize("isolation", [None, psycopg.IsolationLevel.REPEATABLE_READ])
def test_two_replacements_at_once(
    racing: Race,
    su: psycopg.Connection[Any],
    world: World,
    document: UUID,
    isolation: psycopg.IsolationLevel | None,
) -> None:
    def begin(connection: psycopg.Connection[Any]) -> None:
        set_context(connection, world.firm_id)

    first = racing.session("t_app", before=begin, isolation=isolation)
    second = racing.session("t_app", before=begin, isolation=isolation)
    assert first.value(REPLACE, (document, written("first", 5, 3))) == 5
    second.start(REPLACE, (document, written("second", 2, 2)))
    second.blocked()
    # A reader waits for nobody, and sees what was there before.
    reader = racing.session("t_admin", before=begin)
    assert (
        reader.value(
            "select count(*) from citeledger.document_pages where document_id = %s", (document,)
        )
        == 6
    )
    first.commit()
    error = second.error()
    if isolation is None:
        assert error is None
        second.commit()
        whole = {("second", 4)}
    else:
        # Its snapshot is older than what it would replace: the whole transaction runs again.
        assert error is not None
        assert error.sqlstate == "40001"
        second.rollback()
        whole = {("first", 15)}
    rows = su.execute(
        "select page_number, block_index, content from citeledger.document_page_blocks"
        " where document_id = %s order by 1, 2",
        (document,),
    ).fetchall()
    assert words(rows) == whole


def test_one_that_rolls_back_leaves_the_other(
    racing: Race, su: psycopg.Connection[Any], world: World, document: UUID
) -> None:
    def begin(connection: psycopg.Connection[Any]) -> None:
        set_context(connection, world.firm_id)

    first, second = (racing.session("t_app", before=begin) for _ in range(2))
    first.run(REPLACE, (document, "[]"))
    second.start(REPLACE, (document, written("second", 3, 1)))
    second.blocked()
    first.rollback()
    assert second.result() == [(3,)]
    second.commit()
    rows = su.execute(
        "select page_number, block_index, content from citeledger.document_page_blocks"
        " where document_id = %s",
        (document,),
    ).fetchall()
    assert words(rows) == {("second", 3)}


def test_many_at_once(db: Database, su: psycopg.Connection[Any], world: World) -> None:
    """Whoever comes, over and over: no error, no deadlock, and one whole result at the end."""
    documents = [world.document() for _ in range(3)]

    def work(name: str) -> None:
        with db.connect("t_app") as connection:
            for n in range(12):
                set_context(connection, world.firm_id)
                connection.execute(REPLACE, (documents[n % 3], written(name, 1 + n % 4, 1 + n % 3)))
                connection.commit()

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work, f"w{i}") for i in range(4)]:
            done.result()
    for document in documents:
        rows = su.execute(
            "select b.page_number, b.block_index, b.content"
            " from citeledger.document_page_blocks as b where b.document_id = %s order by 1, 2",
            (document,),
        ).fetchall()
        assert len(words(rows)) == 1
        pages = {page for page, _, _ in rows}
        blocks = {block for _, block, _ in rows}
        assert pages == set(range(1, max(pages) + 1))
        assert len(rows) == len(pages) * len(blocks)


def test_the_document_goes_meanwhile(racing: Race, world: World, document: UUID) -> None:
    def begin(connection: psycopg.Connection[Any]) -> None:
        set_context(connection, world.firm_id)

    remover = racing.session("postgres")
    writer = racing.session("t_app", before=begin)
    remover.run("delete from citeledger.documents where id = %s", (document,))
    writer.start(REPLACE, (document, written("late")))
    writer.blocked()
    remover.commit()
    error = writer.error()
    assert error is not None
    assert error.sqlstate == "P0002"
