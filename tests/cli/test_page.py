"""Runs what the page of the command line shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

import pytest

from support.pages import named

from .conftest import Run

if TYPE_CHECKING:
    from conftest import Database

PAGE = "docs/cli.md"
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.+]+")


def alike(text: str) -> str:
    """Return the text with all ids, and all times, the same."""
    return _TIME.sub("TIME", _ID.sub("ID", text))


def play(run: Run, name: str, document_id: str = "") -> list[tuple[int, str]]:
    """Run the commands of a block, and see that each prints what is shown below it."""
    done = []
    for shown in re.split(r"^\$ ", named(PAGE, name).text, flags=re.MULTILINE)[1:]:
        command, output = shown.split("\n", 1)
        ran = run(*shlex.split(Template(command).substitute(document_id=document_id))[1:])
        assert alike(ran.out) == alike(output), command
        assert ran.err == ""
        done.append((ran.code, ran.out))
        found = _ID.search(ran.out)
        document_id = document_id or (found.group() if found else "")
    return done


def test_a_firm_and_a_matter_are_made(run: Run, db: Database, tmp_path: Path) -> None:
    session = named(PAGE, "firm").text + named(PAGE, "matter").text
    done = db.server.psql(
        "-q", "-v", "ON_ERROR_STOP=1", user="t_admin", dbname=db.name, stdin=session
    )
    assert done.returncode == 0, done.stderr
    firm = _ID.search(done.stdout)
    assert firm is not None
    lease = tmp_path / "lease.txt"
    lease.write_text(named(PAGE, "lease").text)
    ran = run("ingest", lease, "--matter", "2026-0147", CITELEDGER_FIRM_ID=firm.group())
    assert (ran.code, ran.err) == (0, "")


def test_the_tour(run: Run, matter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lease = tmp_path / "lease.txt"
    lease.write_text(named(PAGE, "lease").text)
    first = play(run, "tour")
    assert [code for code, _ in first] == [0, 0]
    found = _ID.search(first[0][1])
    assert found is not None
    lease.write_text(lease.read_text().replace("ninety", "nincty"))
    assert [code for code, _ in play(run, "again", found.group())] == [0, 1, 0]
