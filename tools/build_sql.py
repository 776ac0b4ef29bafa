"""Write sql/citeledger.sql and sql/uninstall.sql from the Sqitch plan.

``python tools/build_sql.py`` writes both files; ``--check`` writes nothing and exits 1 when a file
is not what the plan makes of it.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

INSTALL_HEAD = """\
-- citeledger {version}: the whole schema, made from sqitch.plan by tools/build_sql.py. Do not edit.
--
-- psql -X -v ON_ERROR_STOP=1 -1 -f sql/citeledger.sql
--
-- Run it as the owner of the database, who needs CREATEROLE where the citeledger roles are absent.
-- The whole file is one transaction (-1): the next statement fails where there is none.

savepoint citeledger_needs_one_transaction;
release savepoint citeledger_needs_one_transaction;
"""

UNINSTALL_HEAD = """\
-- citeledger {version}: takes the whole schema away, made from sqitch.plan by tools/build_sql.py.
-- Do not edit. EVERY FIRM'S DATA GOES WITH IT.
--
-- psql -X -v ON_ERROR_STOP=1 -1 -f sql/uninstall.sql
--
-- A role stays, with a notice, while another database or another role depends on it.

savepoint citeledger_needs_one_transaction;
release savepoint citeledger_needs_one_transaction;
"""


def planned_changes(plan: str) -> list[str]:
    """Return the names of the plan's changes, in order."""
    lines = (line.strip() for line in plan.splitlines())
    return [line.split()[0] for line in lines if line and line[0] not in "%#@"]


def script_body(path: Path) -> str:
    """Return a script without its own transaction and without its header comments."""
    text = path.read_text(encoding="utf-8")
    body = re.fullmatch(
        r"(?:--[^\n]*\n)+\nbegin;\n\n(?P<body>.*)\n\ncommit;\n", text, flags=re.DOTALL
    )
    if body is None:
        raise SystemExit(f"{path.relative_to(ROOT)}: not a header, begin, statements and commit")
    return body["body"]


def version() -> str:
    """Return the schema version that the plan installs."""
    text = (ROOT / "deploy/ops/version.sql").read_text(encoding="utf-8")
    found = re.search(r"select '(\d+\.\d+\.\d+)'::text", text)
    if found is None:
        raise SystemExit("deploy/ops/version.sql: no version found")
    return found[1]


def concatenated(head: str, folder: str, names: list[str]) -> str:
    """Return the head and the named scripts of a folder as one text."""
    parts = [head.format(version=version())]
    for name in names:
        body = script_body(ROOT / folder / f"{name}.sql")
        # Each script takes the owner's role for itself; the next begins as whoever installs.
        parts.append(f"\n-- {name}\n\n{body}\n\nreset role;\n")
    return "".join(parts)


def main() -> int:
    """Write or check the generated files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 when stale")
    arguments = parser.parse_args()

    names = planned_changes((ROOT / "sqitch.plan").read_text(encoding="utf-8"))
    wanted = {
        ROOT / "sql/citeledger.sql": concatenated(INSTALL_HEAD, "deploy", names),
        ROOT / "sql/uninstall.sql": concatenated(UNINSTALL_HEAD, "revert", names[::-1]),
    }
    stale = [
        path
        for path, text in wanted.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path in stale:
        if arguments.check:
            print(f"{path.relative_to(ROOT)} is stale: run make sql", file=sys.stderr)
        else:
            path.write_text(wanted[path], encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    return 1 if arguments.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
