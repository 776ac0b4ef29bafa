"""Write the verify scripts of changes from a database in which the plan is deployed.

``python tools/verify_sql.py --dsn DSN [CHANGE ...]`` writes ``verify/CHANGE.sql`` for each named
change, or for every change of the plan that has none. What it writes is what the catalogs say: read
it against the deploy script before it is committed, for from then on it is the definition that
``sqitch verify`` holds the database to. A verify script written by hand is never overwritten
unless it is named.
"""

from __future__ import annotations

import argparse
import re
import textwrap
from pathlib import Path

import psycopg
from build_sql import ROOT, planned_changes, script_body

WIDTH = 100
IDENTIFIER = r"(citeledger(?:_private)?\.\w+)"


def facts(connection: psycopg.Connection, describer: str, name: str) -> list[str]:
    """Return what the database says of an object, a line for each fact, sorted."""
    query = f"select line from citeledger_private.{describer}(%s) as line"
    rows = connection.execute(query, [name])
    return sorted(re.sub(r"\s+", " ", row[0]) for row in rows)


def expectation(function: str, name: str, lines: list[str]) -> str:
    """Return one call of a verify function with the facts as its dollar-quoted text."""
    wrapped = [
        part
        for line in lines
        for part in textwrap.wrap(
            line,
            WIDTH,
            initial_indent="  ",
            subsequent_indent="    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    ]
    body = "\n".join(wrapped)
    return f"select citeledger_private.{function}(\n  '{name}', $facts$\n{body}\n$facts$);\n"


def signature(name: str, parameters: str) -> str:
    """Return a function's name and argument types from the text of its parameter list."""
    types = [
        re.sub(r"\s+default .*", "", line.strip().rstrip(",")).split(maxsplit=1)[1]
        for line in parameters.splitlines()
        if line.strip()
    ]
    return f"{name}({', '.join(types)})"


def verify_script(connection: psycopg.Connection, change: str) -> str:
    """Return the verify script of a change: every object that its deploy script makes."""
    deploy = script_body(ROOT / "deploy" / f"{change}.sql")
    calls = []
    tables = re.findall(rf"^create table {IDENTIFIER}", deploy, flags=re.MULTILINE)
    made = re.findall(
        rf"^create (?:trigger|policy) (\w+)(?:\n[^\n]*?| )on {IDENTIFIER}",
        deploy,
        flags=re.MULTILINE,
    )
    for table in tables:
        own = {name for name, on in made if on == table}
        lines = [
            line
            for line in facts(connection, "describe_relation", table)
            if not re.match(r"trigger |policy \S+ restrictive ", line)
            or any(re.search(rf"\b{name}\b", line) for name in own)
        ]
        calls.append(expectation("verify_relation", table, lines))
    for table in sorted({on for _, on in made} - set(tables)):
        own = {name for name, on in made if on == table}
        lines = [
            line
            for line in facts(connection, "describe_relation", table)
            if re.match("trigger |policy ", line)
            and any(re.search(rf"\b{name}\b", line) for name in own)
        ]
        calls.append(expectation("verify_parts", table, lines))
    for name, parameters in re.findall(
        rf"^create (?:or replace )?function {IDENTIFIER}\((.*?)\)\nreturns",
        deploy,
        flags=re.MULTILINE | re.DOTALL,
    ):
        function = signature(name, parameters)
        calls.append(
            expectation(
                "verify_function", function, facts(connection, "describe_function", function)
            )
        )
    if not calls:
        raise SystemExit(f"{change}: makes no table, function, trigger or policy; write it by hand")
    body = "\n".join(calls)
    return (
        f"-- Verify citeledger:{change} on pg\n\nbegin;\n\nset local role citeledger_owner;\n"
        f"set local search_path = pg_catalog, pg_temp;\n\n{body}\nrollback;\n"
    )


def main() -> None:
    """Write the verify scripts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dsn", required=True, help="a database that the plan is deployed in")
    parser.add_argument("change", nargs="*")
    arguments = parser.parse_args()

    names = arguments.change or [
        name
        for name in planned_changes((ROOT / "sqitch.plan").read_text(encoding="utf-8"))
        if not (ROOT / "verify" / f"{name}.sql").exists()
    ]
    with psycopg.connect(arguments.dsn) as connection:
        connection.execute("set local role citeledger_owner")
        for name in names:
            path: Path = ROOT / "verify" / f"{name}.sql"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(verify_script(connection, name), encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
