"""Runs every pgTAP file with the real pg_prove, as a role that owns nothing (but see owner/)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.pgtap import TESTER, form_problems, prove
from support.server import DEPLOYER

if TYPE_CHECKING:
    from conftest import Database

HERE = Path(__file__).parent / "pgtap"
FILES = sorted(HERE.rglob("*.sql"))

GOOD = """
begin;
select plan(2);
select pass('one');
select pass('two');
select * from finish();
rollback;
"""


def test_there_are_files() -> None:
    assert FILES, f"no pgTAP file below {HERE}"


@pytest.mark.parametrize("file", FILES, ids=lambda p: str(p.relative_to(HERE)))
def test_file(tap_db: Database, file: Path) -> None:
    assert not form_problems(file.read_text(encoding="utf-8"))
    # What no role may try is tried by one that may become the owner.
    user = DEPLOYER if file.is_relative_to(HERE / "owner") else TESTER
    done = prove(tap_db.server, tap_db.name, file, user=user)
    assert done.returncode == 0, f"\n{done.stdout}{done.stderr}"
    assert "Result: PASS" in done.stdout, f"\n{done.stdout}{done.stderr}"


def test_the_role_owns_nothing_and_is_not_exempt(tap_db: Database) -> None:
    with tap_db.connect(TESTER) as connection:
        row = connection.execute(
            "select r.rolsuper, r.rolbypassrls, r.rolcreaterole,"
            " pg_catalog.pg_has_role(r.oid, 'citeledger_owner', 'member')"
            " from pg_catalog.pg_roles as r where r.rolname = current_user"
        ).fetchone()
    assert row == (False, False, False, False)


BAD = {
    "not ok": GOOD.replace("pass('two')", "fail('two')"),
    "too few": GOOD.replace("select pass('two');\n", ""),
    "too many": GOOD.replace("plan(2)", "plan(1)"),
    "error": GOOD.replace("select pass('two');", "select no_such_function();"),
    "cut short": GOOD.split("select pass('two')", maxsplit=1)[0],
    "empty": "",
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_a_bad_file_fails(tap_db: Database, tmp_path: Path, text: str) -> None:
    file = tmp_path / "bad.sql"
    file.write_text(text)
    assert prove(tap_db.server, tap_db.name, file).returncode != 0


def test_a_good_file_passes(tap_db: Database, tmp_path: Path) -> None:
    file = tmp_path / "good.sql"
    file.write_text(GOOD)
    assert prove(tap_db.server, tap_db.name, file).returncode == 0
    assert form_problems(GOOD) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (GOOD.replace("begin;\n", ""), "it does not start with begin;"),
        (GOOD.replace("rollback;\n", ""), "it does not end with rollback;"),
        (GOOD.replace("rollback;", "commit;\nrollback;"), "it commits"),
        (GOOD.replace("plan(2)", "no_plan()"), "it has no single plan with a number of tests"),
        (GOOD.replace("select * from finish();\n", ""), "it does not call finish()"),
    ],
)
def test_the_form_of_a_file(text: str, problem: str) -> None:
    assert form_problems(text) == [problem]
