"""ingest: real files into a matter, again, and what that does to citations."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import psycopg
import pytest
from rich.progress import TextColumn

from citeledger import CiteLedger
from citeledger.cli.exits import Exit
from citeledger.cli.output import progress
from citeledger.ingest import read_file
from citeledger.ingest.store import Description, Stored, store
from support.deploy import REPOSITORY

from .conftest import Run
from .test_files import write_pdf

if TYPE_CHECKING:
    from support.races import Race
    from support.world import World

Superuser = psycopg.Connection[Any]
OPINION = REPOSITORY.parent / "shared" / "data" / "opinion_fisher_v_ut_2013.txt"
QUOTE = "ninety (90) days' written notice"


@pytest.fixture
def lease(tmp_path: Path) -> Path:
    path = tmp_path / "lease.txt"
    path.write_text(f"Lease\n\nThe Tenant shall give {QUOTE}.\fPage two\n", encoding="utf-8")
    return path


def blocks(su: Superuser, document: object) -> list[tuple[Any, ...]]:
    return su.execute(
        "select page_number, block_index, content from citeledger.document_page_blocks"
        " where document_id = %s order by 1, 2",
        (document,),
    ).fetchall()


def documents(su: Superuser) -> list[tuple[Any, ...]]:
    return su.execute(
        "select title, document_kind, is_privileged, doi from citeledger.documents order by title"
    ).fetchall()


def test_a_text_goes_in_and_its_quote_stands(
    run: Run, su: Superuser, lease: Path, matter: str
) -> None:
    ran = run("ingest", lease, "--matter", matter, "--json")
    assert (ran.code, ran.err) == (Exit.DONE, "")
    (document,) = ran.json["documents"]
    assert document | {"document_id": None} == {
        "file": str(lease),
        "document_id": None,
        "title": "lease.txt",
        "outcome": "new",
        "pages": 2,
        "blocks": 3,
        "empty_pages": 0,
        "replaced_characters": 0,
        "citations": 0,
        "not_holding": [],
    }
    identifier = document["document_id"]
    assert blocks(su, identifier) == [
        (1, 0, "Lease"),
        (1, 1, f"The Tenant shall give {QUOTE}."),
        (2, 0, "Page two"),
    ]
    ran = run("cite", "--matter", matter, "--document", identifier, "--page", 1, QUOTE)
    assert ran.code == Exit.DONE


def test_a_pdf_goes_in(run: Run, su: Superuser, tmp_path: Path, matter: str) -> None:
    path = write_pdf(tmp_path / "a.pdf", ["one", "", "three"])
    ran = run("ingest", path, "--matter", matter)
    assert ran.code == Exit.DONE
    assert "1 of its pages have no text" in ran.out
    ((document, pages),) = su.execute(
        "select document_id, array_agg(page_number order by page_number)"
        " from citeledger.document_pages group by 1"
    ).fetchall()
    assert pages == [1, 2, 3]
    assert blocks(su, document) == [(1, 0, "one"), (3, 0, "three")]


def test_the_same_file_again_replaces_its_pages_and_tells_what_drifted(
    run: Run, su: Superuser, world: World, lease: Path, matter: str
) -> None:
    identifier = UUID(
        run("ingest", lease, "--matter", matter, "--json").json["documents"][0]["document_id"]
    )
    turn = world.turn()

    def cited(quote: str, page: int | None) -> UUID:
        return world.citation(
            turn, source_document_id=identifier, source_page=page, source_text=quote
        )

    drifting, standing = cited(QUOTE, 1), cited("Page two", 2)
    never = cited("never there", 1)
    lease.write_text(lease.read_text().replace("ninety (90)", "nincty (9O)"))
    ran = run("ingest", lease, "--matter", matter)
    assert ran.code == Exit.DONE
    assert "1 of 3 stored citations drifted" in ran.out
    assert "1 more did not hold before either" in ran.out
    assert str(drifting) in ran.out
    assert str(standing) not in ran.out
    ran = run("ingest", lease, "--matter", matter, "--json")
    (document,) = ran.json["documents"]
    assert document["document_id"] == str(identifier)
    assert document["outcome"] == "replaced"
    assert {(d["message_citation_id"], d["held_before"]) for d in document["not_holding"]} == {
        (str(drifting), False),
        (str(never), False),
    }
    assert len(documents(su)) == 1


def test_what_describes_a_document_changes_it_only_if_given(
    run: Run, su: Superuser, lease: Path, matter: str
) -> None:
    run("ingest", lease, "--matter", matter, "--kind", "authority", "--privileged")
    assert documents(su) == [("lease.txt", "authority", True, None)]
    run("ingest", lease, "--matter", matter, "--doi", "10.1000/a")
    assert documents(su) == [("lease.txt", "authority", True, "10.1000/a")]
    run("ingest", lease, "--matter", matter, "--kind", "record", "--not-privileged")
    assert documents(su) == [("lease.txt", "record", False, "10.1000/a")]


def test_a_title_or_an_id_says_which_document_is_replaced(
    run: Run, su: Superuser, lease: Path, tmp_path: Path, matter: str, world: World
) -> None:
    run("ingest", lease, "--matter", matter, "--title", "Lease")
    other = tmp_path / "scan-2.txt"
    other.write_text("Scanned again")
    ran = run("ingest", other, "--matter", matter, "--title", "Lease", "--json")
    (document,) = ran.json["documents"]
    assert document["outcome"] == "replaced"
    identifier = document["document_id"]
    ran = run(
        "ingest",
        lease,
        "--matter",
        matter,
        "--document",
        identifier,
        "--title",
        "Lease 2",
        "--json",
    )
    assert ran.json["documents"][0]["document_id"] == identifier
    assert documents(su) == [("Lease 2", "record", False, None)]
    elsewhere = world.document(world.project())
    for wrong in (uuid4(), elsewhere):
        ran = run("ingest", lease, "--matter", matter, "--document", wrong)
        assert (ran.code, "document not found" in ran.err) == (Exit.REFUSED, True)


def test_a_title_that_two_documents_have_replaces_neither(
    run: Run, su: Superuser, lease: Path, matter: str, world: World
) -> None:
    ((project,),) = su.execute("select id from citeledger.projects").fetchall()
    for _ in range(2):
        world.document(project, title="lease.txt")
    world.document(project, title="other.txt", deleted_at="2026-01-01")
    ran = run("ingest", lease, "--matter", matter)
    assert (ran.code, "--document" in ran.err) == (Exit.NO, True)
    assert blocks(su, None) == []
    other = lease.rename(lease.with_name("other.txt"))
    ran = run("ingest", other, "--matter", matter, "--json")
    assert ran.json["documents"][0]["outcome"] == "new"


def test_what_cannot_go_in_is_told_of_in_one_line_each_and_the_others_go_in(
    run: Run, su: Superuser, lease: Path, tmp_path: Path, matter: str
) -> None:
    broken, empty, binary = tmp_path / "broken.pdf", tmp_path / "empty", tmp_path / "binary"
    broken.write_bytes(b"%PDF-1.7 and then nothing")
    empty.write_bytes(b"")
    binary.write_bytes(bytes(range(256)))
    locked = write_pdf(tmp_path / "locked.pdf", ["text"], password="secret")
    bad = [broken, empty, binary, locked, tmp_path, tmp_path / "none"]
    ran = run("ingest", *bad[:3], lease, *bad[3:], "--matter", matter)
    assert ran.code == Exit.NO
    lines = ran.err.splitlines()
    assert len(lines) == len(bad)
    for line, path in zip(lines, bad, strict=True):
        assert line.startswith(f"citeledger: skipped: {path} ")
    assert documents(su) == [("lease.txt", "record", False, None)]
    ran = run("ingest", *bad, "--matter", matter, "--json")
    assert ran.code == Exit.NO
    assert ran.json["documents"] == []
    assert [s["file"] for s in ran.json["skipped"]] == [str(path) for path in bad]
    assert len(documents(su)) == 1


def test_a_file_that_broke_leaves_the_document_of_its_name_as_it_was(
    run: Run, su: Superuser, lease: Path, matter: str
) -> None:
    ran = run("ingest", lease, "--matter", matter, "--json")
    identifier = ran.json["documents"][0]["document_id"]
    before = blocks(su, identifier)
    lease.write_bytes(b"\0")
    assert run("ingest", lease, "--matter", matter).code == Exit.NO
    assert blocks(su, identifier) == before


def test_two_files_of_one_name_do_not_replace_each_other(
    run: Run, su: Superuser, lease: Path, tmp_path: Path, matter: str
) -> None:
    (tmp_path / "b").mkdir()
    other = tmp_path / "b" / "lease.txt"
    other.write_text("Another lease")
    ran = run("ingest", lease, other, "--matter", matter)
    assert (ran.code, "--title" in ran.err) == (Exit.NO, True)
    ((content,),) = su.execute(
        "select content from citeledger.document_page_blocks"
        " where page_number = 1 and block_index = 0"
    ).fetchall()
    assert content == "Lease"


def test_what_the_database_refuses_costs_one_file(
    run: Run, su: Superuser, lease: Path, tmp_path: Path, matter: str
) -> None:
    su.execute(
        "alter table citeledger.documents add constraint no_poems check (title <> 'poem.txt')"
    )
    poem = tmp_path / "poem.txt"
    poem.write_text("secret verse")
    ran = run("ingest", poem, lease, "--matter", matter)
    assert ran.code == Exit.NO
    assert "poem.txt was refused: " in ran.err
    assert "secret verse" not in ran.err
    assert [row[0] for row in documents(su)] == ["lease.txt"]


def test_names_that_are_no_text_or_would_steer_a_terminal(
    run: Run, su: Superuser, tmp_path: Path, matter: str
) -> None:
    odd = Path(str(tmp_path)) / "caf\udce9 \x1b[31m%s {x} [b].txt"
    odd.write_text("100% of %s {x}")
    ran = run("ingest", odd, "--matter", matter)
    assert ran.code == Exit.DONE
    assert "\x1b" not in ran.out + ran.err
    assert documents(su)[0][0] == "caf\ufffd \x1b[31m%s {x} [b].txt"
    ran = run("ingest", odd, "--matter", matter, "--json")
    assert ran.json["documents"][0]["outcome"] == "replaced"


def test_a_bar_takes_no_name_for_markup() -> None:
    bar = progress("files")
    column = bar.columns[0]
    assert isinstance(column, TextColumn)
    bar.add_task("[/b] [red]x")
    assert column.render(bar.tasks[0]).plain == "[/b] [red]x"


def test_a_walled_matter_is_there_for_its_members_only(
    run: Run, su: Superuser, lease: Path, world: World
) -> None:
    person = uuid4()
    world.member(world.project(matter_number="walled"), person)
    ran = run("ingest", lease, "--matter", "walled")
    assert (ran.code, "matter not found" in ran.err) == (Exit.REFUSED, True)
    assert ran.err.endswith("A matter is made by inserting into citeledger.projects.\n")
    assert run("ingest", lease, "--matter", "walled", "--user", person).code == Exit.DONE


def test_a_matter_by_its_id(run: Run, lease: Path, world: World) -> None:
    assert run("ingest", lease, "--matter", world.project()).code == Exit.DONE


def test_one_file_put_in_by_two_at_once_is_one_document(
    su: Superuser, world: World, lease: Path, racing: Race
) -> None:
    matter = world.project()

    def put(connection: psycopg.Connection[Any]) -> Stored:
        with CiteLedger(connection).context(firm_id=world.firm_id) as bound:
            return store(bound, matter, read_file(lease), lease.name, Description())

    first, second = racing.session("t_app"), racing.session("t_app")
    first.call(put)
    assert first.result().outcome == "new"
    second.call(put)
    second.blocked()
    first.commit()
    assert second.result().outcome == "replaced"
    second.commit()
    assert len(documents(su)) == 1


@pytest.mark.skipif(not OPINION.is_file(), reason="there is no opinion at ../shared/data")
def test_spans_cut_from_an_opinion_verify(
    run: Run, su: Superuser, tmp_path: Path, matter: str
) -> None:
    ran = run("ingest", OPINION, "--matter", matter, "--json")
    (document,) = ran.json["documents"]
    assert document["pages"] == 41
    choice = random.Random(3)
    spans = []
    for page, block, content in choice.choices(blocks(su, document["document_id"]), k=200):
        start = choice.randrange(len(content))
        end = min(len(content), start + choice.randrange(1, 90))
        if content[start:end].strip():
            spans.append(
                {
                    "document_id": document["document_id"],
                    "page_number": page,
                    "block_index": block,
                    "char_start": start,
                    "char_end": end,
                    "quote": content[start:end],
                }
            )
    file = tmp_path / "spans.json"
    file.write_text(json.dumps(spans), encoding="utf-8")
    ran = run("cite", "--matter", matter, "--spans", file, "--json")
    assert ran.code == Exit.DONE
    assert len(ran.json) == len(spans) > 150
    assert all(answer["verified"] for answer in ran.json)
