"""crossref: works and their lists into the graph, by command."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from citeledger import CiteLedger
from citeledger.cli.exits import Exit
from citeledger.ingest.crossref import Record
from citeledger.ingest.works import Counts, record_works
from support.deploy import REPOSITORY

from .conftest import Run

if TYPE_CHECKING:
    from support.races import Race
    from support.world import World

Superuser = psycopg.Connection[Any]
WORKS = REPOSITORY.parent / "shared" / "data" / "crossref_works.json.gz"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Write three works that cite each other, among records that are none."""
    path = tmp_path / "works.json"
    works: list[Any] = [
        {
            "DOI": "10.1000/A",
            "title": ["A study"],
            "issued": {"date-parts": [[2021, 5]]},
            "reference": [
                {"key": "1", "DOI": "10.1000/b"},
                {"key": "2", "unstructured": "A book"},
                {"key": "3", "DOI": "10.1000/a"},
                {"key": "4", "DOI": "10.1000/x\0"},
                {"key": "5", "DOI": "10.1000/elsewhere", "note": "\ud800"},
                7,
            ],
        },
        {"DOI": "https://doi.org/10.1000/b", "title": [], "reference": [{"DOI": "10.1000/c"}]},
        "nothing",
        {"title": ["Without a DOI"]},
        {"DOI": "10/short"},
        {"DOI": "10.1000/list", "reference": {"DOI": "10.1000/a"}},
        {
            "message": {
                "DOI": "10.1000/c",
                "title": ["Cut\0 here"],
                "issued": {"date-parts": [[None]]},
            }
        },
        {"DOI": "10.1000/d\0"},
    ]
    path.write_text(json.dumps(works))
    return path


def documents(su: Superuser) -> list[tuple[Any, ...]]:
    return su.execute(
        "select doi, title, document_kind, source, publication_year, project_id"
        " from citeledger.documents order by doi_key"
    ).fetchall()


def test_works_go_in(run: Run, su: Superuser, file: Path) -> None:
    ran = run("crossref", file, "--json", "--batch", 2)
    assert ran.code == Exit.NO
    assert ran.json == {
        "works": 3,
        "documents_created": 3,
        "references": 4,
        "unusable": 3,
        "ambiguous": 0,
        "self_citations": 1,
        "resolved": 2,
        "resolved_new": 2,
        "skipped": ran.json["skipped"],
        "skipped_count": 5,
    }
    assert [(s["position"], s["doi"]) for s in ran.json["skipped"]] == [
        (3, None),
        (4, None),
        (5, "10/short"),
        (6, "10.1000/list"),
        (8, None),
    ]
    lines = ran.err.splitlines()
    assert [line.split(":")[2].split()[1] for line in lines] == ["3", "4", "5", "6", "8"]
    assert "reference is object, not a list" in lines[3]
    assert lines[1].split(": ")[-1] == lines[4].split(": ")[-1] == "it has no DOI"
    assert documents(su) == [
        ("10.1000/A", "A study", "publication", "crossref", 2021, None),
        (
            "https://doi.org/10.1000/b",
            "https://doi.org/10.1000/b",
            "publication",
            "crossref",
            None,
            None,
        ),
        ("10.1000/c", "Cut\ufffd here", "publication", "crossref", None, None),
    ]


def test_again_it_changes_nothing(run: Run, su: Superuser, file: Path) -> None:
    run("crossref", file)
    state = documents(su)
    edges = su.execute("select * from citeledger.document_citations order by 1, 2, 3").fetchall()
    ran = run("crossref", file, "--json")
    assert (ran.json["works"], ran.json["documents_created"]) == (3, 0)
    assert (ran.json["resolved"], ran.json["resolved_new"]) == (2, 0)
    assert documents(su) == state
    assert (
        su.execute("select * from citeledger.document_citations order by 1, 2, 3").fetchall()
        == edges
    )


def test_the_counts_for_people(run: Run, file: Path) -> None:
    ran = run("crossref", file)
    assert ran.code == Exit.NO
    assert "works              3" in ran.out
    assert "skipped            5" in ran.out
    assert re.search(r"^unusable +\d+ references without a usable DOI$", ran.out, re.MULTILINE)


def test_without_create_only_documents_that_are_there(
    run: Run, su: Superuser, file: Path, world: World
) -> None:
    world.document(doi="doi:10.1000/C", title="Mine")
    ran = run("crossref", file, "--no-create", "--json")
    assert (ran.code, ran.json["works"], ran.json["documents_created"]) == (Exit.NO, 1, 0)
    assert [title for _, title, *_ in documents(su)] == ["Mine"]
    reasons = {s["doi"]: s["reason"] for s in ran.json["skipped"]}
    assert reasons["10.1000/A"] == "no document has its DOI"


def test_a_doi_that_two_documents_have(run: Run, file: Path, world: World) -> None:
    for _ in range(2):
        world.document(doi="10.1000/a")
    world.document(doi="10.1000/b", deleted_at="2026-01-01")
    ran = run("crossref", file, "--json")
    reasons = {s["doi"]: s["reason"] for s in ran.json["skipped"]}
    assert reasons["10.1000/A"] == "2 documents have its DOI"
    assert ran.json["documents_created"] == 2


def test_a_file_that_breaks_off_leaves_what_came_before(
    run: Run, su: Superuser, file: Path
) -> None:
    whole = file.read_bytes()
    packed = file.with_suffix(".gz")
    packed.write_bytes(gzip.compress(whole)[:-20])
    file.write_bytes(whole[: whole.index(b'"nothing"') + 3])
    ran = run("crossref", file, "--json")
    assert (ran.code, ran.json["works"], ran.json["skipped_count"]) == (Exit.NO, 2, 1)
    assert "no JSON from here on" in ran.err
    assert run("crossref", packed).code == Exit.NO
    assert len(documents(su)) >= 2


def test_one_line_that_breaks_off_packed_leaves_what_came_before(
    run: Run, su: Superuser, tmp_path: Path
) -> None:
    packed = tmp_path / "works.json.gz"
    works = [{"DOI": f"10.1000/{n}"} for n in range(3)]
    packed.write_bytes(gzip.compress(json.dumps(works).encode())[:-8])
    ran = run("crossref", packed, "--json")
    assert (ran.code, ran.json["works"], ran.json["skipped_count"]) == (Exit.NO, 3, 1)
    assert ran.err == (
        "citeledger: skipped: record 4: the file is not whole: its gzip data break off\n"
    )
    assert len(documents(su)) == 3


@pytest.mark.parametrize("data", [b"", gzip.compress(b"")])
def test_an_empty_file_is_called_empty(run: Run, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "empty.txt"
    path.write_bytes(data)
    ran = run("crossref", path)
    assert (ran.code, ran.err) == (Exit.NO, f"citeledger: error: {path} is empty\n")


@pytest.mark.parametrize("data", [b"", b"%PDF-1.4", bytes(range(256)), b"\x1f\x8b\x08"])
def test_what_is_no_file_of_works(run: Run, su: Superuser, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    ran = run("crossref", path)
    assert (ran.code, len(ran.err.splitlines())) == (Exit.NO, 1)
    assert documents(su) == []


@pytest.mark.skipif(not WORKS.is_file(), reason="there are no works at ../shared/data")
def test_real_works(run: Run, su: Superuser, tmp_path: Path) -> None:
    with gzip.open(WORKS) as packed:
        whole = json.load(packed)
    works = whole[::4] if isinstance(whole, list) else whole["message"]["items"][::4]
    path = tmp_path / "works.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"message": {"items": works}}).encode(), 1))
    ran = run("crossref", path, "--json")
    assert (ran.code, ran.err) == (Exit.DONE, "")
    assert ran.json["works"] == ran.json["documents_created"] == len(works)
    ((references, edges),) = su.execute(
        "select (select count(*) from citeledger.document_references),"
        " (select count(*) from citeledger.document_citations)"
    ).fetchall()
    assert ran.json["references"] == references > 1000
    assert ran.json["resolved"] == edges


def test_a_work_recorded_by_two_runs_at_once_is_one_document(
    su: Superuser, world: World, racing: Race
) -> None:
    """Two would make its DOI ambiguous, and lose its edges."""
    work = {"DOI": "10.1000/once", "title": ["Once"]}

    def put(connection: psycopg.Connection[Any]) -> Counts:
        with CiteLedger(connection).context(firm_id=world.firm_id) as bound:
            return record_works(bound, [Record(1, work)])[0]

    first, second = racing.session("t_app"), racing.session("t_app")
    first.call(put)
    assert first.result().documents_created == 1
    second.call(put)
    second.blocked()
    first.commit()
    found = second.result()
    assert (found.works, found.documents_created) == (1, 0)
    second.commit()
    assert su.execute("select from citeledger.documents").rowcount == 1
