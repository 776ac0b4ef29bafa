"""trace, cite, citations and check: what they print, and what they exit with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import psycopg
import pytest

from citeledger import CiteLedger
from citeledger.cli.exits import Exit
from support.records import QUOTE, Records
from support.world import World

from .conftest import Ran, Run, run_alone

if TYPE_CHECKING:
    from conftest import Database

Superuser = psycopg.Connection[Any]


def test_trace(run: Run, world: World, db: Database) -> None:
    chat = world.chat()
    turn = world.message(chat)
    world.citation(turn, source_text="A \x1b[31mred\x1b[0m [bold]quote[/bold]\nof two lines")
    world.citation(turn, method=None)
    world.caselaw(turn)
    world.tool(turn, label="A [result]")
    assert "No turn of this chat is finalized" in run("trace", chat).out
    run("finalize", turn)
    ran = run("trace", chat)
    assert ran.code == Exit.DONE
    assert "\x1b" not in ran.out
    for words in ("flagged", "A \\u001b[31mred\\u001b[0m [bold]quote[/bold] of", "opinion 1001"):
        assert words in ran.out
    assert "A [result] https://search.example/1" in ran.out
    ran = run("trace", chat, "--message", turn, "--json")
    with db.connect("t_app") as connection:
        client = CiteLedger(connection)
        with client.context(firm_id=world.firm_id, permissions=["matters:read"]) as bound:
            found = bound.ledger_trace(chat)
    assert ran.json["chat_id"] == str(chat)
    assert [e["id"] for e in ran.json["entries"]] == [str(e.id) for e in found.entries]
    assert ran.json["gates"][0]["gate_status"] == "flagged"
    assert ran.json["entries"][0]["source"]["passages"][0]["text"].startswith("A \x1b[31mred")


@pytest.fixture
def records(su: Superuser) -> Records:
    return Records.make(su)


def cite(db: Database, records: Records, *arguments: object, user: str = "t_app") -> Ran:
    return run_alone(
        "cite",
        *arguments,
        DATABASE_URL=db.dsn(user),
        CITELEDGER_FIRM_ID=str(records.firm_id),
    )


def test_cite(db: Database, records: Records) -> None:
    span = records.span()
    where = ("--matter", records.matter_number, "--document", records.record, "--page", 1)
    exact = ("--block", 1, "--start", span["char_start"], "--end", span["char_end"])
    ran = cite(db, records, *where, *exact, QUOTE)
    assert ran.code == Exit.DONE
    assert "verified    yes" in ran.out
    assert f"/record/doc/{records.record}?page=1&block=1" in ran.out
    ran = cite(db, records, *where, QUOTE.upper(), "--json")
    assert (ran.code, ran.json["reason"], ran.json["deep_link"]) == (Exit.NO, "quote_absent", None)
    assert ran.json["span"]["quote"] == QUOTE.upper()
    ran = cite(db, records, *where, "--start", 3, QUOTE)
    assert (ran.code, "char_end" in ran.err) == (Exit.REFUSED, True)
    assert cite(db, records, "--page", 0, *where[:4], QUOTE).code == Exit.USAGE
    assert cite(db, records, *where, "--", "-1").code == Exit.NO


@pytest.mark.parametrize("user", ["t_app", "t_reader"])
def test_cite_by_the_matters_id_needs_no_table(db: Database, records: Records, user: str) -> None:
    where = ("--matter", records.matter, "--document", records.record, "--page", 1)
    assert cite(db, records, *where, QUOTE, user=user).code == Exit.DONE


def test_what_is_not_there_is_one_answer(db: Database, records: Records) -> None:
    answers = set()
    for matter, document in records.not_there.values():
        ran = cite(db, records, "--matter", matter, "--document", document, "--page", 1, QUOTE)
        answers.add((ran.code, ran.out, ran.err))
    ((code, out, _),) = answers
    assert (code, out) == (Exit.REFUSED, "")


def test_many_spans(db: Database, records: Records, tmp_path: Path) -> None:
    file = tmp_path / "spans.json"
    file.write_text(json.dumps([records.span(), records.span(quote="absent"), {"page_number": 1}]))
    ran = cite(db, records, "--matter", records.matter, "--spans", file, "--json")
    assert ran.code == Exit.NO
    assert [answer.get("verified") for answer in ran.json] == [True, False, None]
    assert ran.json[2]["error"]["sqlstate"] == "22023"
    ran = cite(db, records, "--matter", records.matter, "--spans", file)
    assert [word in ran.out for word in ("yes", "no", "22023")] == [True] * 3
    file.write_text(json.dumps([records.span()]))
    assert cite(db, records, "--matter", records.matter, "--spans", file).code == Exit.DONE


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"[1]", b"[", b"\xff", b'[{"page_number": 1, "page_number": 2}]', b"[" * 100_000],
)
def test_a_file_that_is_no_list_of_spans(
    db: Database, records: Records, tmp_path: Path, data: bytes
) -> None:
    file = tmp_path / "spans.json"
    file.write_bytes(data)
    ran = cite(db, records, "--matter", records.matter, "--spans", file)
    assert (ran.code, len(ran.err.splitlines())) == (Exit.USAGE, 1)


def test_citations(run: Run, world: World, tmp_path: Path) -> None:
    file = tmp_path / "works.json"
    works = [
        {"DOI": "10.1000/a", "title": ["Paper A"], "reference": [{"DOI": "10.1000/b"}]},
        {"DOI": "10.1000/b", "title": ["Paper B"], "reference": [{"DOI": "10.1000/nowhere"}]},
    ]
    file.write_text(json.dumps(works))
    assert run("crossref", file).code == Exit.DONE
    rows = world.connection.execute("select id from citeledger.documents order by doi").fetchall()
    ids: list[UUID] = [row[0] for row in rows]
    ran = run("citations", ids[0])
    assert ran.code == Exit.DONE
    assert "1, of which 1 are here" in ran.out
    assert "Paper B" in ran.out
    ran = run("citations", ids[1], "--json")
    assert [r["resolved"] for r in ran.json["references"]] == [False]
    assert [c["document_id"] for c in ran.json["cited_by"]] == [str(ids[0])]


def test_check_sweeps_every_firm_that_the_role_may(
    run: Run, su: Superuser, world: World, db: Database
) -> None:
    other = World.make(su, "Another firm")
    other.citation(other.turn(finalized_at="2026-01-01"))
    ran = run("check", user="t_admin", CITELEDGER_FIRM_ID=None)
    assert (ran.code, ran.out) == (Exit.DONE, "2 firms checked: nothing found.\n")
    su.execute("alter table citeledger.work_product_fiduciary_gate disable trigger user")
    su.execute("delete from citeledger.work_product_fiduciary_gate")
    ran = run("check", "--json", user="t_admin", CITELEDGER_FIRM_ID=None)
    assert ran.code == Exit.NO
    assert ran.json["firms"] == 2
    assert {found["firm_id"] for found in ran.json["problems"]} == {str(other.firm_id)}
    assert run("check", user="t_admin").code == Exit.DONE
    ran = run("check", "--all-firms", user="t_admin")
    assert (ran.code, str(other.firm_id) in ran.out) == (Exit.NO, True)
