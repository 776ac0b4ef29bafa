#!/usr/bin/env python3
"""Make docs/errors.md from the catalogue of errors that the client reads too.

``errors_md.py`` writes the file, ``errors_md.py --check`` fails when it is stale.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
CATALOGUE = REPOSITORY / "python_client" / "citeledger" / "errors.toml"
TARGET = REPOSITORY / "docs" / "errors.md"

INTRODUCTION = """\
# Errors

<!-- Made by tools/errors_md.py from python_client/citeledger/errors.toml. Do not edit. -->

citeledger raises standard SQLSTATEs, so that every driver and ORM knows them already. Each raise
has a message, a DETAIL that says which argument or object (never its content), and a HINT. Match
errors by their SQLSTATE, not by their text.

| SQLSTATE | exception of the Python client |
|---|---|
"""

REST = """
Everything else (a lost connection, a cancelled query, a serialization failure) is about the
connection or the transaction and keeps the exception of the driver; `CiteLedger.retry` runs a
transaction again after 40001 and 40P01. Constraints raise class 23 by themselves; each has a name
and a comment that says what it guards.
"""


def mapped(code: str) -> str:
    """Write a SQLSTATE, or a class of them, as a reader knows it."""
    return f"`{code}`" if len(code) == 5 else f"class `{code}`"


def section(error: dict[str, Any]) -> str:
    """Write one raise."""
    message = str(error["message"]).replace("%s", "…")
    facts = []
    if error["sqlstate"]:
        facts.append(f"`{error['sqlstate']}` {error['condition']}")
    facts.append(f"`{error['exception']}`" if error["exception"] else "a warning, no exception")
    by = ", ".join(
        "the Python client, before or instead of SQL" if b == "client" else f"`{b}`"
        for b in error["raised_by"]
    )
    return (
        f"### {message}\n\n"
        f"{' · '.join(facts)} · raised by {by}\n\n"
        f"{error['meaning']}\n\n"
        f"What to do: {error['remedy']}\n"
    )


def render(catalogue: dict[str, Any]) -> str:
    """Write the whole page."""
    errors = list(catalogue["errors"].values())
    groups = {
        "Raised by the database": [e for e in errors if e["sqlstate"] and e["exception"]],
        "Warnings of the database": [e for e in errors if e["sqlstate"] and not e["exception"]],
        "Raised by the client": [e for e in errors if not e["sqlstate"]],
    }
    table = "".join(f"| {mapped(code)} | `{n}` |\n" for code, n in catalogue["mapping"].items())
    parts = [INTRODUCTION + table + REST]
    for title, members in groups.items():
        parts.append(f"\n## {title}\n\n" + "\n".join(map(section, members)))
    return "".join(parts)


def main() -> int:
    """Write the page, or say whether it is stale."""
    text = render(tomllib.loads(CATALOGUE.read_text(encoding="utf-8")))
    if "--check" in sys.argv[1:]:
        if not TARGET.is_file() or TARGET.read_text(encoding="utf-8") != text:
            print(f"{TARGET.relative_to(REPOSITORY)} is stale; run 'make docs'", file=sys.stderr)
            return 1
        return 0
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
