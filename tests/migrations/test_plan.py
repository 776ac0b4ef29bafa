"""The plan is the table of contents: every change has its three scripts, in their form."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.deploy import REPOSITORY
from support.plan import Change, planned, read_plan

PLAN = (REPOSITORY / "sqitch.plan").read_text(encoding="utf-8")
CHANGES = planned()
SCRIPTS = [change.script for change in CHANGES]
CAPABILITIES = {"tenancy", "ledger", "gate", "cite", "graph", "ops"}


def test_the_plan_names_changes() -> None:
    lines = [line for line in PLAN.splitlines() if line and line[0] not in "%#@"]
    assert len(CHANGES) == len(lines) > 40
    assert {change.name.split("/")[0] for change in CHANGES} <= CAPABILITIES


@pytest.mark.parametrize("folder", ["deploy", "revert", "verify"])
def test_every_script_is_a_change_and_every_change_has_its_script(folder: str) -> None:
    root = REPOSITORY / folder
    scripts = {str(p.relative_to(root)).removesuffix(".sql") for p in root.rglob("*.sql")}
    assert scripts == set(SCRIPTS)


@pytest.mark.parametrize("change", CHANGES, ids=SCRIPTS)
def test_a_script_says_what_it_requires_as_the_plan_does(change: Change) -> None:
    text = (REPOSITORY / "deploy" / f"{change.script}.sql").read_text(encoding="utf-8")
    said = tuple(re.findall(r"^-- requires: (\S+)$", text, flags=re.MULTILINE))
    assert said == change.requires
    earlier = CHANGES[: CHANGES.index(change)]
    # By its plain name, or as it was at a tag: after a rework both are the same file's history.
    known = {c.name for c in earlier} | {c.script for c in earlier}
    assert set(said) <= known, "it requires what comes later"


BEFORE_A_REWORK = """\
%syntax-version=1.0.0
%project=example

a/one 2026-01-01T00:00:00Z t <t@example.invalid> # n
a/two [a/one] 2026-01-01T00:00:01Z t <t@example.invalid> # n
@v0.1.0 2026-01-01T00:00:02Z t <t@example.invalid> # n
@v0.1.1 2026-01-01T00:00:03Z t <t@example.invalid> # n
a/three 2026-01-01T00:00:04Z t <t@example.invalid> # n
"""


def test_a_reworked_change_keeps_its_old_scripts_under_the_tag(tmp_path: Path) -> None:
    """What read_plan says of a plan is what Sqitch itself makes of it."""
    environment = dict(os.environ) | {
        "SQITCH_FULLNAME": "citeledger tests",
        "SQITCH_EMAIL": "tests@citeledger.invalid",
        "SQITCH_USER_CONFIG": "/nonexistent",
        "SQITCH_SYSTEM_CONFIG": "/nonexistent",
    }
    (tmp_path / "sqitch.conf").write_text("[core]\n\tengine = pg\n", encoding="utf-8")
    plan = tmp_path / "sqitch.plan"
    plan.write_text(BEFORE_A_REWORK, encoding="utf-8")
    for folder in ("deploy", "revert", "verify"):
        (tmp_path / folder / "a").mkdir(parents=True)
        for name in ("one", "two", "three"):
            (tmp_path / folder / "a" / f"{name}.sql").touch()
    for command in (
        "rework a/one -n n",
        "tag v0.2.0 -n n",
        "rework a/one -n n",
        "rework a/two -n n",
    ):
        subprocess.run(
            ["sqitch", *command.split()],
            check=True,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment,
        )
    changes = read_plan(plan.read_text(encoding="utf-8"))
    assert [(c.name, c.script, c.requires) for c in changes] == [
        ("a/one", "a/one@v0.1.0", ()),
        ("a/two", "a/two@v0.2.0", ("a/one",)),
        ("a/three", "a/three", ()),
        ("a/one", "a/one@v0.2.0", ("a/one@v0.1.0",)),
        ("a/one", "a/one", ("a/one@v0.2.0",)),
        ("a/two", "a/two", ("a/two@v0.2.0",)),
    ]
    for folder in ("deploy", "revert", "verify"):
        root = tmp_path / folder
        files = {str(p.relative_to(root)).removesuffix(".sql") for p in root.rglob("*.sql")}
        assert files == {c.script for c in changes}


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_are_one_transaction_of_plain_sql(script: str) -> None:
    for folder, end in (("deploy", "commit;"), ("revert", "commit;"), ("verify", "rollback;")):
        text = (REPOSITORY / folder / f"{script}.sql").read_text(encoding="utf-8")
        statements = [ln for ln in text.splitlines() if ln and not ln.startswith("--")]
        assert statements[0] == "begin;"
        assert statements[-1] == end
        assert not re.search(r"^\s*\\", text, flags=re.MULTILINE), "a psql command"


@pytest.mark.parametrize("script", SCRIPTS)
def test_no_plain_text_has_a_backslash(script: str) -> None:
    """What a backslash means in a plain text is a setting that anybody may change.

    With standard_conforming_strings off a function's pattern would be another one, and stay so for
    the session. Only E'...' says what it means.
    """
    text = (REPOSITORY / "deploy" / f"{script}.sql").read_text(encoding="utf-8")
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
