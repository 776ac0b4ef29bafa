"""The plan is the table of contents: every change has its three scripts, in their form."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.deploy import REPOSITORY

PLAN = (REPOSITORY / "sqitch.plan").read_text(encoding="utf-8")
CHANGES = re.findall(r"^([a-z]+/[a-z_]+)(?: \[(.*?)\])? 20", PLAN, flags=re.MULTILINE)
NAMES = [name for name, _ in CHANGES]
CAPABILITIES = {"tenancy", "ledger", "gate", "cite", "graph", "ops"}


def test_the_plan_names_changes() -> None:
    lines = [line for line in PLAN.splitlines() if line and line[0] not in "%#@"]
    assert len(NAMES) == len(lines) > 40
    assert {name.split("/")[0] for name in NAMES} <= CAPABILITIES


@pytest.mark.parametrize("folder", ["deploy", "revert", "verify"])
def test_every_script_is_a_change_and_every_change_has_its_script(folder: str) -> None:
    root = REPOSITORY / folder
    scripts = {str(p.relative_to(root).with_suffix("")) for p in root.rglob("*.sql")}
    assert scripts == set(NAMES)


@pytest.mark.parametrize(("name", "requires"), CHANGES)
def test_a_script_says_what_it_requires_as_the_plan_does(name: str, requires: str) -> None:
    text = (REPOSITORY / "deploy" / f"{name}.sql").read_text(encoding="utf-8")
    said = re.findall(r"^-- requires: (\S+)$", text, flags=re.MULTILINE)
    assert said == requires.split()
    assert set(said) <= set(NAMES[: NAMES.index(name)]), "it requires what comes later"


@pytest.mark.parametrize("name", NAMES)
def test_scripts_are_one_transaction_of_plain_sql(name: str) -> None:
    for folder, end in (("deploy", "commit;"), ("revert", "commit;"), ("verify", "rollback;")):
        text = (REPOSITORY / folder / f"{name}.sql").read_text(encoding="utf-8")
        statements = [ln for ln in text.splitlines() if ln and not ln.startswith("--")]
        assert statements[0] == "begin;"
        assert statements[-1] == end
        assert not re.search(r"^\s*\\", text, flags=re.MULTILINE), "a psql command"


@pytest.mark.parametrize("name", NAMES)
def test_no_plain_text_has_a_backslash(name: str) -> None:
    """What a backslash means in a plain text is a setting that anybody may change.

    With standard_conforming_strings off a function's pattern would be another one, and stay so for
    the session. Only E'...' says what it means.
    """
    text = (REPOSITORY / "deploy" / f"{name}.sql").read_text(encoding="utf-8")
    code = re.sub(r"--[^\n]*", "", text)
    texts = re.findall(r"(?<![A-Za-z_0-9'])(E?)'((?:[^']|'')*)'", code, flags=re.IGNORECASE)
    assert not [body for kind, body in texts if not kind and "\\" in body]
    # Nor a quote behind one: that is refused under some client encodings.
    assert not [body for kind, body in texts if kind and "\\'" in body]


def test_the_generated_files_are_fresh() -> None:
    done = subprocess.run(
        [sys.executable, str(REPOSITORY / "tools" / "build_sql.py"), "--check"],
        check=False,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr


def test_a_stale_file_is_noticed(tmp_path: Path) -> None:
    for part in ("deploy", "revert", "sql", "tools"):
        target = tmp_path / part
        target.mkdir()
        for source in (REPOSITORY / part).rglob("*"):
            if source.is_file() and source.suffix in (".sql", ".py"):
                copy = target / source.relative_to(REPOSITORY / part)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "sqitch.plan").write_text(PLAN, encoding="utf-8")
    touched = tmp_path / "deploy" / "ops" / "version.sql"
    touched.write_text(touched.read_text(encoding="utf-8").replace("MAJOR", "Major"))
    done = subprocess.run(
        [sys.executable, str(tmp_path / "tools" / "build_sql.py"), "--check"],
        check=False,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 1
    assert "sql/citeledger.sql is stale" in done.stderr
