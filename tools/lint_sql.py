"""Check the SQL of the package: its style, its functions, and how its deployment could be abused.

``python tools/lint_sql.py`` makes three checks and exits 1 when one of them finds anything:

style      deploy/, revert/ and verify/ follow section 3 of the contract;
pgspot     sql/citeledger.sql, as a DBA runs it, has no weakness that pgspot knows;
functions  plpgsql_check finds nothing in any function: no error, no warning of any kind.

``--only NAME`` makes one of them. ``--dsn DSN`` names a database in which the package is deployed
and where plpgsql_check can be created by that role (it is rolled back); without it the tool starts
a server of its own. Everything that is let pass is in this file, with its reason beside it.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
from build_sql import planned_changes

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 100

# Codes of pgspot that are let pass, each with its reason. None is.
PGSPOT_IGNORED: dict[str, str] = {}

# Findings of plpgsql_check that are let pass: (function, part of the message) -> reason. For any
# function: "*".
CHECK_IGNORED: dict[tuple[str, str], str] = {
    ("citeledger_private.enter_firm(uuid)", "routine is marked as VOLATILE"): (
        "it is volatile: it changes a setting, by dynamic SQL, which the checker cannot see"
    ),
    ("*", 'never read variable "v_ignored"'): (
        "what takes the value of a function that is called as an expression: a perform is a query"
    ),
    ("citeledger_private.refuse_as_not_found()", "routine is marked as STABLE"): (
        "it raises: a planner that folds what is immutable would do so in advance"
    ),
}

# Rules of style that a file is excused from: (file, rule) -> reason.
STYLE_EXCUSED: dict[tuple[str, str], str] = {}

# -- style ------------------------------------------------------------------------------------

# What stands for one thing each, so that code is looked at without its texts and comments.
_TOKENS = re.compile(
    r"(?P<comment>--[^\n]*)"
    r"|(?P<text>\b[eE]?'(?:[^']|'')*'|'(?:[^']|'')*')"
    r"|(?P<name>\"(?:[^\"]|\"\")*\")",
)
# In a verify script: what the catalogs say of an object, in the server's own words.
_FACTS = re.compile(r"(?<!do )\$(?P<tag>\w*)\$.*?\$(?P=tag)\$", re.DOTALL)
_FUNCTION = re.compile(
    r"^create (?:or replace )?function (?P<name>[\w.]+)\((?P<arguments>.*?)\)\n(?P<head>.*?)"
    r"^(?:as \$\w*\$|begin atomic|return )",
    re.DOTALL | re.MULTILINE,
)
_HEAD = re.compile(
    r"returns [^\n]+(?:\n  [^\n]+)*(?:\n\))?\n"
    r"language (?:plpgsql|sql)\n"
    r"(?:immutable|stable|volatile)\n"
    r"parallel (?:safe|restricted|unsafe)\n"
    r"security (?:invoker|definer)\n"
    r"(?:strict\n)?"
    r"(?:rows \d+\n)?"
    r"(?:cost \d+\n)?"
    r"(?:set search_path = pg_catalog, pg_temp\n"
    # With a comment that says why.
    r"(?:(?:--[^\n]*| *)\n"
    r"set (?:plan_cache_mode = force_generic_plan|quote_all_identifiers = off)\n)?)?"
)
# Without it only where the names of the body are bound when the function is made.
_PINNED = re.compile(r"^set search_path = ", re.MULTILINE)
_RAISE = re.compile(r"\braise exception\b(?P<rest>.*?);", re.DOTALL)
_MODELINE = re.compile(r"^-- (Deploy|Revert|Verify) citeledger:(\S+) (?:to|from|on) pg$")


def without_texts(text: str) -> str:
    """Return code with every comment, text and quoted name blanked, line by line as it was."""

    def blank(found: re.Match[str]) -> str:
        return (
            re.sub(r"[^\n]", " ", found.group())
            if found["text"] is None
            else re.sub(r"[^\n]", "_", found.group())
        )

    return _TOKENS.sub(blank, text)


def style_of(kind: str, change: str, text: str) -> Iterator[tuple[int, str, str]]:
    """Yield (line, rule, what is wrong) for one script."""
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if len(line) > WIDTH:
            yield number, "width", f"{len(line)} columns, at most {WIDTH}"
        if "\t" in line:
            yield number, "tab", "a tab"
        if line != line.rstrip():
            yield number, "blank", "blanks at the end"
        if line.startswith("\\"):
            yield number, "backslash", "a command of psql"
    if not text.endswith("\n") or text.endswith("\n\n"):
        yield len(lines), "end", "must end with one line break"

    found = _MODELINE.match(lines[0])
    if found is None or found[1].lower() != kind or found[2] != change:
        yield 1, "header", f"must be: -- {kind.capitalize()} citeledger:{change} …"
    code = without_texts(text)
    if kind == "verify":
        code = _FACTS.sub(lambda found: re.sub(r"[^\n]", "_", found.group()), code)
    statements = [line for line in code.split("\n") if line.strip()]
    closing = "rollback;" if kind == "verify" else "commit;"
    if statements[:1] != ["begin;"] or statements[-1:] != [closing]:
        yield 1, "transaction", f"must be one transaction: begin; … {closing}"

    if kind == "deploy" and "set local search_path = pg_catalog, pg_temp;" not in statements:
        yield 1, "search_path", "names resolve in the deployer's search_path, not in a fixed one"

    for number, line in enumerate(code.split("\n"), 1):
        for word in re.findall(r"(?<![\w$%])[A-Z][A-Z_]+\b", line):
            yield number, "case", f"{word} is not lower case"

    if kind == "deploy":
        yield from functions_of(text)
    for found in _RAISE.finditer(code):
        number = code.count("\n", 0, found.start()) + 1
        given = re.findall(r"\b(errcode|message|detail|hint)\s*=", found["rest"])
        if given != ["errcode", "message", "detail", "hint"]:
            yield number, "raise", "must give errcode, message, detail and hint, in that order"


def functions_of(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield what is wrong with the heads of a script's functions."""
    created = len(re.findall(r"^create (?:or replace )?function ", text, re.MULTILINE))
    found = list(_FUNCTION.finditer(text))
    if len(found) != created:
        yield 1, "function", f"{created} functions, but {len(found)} of the known form"
    for function in found:
        number = text.count("\n", 0, function.start()) + 1
        bound = not function[0].endswith("$")
        if _HEAD.fullmatch(function["head"]) is None or not (
            bound or _PINNED.search(function["head"])
        ):
            yield (
                number,
                "attributes",
                (
                    f"{function['name']}: the order is returns, language, volatility, parallel,"
                    " security, [strict], [rows], [cost], set search_path = pg_catalog, pg_temp"
                ),
            )
        arguments = function["arguments"].strip("\n")
        for argument in filter(None, map(str.strip, arguments.split("\n"))):
            if not argument.startswith("p_"):
                yield number, "parameter", f"{function['name']}: {argument} does not start with p_"
        body = text[function.end() :].split("$$;", maxsplit=1)[0]
        declared = re.search(r"\bdeclare\n(?P<block>.*?)^begin$", body, re.DOTALL | re.MULTILINE)
        for local in re.findall(r"^  (\w+) ", declared["block"] if declared else "", re.MULTILINE):
            if not local.startswith("v_"):
                yield number, "local", f"{function['name']}: {local} does not start with v_"


def check_style(root: Path = ROOT) -> list[str]:
    """Return what is wrong with the scripts of a tree that has a sqitch.plan."""
    planned = planned_changes((root / "sqitch.plan").read_text(encoding="utf-8"))
    problems = []
    for kind in ("deploy", "revert", "verify"):
        there = {
            str(p.relative_to(root / kind).with_suffix("")) for p in (root / kind).rglob("*.sql")
        }
        problems += [f"{kind}/{c}.sql: is missing" for c in planned if c not in there]
        problems += [
            f"{kind}/{c}.sql: is of no change in the plan" for c in sorted(there - set(planned))
        ]
        for change in sorted(there):
            path = f"{kind}/{change}.sql"
            text = (root / path).read_text(encoding="utf-8")
            problems += [
                f"{path}:{number}: {wrong} [{rule}]"
                for number, rule, wrong in style_of(kind, change.split("@")[0], text)
                if (path, rule) not in STYLE_EXCUSED
            ]
    return problems


# -- pgspot -----------------------------------------------------------------------------------


def check_pgspot(script: Path = ROOT / "sql" / "citeledger.sql") -> list[str]:
    """Return what pgspot finds in the script that a DBA runs."""
    text = script.read_text(encoding="utf-8")
    # pgspot 0.9 knows "set search_path" only, not that "set local" pins it as well.
    text = re.sub(r"^set local search_path\b", "set search_path", text, flags=re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / script.name
        copy.write_text(text, encoding="utf-8")
        ignored = [argument for code in PGSPOT_IGNORED for argument in ("--ignore", code)]
        program = Path(sysconfig.get_path("scripts")) / "pgspot"
        done = subprocess.run(
            [str(program), *ignored, str(copy)],
            check=False,
            capture_output=True,
            encoding="utf-8",
        )
    findings = [line for line in done.stdout.splitlines() if line.startswith("PS")]
    if "Errors: 0 Warnings: 0 Unknown: 0" not in done.stdout and not findings:
        findings = [done.stdout + done.stderr]
    return findings


# -- functions --------------------------------------------------------------------------------

_FUNCTIONS = """
select
  f.oid::regprocedure::text,
  coalesce(t.tgrelid, 0)::regclass::text,
  t.tgoldtable,
  t.tgnewtable
from pg_catalog.pg_proc as f
join pg_catalog.pg_language as l on l.oid = f.prolang and l.lanname = 'plpgsql'
left join pg_catalog.pg_trigger as t on t.tgfoid = f.oid and not t.tgisinternal
where f.pronamespace in ('citeledger'::regnamespace, 'citeledger_private'::regnamespace)
order by 1, 2, 3, 4
"""

_CHECK = """
select
  c.level, c.sqlstate, c.message, coalesce(c.detail, ''), coalesce(c.hint, ''), c.lineno,
  coalesce(c.statement, '')
from lint.plpgsql_check_function_tb(
  %s::regprocedure, relid => %s::regclass,
  fatal_errors => false, other_warnings => true, performance_warnings => true,
  extra_warnings => true, security_warnings => true, compatibility_warnings => true,
  oldtable => %s, newtable => %s
) as c
"""


def check_functions(dsn: str) -> list[str]:
    """Return what plpgsql_check finds in the functions of a deployed database."""
    problems = []
    with psycopg.connect(dsn) as connection:
        connection.execute("create schema lint")
        connection.execute("create extension plpgsql_check schema lint")
        functions = connection.execute(_FUNCTIONS).fetchall()
        if not functions:
            return ["no PL/pgSQL function is there: is the package deployed?"]
        used = set()
        for function, relation, old_table, new_table in functions:
            for level, sqlstate, message, detail, hint, line, statement in connection.execute(
                _CHECK, (function, relation, old_table, new_table)
            ).fetchall():
                excuse = next(
                    (
                        key
                        for key in CHECK_IGNORED
                        if key[0] in ("*", function) and key[1] in f"{message} {detail}"
                    ),
                    None,
                )
                if excuse is not None:
                    used.add(excuse)
                    continue
                of = f" on {relation}" if relation != "-" else ""
                more = " ".join(filter(None, (detail, hint)))
                problems.append(
                    f"{function}{of}, line {line} {statement}: {level} {sqlstate} {message} {more}"
                )
        problems += [
            f"CHECK_IGNORED: nothing is left of {key}" for key in CHECK_IGNORED if key not in used
        ]
        connection.rollback()
    return problems


def check_functions_here() -> list[str]:
    """Check the functions on a server of our own, Debian's, which has plpgsql_check."""
    from prepared import prepared_server

    with prepared_server() as (server, name):
        return check_functions(server.dsn(dbname=name))


def main(arguments: list[str] | None = None) -> int:
    """Make the checks, print what they find, and say whether it was nothing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", choices=["style", "pgspot", "functions"])
    parser.add_argument("--dsn", help="a deployed database; without it a server is started")
    chosen = parser.parse_args(arguments)
    checks: dict[str, Callable[[], list[Any]]] = {
        "style": check_style,
        "pgspot": check_pgspot,
        "functions": lambda: check_functions(chosen.dsn) if chosen.dsn else check_functions_here(),
    }
    failed = False
    for name, check in checks.items():
        if chosen.only in (None, name):
            problems = check()
            failed = failed or bool(problems)
            for problem in problems:
                print(f"{name}: {problem}")
            print(f"lint_sql: {name}: {len(problems) or 'no'} finding{'s'[: len(problems) != 1]}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
