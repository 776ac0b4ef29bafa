"""The lint of the SQL can fail: each of its rules goes red when what it asks for is taken away."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from support.tools import tool

if TYPE_CHECKING:
    from conftest import Database

ROOT = Path(__file__).resolve().parents[2]
FUNCTION = "deploy/gate/verification_tier@v0.1.0.sql"
BOUND = "deploy/gate/verification_tier.sql"


# Which the other one imports.
tool("build_sql")
lint_sql = tool("lint_sql")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Copy what the style is about."""
    for folder in ("deploy", "revert", "verify"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copy(ROOT / "sqitch.plan", tmp_path)
    return tmp_path


def test_the_scripts_have_the_style() -> None:
    assert lint_sql.check_style() == []


BREAKS = {
    "upper case": ("immutable\n", "IMMUTABLE\n", "case"),
    "upper case in a body": ("return case", "RETURN case", "case"),
    "a wide line": ("begin;\n", f"begin;\n-- {'x' * 100}\n", "width"),
    "a tab": ("begin;\n", "begin;\n--\tx\n", "tab"),
    "blanks at the end": ("begin;\n", "begin; \n", "blank"),
    "a command of psql": ("begin;\n", "begin;\n\\set x 1\n", "backslash"),
    "no begin": ("begin;\n\nset", "set", "transaction"),
    "a rollback": ("commit;\n", "rollback;\n", "transaction"),
    "the wrong change": ("citeledger:gate/", "citeledger:cite/", "header"),
    "no search_path": ("set search_path = pg_catalog, pg_temp\n", "", "attributes"),
    "another search_path": (
        "\nset search_path = pg_catalog, pg_temp",
        "\nset search_path = citeledger, pg_temp",
        "attributes",
    ),
    "pg_temp not last": (
        "\nset search_path = pg_catalog, pg_temp",
        "\nset search_path = pg_temp, pg_catalog",
        "attributes",
    ),
    "a script in the deployer's search_path": (
        "set local search_path = pg_catalog, pg_temp;\n",
        "",
        "search_path",
    ),
    "no volatility": ("immutable\n", "", "attributes"),
    "no parallel label": ("parallel safe\n", "", "attributes"),
    "no security": ("security invoker\n", "", "attributes"),
    "another order": (
        "immutable\nparallel safe\n",
        "parallel safe\nimmutable\n",
        "attributes",
    ),
    "a parameter's name": ("p_status text\n", "status text\n", "parameter"),
    "a local's name": ("as $$\nbegin", "as $$\ndeclare\n  tier text;\nbegin", "local"),
    "a bare raise": ("begin\n  return", "begin\n  raise exception 'no';\n  return", "raise"),
    "a raise without a hint": (
        "begin\n  return",
        "begin\n  raise exception using errcode = 'P0001', message = 'a', detail = 'b';\n  return",
        "raise",
    ),
    "no line break at the end": ("\ncommit;\n", "\ncommit;", "end"),
}


@pytest.mark.parametrize(("old", "new", "rule"), BREAKS.values(), ids=BREAKS)
def test_a_break_of_style_is_found(tree: Path, old: str, new: str, rule: str) -> None:
    script = tree / FUNCTION
    text = script.read_text(encoding="utf-8")
    assert old in text
    script.write_text(text.replace(old, new, 1), encoding="utf-8")
    problems = lint_sql.check_style(tree)
    assert any(p.startswith(f"{FUNCTION}:") and p.endswith(f"[{rule}]") for p in problems), problems


def test_only_a_body_that_is_bound_goes_without_a_search_path(tree: Path) -> None:
    script = tree / BOUND
    text = script.read_text(encoding="utf-8")
    assert "search_path" not in text.split("create or replace", 1)[1]
    loose = text.replace("return case", "as $$\n  select case").replace("\nend;", "\nend\n$$;")
    assert loose.count("$$") == 2
    script.write_text(loose, encoding="utf-8")
    problems = lint_sql.check_style(tree)
    assert [p for p in problems if p.startswith(f"{BOUND}:") and p.endswith("[attributes]")]


@pytest.mark.parametrize("kind", ["deploy", "revert", "verify"])
def test_a_script_that_is_missing_is_found(tree: Path, kind: str) -> None:
    (tree / kind / "gate" / "settle.sql").unlink()
    assert f"{kind}/gate/settle.sql: is missing" in lint_sql.check_style(tree)


def test_a_script_of_no_change_is_found(tree: Path) -> None:
    shutil.copy(tree / FUNCTION, tree / "deploy" / "gate" / "stray.sql")
    assert "deploy/gate/stray.sql: is of no change in the plan" in lint_sql.check_style(tree)


def test_texts_and_comments_are_not_code() -> None:
    text = "-- SELECT\nselect 'SELECT', E'\\nSELECT', \"SELECT\" -- SELECT\n"
    assert "SELECT" not in lint_sql.without_texts(text)
    assert lint_sql.without_texts(text).count("\n") == text.count("\n")


WEAK = {
    "an open search_path": (
        "create function f() returns int language sql security definer as $$ select 1 $$;",
        "PS003",
    ),
    "something replaced": (
        (
            "create or replace function public.f() returns int language sql"
            " set search_path = pg_catalog, pg_temp as $$ select 1 $$;"
        ),
        "PS002",
    ),
    "a name that is not qualified": ("create table t (a pg_catalog.int4);", "PS017"),
}


@pytest.mark.parametrize(("statement", "code"), WEAK.values(), ids=WEAK)
def test_pgspot_finds_what_is_weak(tmp_path: Path, statement: str, code: str) -> None:
    pytest.importorskip("pgspot", reason="pgspot is one of the linters: make lint installs it")
    script = tmp_path / "weak.sql"
    script.write_text(f"{statement}\n")
    assert any(p.startswith(code) for p in lint_sql.check_pgspot(script))


@pytest.fixture
def checker(db: Database, su: psycopg.Connection[Any]) -> Database:
    """Give a database on a server that has plpgsql_check, which is Debian's."""
    available = su.execute(
        "select from pg_catalog.pg_available_extensions where name = 'plpgsql_check'"
    ).rowcount
    if not available:
        pytest.skip("this server has no plpgsql_check; Debian's has")
    return db


def test_plpgsql_check_finds_nothing_in_any_function(checker: Database) -> None:
    assert lint_sql.check_functions(checker.dsn()) == []


FAULTS = {
    "a column that is not there": (
        "citeledger_private.leave_firm(p_outer text) returns void",
        "perform m.nothing from citeledger.messages as m;",
        "error",
    ),
    "a local that is not used": (
        "citeledger_private.leave_firm(p_outer text) returns void",
        "declare v_unused integer; begin perform p_outer; end;",
        "warning",
    ),
    "an injection": (
        "citeledger_private.leave_firm(p_outer text) returns void",
        "execute 'set local citeledger.firm_id = ' || p_outer;",
        "security",
    ),
    "a hidden cast": (
        "citeledger_private.leave_firm(p_outer text) returns void",
        (
            "declare v_count integer; begin select count(*) into v_count from pg_class;"
            " perform v_count, p_outer; end;"
        ),
        "performance",
    ),
}


@pytest.mark.parametrize(("head", "body", "level"), FAULTS.values(), ids=FAULTS)
def test_plpgsql_check_finds_a_fault(
    checker: Database, su: psycopg.Connection[Any], head: str, body: str, level: str
) -> None:
    su.execute(
        f"create or replace function {head} language plpgsql volatile"
        f" set search_path = pg_catalog, pg_temp as $$ begin {body} end $$".encode()
    )
    problems = lint_sql.check_functions(checker.dsn())
    assert any(f": {level}" in p for p in problems), problems


def test_the_tool_exits_with_what_it_found(tree: Path) -> None:
    """Run as the Makefile runs it: 0 for nothing, 1 for a finding."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "lint_sql.py"), "--only", "style"],
        check=False,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout == "lint_sql: style: no findings\n"
    (tree / FUNCTION).unlink()
    assert lint_sql.check_style(tree) != []
