"""Write the files of sql/ from the Sqitch plan: what a DBA runs without Sqitch.

``python tools/build_sql.py`` writes citeledger.sql, uninstall.sql and, for each release in the
plan, an upgrade from it; ``--check`` writes nothing and exits 1 when a file is not what the plan
makes of it. ``--release 0.1.0`` prints the installation as that release had it.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
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

UPGRADE_HEAD = """\
-- citeledger {old} to {new}, made from sqitch.plan by tools/build_sql.py. Do not edit.
--
-- psql -X -v ON_ERROR_STOP=1 -f sql/upgrade--{old}--{new}.sql
--
-- For a database that was installed without Sqitch; run it as who installed it. Each part is a
-- transaction of its own, so that locks are short, and applications may go on meanwhile. When a
-- part fails, mend what it names and run the file again: the parts that were done do no harm.

do $$
begin
  -- A statement of its own begins its transaction.
  if now() <> statement_timestamp() then
    raise exception using
      errcode = '25001',
      message = 'this file cannot run within one transaction',
      detail = 'Its parts would keep all their locks until the end.',
      hint = 'Run psql without -1 (--single-transaction) and outside of begin and commit.';
  end if;
end
$$;

-- An application never waits long behind this: rather fail, and be run again.
set lock_timeout = '30s';
set statement_timeout = '1h';

begin;

do $$
declare
  v_is_kept boolean := false;
begin
  if to_regclass('sqitch.changes') is not null then
    execute 'select exists (select from sqitch.changes as c where c.project = $1)'
    into v_is_kept
    using 'citeledger';
  end if;
  if v_is_kept then
    raise exception using
      errcode = '55000',
      message = 'this database is kept by Sqitch',
      detail = 'Its registry, the schema sqitch, names the project citeledger.',
      hint = 'Run sqitch deploy instead.';
  end if;
end
$$;

set local role citeledger_owner;

do $$
begin
  if citeledger.version() not in ('{old}', '{new}') then
    raise exception using
      errcode = '55000',
      message = 'this file upgrades citeledger {old} to {new}',
      detail = format('Installed is %s.', citeledger.version()),
      hint = 'Run the files of sql/ that lead from your version to this one, in turn.';
  end if;
end
$$;

commit;
"""


@dataclass(frozen=True)
class Planned:
    """A change of the plan."""

    name: str
    """What it is called; a change that was reworked is there twice."""
    script: str
    """The name of its scripts: with a tag, where a later change of the plan reworks it."""
    release: str | None
    """The first release that has it; None for what is not released yet."""


def planned(plan: str) -> list[Planned]:
    """Return the plan's changes, in order."""
    lines = [line.strip() for line in plan.splitlines()]
    words = [line.split()[0] for line in lines if line and line[0] not in "%#"]
    changes = []
    for position, name in enumerate(words):
        if name.startswith("@"):
            continue
        later = words[position + 1 :]
        tag = next((word for word in later if word.startswith("@")), None)
        script = f"{name}{tag}" if name in later else name
        changes.append(Planned(name, script, tag and tag.removeprefix("@v")))
    return changes


def planned_changes(plan: str) -> list[str]:
    """Return the scripts of the plan's changes, in order."""
    return [change.script for change in planned(plan)]


def releases(plan: str) -> list[str]:
    """Return the plan's releases, in order."""
    return re.findall(r"^@v(\S+)", plan, flags=re.MULTILINE)


def at_release(plan: str, release: str) -> list[str]:
    """Return the scripts of the changes that a release has, in order."""
    end = re.search(rf"^@v{re.escape(release)} .*\n", plan, flags=re.MULTILINE)
    if end is None:
        raise SystemExit(f"the plan has no release {release}")
    # From the whole plan, which knows what was reworked since.
    return planned_changes(plan)[: len(planned(plan[: end.end()]))]


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
    parts = [head]
    for name in names:
        body = script_body(ROOT / folder / f"{name}.sql")
        # Each script takes the owner's role for itself; the next begins as whoever installs.
        parts.append(f"\n-- {name}\n\n{body}\n\nreset role;\n")
    return "".join(parts)


def upgrade(old: str, new: str, names: list[str]) -> str:
    """Return the changes since a release as one text, a transaction for each."""
    # Not format: the head is full of SQL's own braces and percent signs.
    parts = [UPGRADE_HEAD.replace("{old}", old).replace("{new}", new)]
    for name in names:
        body = script_body(ROOT / "deploy" / f"{name}.sql")
        parts.append(f"\n-- {name}\n\nbegin;\n\n{body}\n\ncommit;\n")
    return "".join(parts)


def main() -> int:
    """Write or check the generated files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 when stale")
    parser.add_argument("--release", help="print the installation of a release instead")
    arguments = parser.parse_args()

    plan = (ROOT / "sqitch.plan").read_text(encoding="utf-8")
    if arguments.release:
        head = INSTALL_HEAD.format(version=arguments.release)
        print(concatenated(head, "deploy", at_release(plan, arguments.release)), end="")
        return 0

    names, new = planned_changes(plan), version()
    wanted = {
        ROOT / "sql/citeledger.sql": concatenated(
            INSTALL_HEAD.format(version=new), "deploy", names
        ),
        ROOT / "sql/uninstall.sql": concatenated(
            UNINSTALL_HEAD.format(version=new), "revert", names[::-1]
        ),
    }
    for old in releases(plan):
        since = names[len(at_release(plan, old)) :]
        if since:
            wanted[ROOT / f"sql/upgrade--{old}--{new}.sql"] = upgrade(old, new, since)
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
