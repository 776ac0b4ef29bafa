"""``citeledger report``: one page that needs nothing, runs nothing, and is there whole or not."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from markupsafe import escape

from citeledger.cli.app import run
from citeledger.cli.report import write_whole
from citeledger.pages.render import style_sheet
from reader.library import HOSTILE, Library

if TYPE_CHECKING:
    from conftest import Database


@pytest.fixture(autouse=True)
def environment(shelf: Database, library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", shelf.dsn("t_app"))
    monkeypatch.setenv("CITELEDGER_FIRM_ID", str(library.firm_id))


@pytest.fixture
def page(library: Library, tmp_path: Path) -> str:
    file = tmp_path / "report.html"
    assert run(["report", str(library.chat), "-o", str(file)]) == 0
    return file.read_text(encoding="utf-8")


class Elements(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_it_needs_nothing_and_runs_nothing(page: str) -> None:
    tags = Elements(page).found
    assert not {t for t, _ in tags} & {"script", "img", "link", "iframe", "object", "form", "base"}
    for tag, attributes in tags:
        assert not [n for n in attributes if n.startswith("on") or n in ("src", "style")], tag
        href = attributes.get("href")
        assert href is None or re.match(r"#|https://search\.example/", href), href
    (policy,) = [a["content"] or "" for _, a in tags if a.get("http-equiv")]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert page.count("<style>") == 1
    assert f"<style>{style_sheet()}</style>" in page


def test_everything_is_escaped(page: str) -> None:
    rest = page.replace(style_sheet(), "")
    assert HOSTILE not in rest
    assert rest.count(str(escape(HOSTILE))) > 5
    assert rest.count("(not a web address, so not a link)") == 3


def test_it_tells_what_held_and_what_did_not(page: str, library: Library) -> None:
    def entry(name: str) -> str:
        start = page.index(f'id="entry-{library.entries[name]}"')
        return page[start : page.index("</li>", start)]

    assert "Verified now" in entry("astral")
    assert f"/record/doc/{library.book}?page=1&amp;block=1" in entry("astral")
    for name, reason in (
        ("utf-16", "text_mismatch"),
        ("page gone", "page_missing"),
        ("unanchored", "not_anchored"),
    ):
        assert "Needs re-verification" in entry(name)
        assert f"<code>{reason}</code>" in entry(name)
        assert "/record/doc/" not in entry(name)
    assert "Cannot be checked" in entry("privileged")
    assert "The quote is withheld" in entry("privileged")
    for name in ("case law", "tool"):
        assert "Verified now" not in entry(name)
    never = entry("never held")
    assert "Still not found" in never
    assert "they were not verified when the turn was recorded either." in never
    assert "<code>quote_absent</code>" in never
    assert "re-verification" not in never
    assert (
        "8 of 22 quotes hold; 6 need re-verification; "
        "1 was not verified before and is not found now; 7 cannot be checked"
    ) in page
    assert page.count("No cited assertions") == 2  # in the list of turns, and at the turn


def test_the_legend_has_the_signs_of_the_ledger_and_of_the_checks(page: str) -> None:
    start = page.index('class="legend"')
    legend = page[start : page.index("</aside>", start)]
    for sign in (
        "Verbatim", "Near-verbatim", "Supported", "Failed", "Provenance", "Verified now",
        "Needs re-verification", "Still not found", "Cannot be checked",
    ):  # fmt: skip
        assert f"<span>{sign}</span>" in legend
    assert "the quoted words stood in the source when this was recorded" in legend


def test_the_command_counts_each_kind(
    library: Library, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "report.html"
    assert run(["report", str(library.chat), "-o", str(file)]) == 0
    assert capsys.readouterr().out == (
        f"{file}: 3 turns; of 22 quotes 8 hold, 6 need re-verification, "
        "1 was not verified before and is not found now, 7 cannot be checked\n"
    )


def test_the_links_lead_to_a_reading_room(library: Library, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    command = ["report", str(library.chat), "-o", str(file), "--reader-url"]
    assert run([*command, "https://reader.example/room/"]) == 0
    links = re.findall(r'href="(https://reader\.example[^"]*)"', file.read_text())
    assert len(links) == 8
    assert all(link.startswith("https://reader.example/room/matters/") for link in links)
    for bad in ("javascript:alert(1)", "reader.example", "file:///x"):
        assert run([*command, bad]) == 2


def test_it_goes_to_standard_output(library: Library) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "citeledger.cli", "report", str(library.chat), "-o", "-"],
        check=True,
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout.decode().startswith("<!doctype html>")
    assert done.stdout.decode().endswith("</html>\n")
    assert done.stderr == b""


def test_it_goes_out_as_json(
    library: Library,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["report", str(library.chat), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (found["title"], found["chat_id"]) == (HOSTILE, str(library.chat))
    assert [t["gate"] and t["gate"]["gate_status"] for t in found["turns"]] == [
        "flagged",
        "fiduciary_grade",
        None,
    ]
    checks = [e["check"] for t in found["turns"] for e in t["entries"] if e["checked"]]
    assert sum(1 for c in checks if c and c["verified"]) == 8
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["nope"], 2), (["01234567-89ab-cdef-0123-456789abcdef"], 4)],
)
def test_a_chat_that_is_not_there_leaves_the_old_report(
    arguments: list[str], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "report.html"
    file.write_text("old")
    assert run(["report", *arguments, "-o", str(file)]) == code
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_file_is_replaced_at_once(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text("old")
    file.chmod(0o640)
    link = tmp_path / "link.html"
    link.symlink_to(file)
    before = file.stat().st_ino
    write_whole(link, "new")
    assert (file.read_text(), link.is_symlink()) == ("new", True)
    assert file.stat().st_ino != before
    assert file.stat().st_mode & 0o777 == 0o640
    assert sorted(tmp_path.iterdir()) == [link, file]


def test_what_cannot_be_written_is_told_of_in_one_line(
    library: Library, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for target in (tmp_path, tmp_path / "none" / "report.html"):
        assert run(["report", str(library.chat), "-o", str(target)]) == 2
        error = capsys.readouterr().err
        assert "cannot be written" in error
        assert len(error.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
