"""Take each guard of the schema away in turn, and see whether a behavioural test notices.

Every named CHECK, unique key, unique index, foreign key, policy and trigger of a deployed database
is a mutant: dropped, in a copy of the database, and the pgTAP files are run until one goes red. A
policy is also opened (using true), a CHECK also made hollow (check true, under its name), and row
security is also switched off and no longer forced.
Files that merely compare the catalogs with a list are not run: they would notice everything.

It exits 1 when a mutant survives that is not listed as equivalent, and when a listed one is caught.

``--list`` prints the mutants. ``--only PATTERN`` takes those whose name matches. The tool starts a
server of its own, as the tests do.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psycopg
from prepared import PGTAP, prepared_server, prove

from support.server import Server

# They look at the catalogs, not at what the database does.
STRUCTURAL = {"ops/structure.sql", "tenancy/privileges.sql", "owner/structure.sql"}

# Mutants that no behaviour can show, each with the reason.
EQUIVALENT: dict[str, str] = {}

_MUTANTS = """
select 'check', c.relname, k.conname,
  format('alter table citeledger.%%I drop constraint %%I', c.relname, k.conname)
from pg_catalog.pg_constraint as k
join pg_catalog.pg_class as c on c.oid = k.conrelid
where k.connamespace = 'citeledger'::regnamespace and k.contype = 'c'
union all
-- The same without anything missing: of the same name, but of nothing.
select 'hollow check', c.relname, k.conname,
  format(
    'alter table citeledger.%%1$I drop constraint %%2$I, add constraint %%2$I check (true)',
    c.relname, k.conname
  )
from pg_catalog.pg_constraint as k
join pg_catalog.pg_class as c on c.oid = k.conrelid
where k.connamespace = 'citeledger'::regnamespace and k.contype = 'c'
union all
select 'foreign key', c.relname, k.conname,
  format('alter table citeledger.%%I drop constraint %%I', c.relname, k.conname)
from pg_catalog.pg_constraint as k
join pg_catalog.pg_class as c on c.oid = k.conrelid
where k.connamespace = 'citeledger'::regnamespace and k.contype = 'f'
union all
-- With the foreign keys that refer to it, which cannot be without.
select 'unique key', c.relname, k.conname,
  format('alter table citeledger.%%I drop constraint %%I cascade', c.relname, k.conname)
from pg_catalog.pg_constraint as k
join pg_catalog.pg_class as c on c.oid = k.conrelid
where k.connamespace = 'citeledger'::regnamespace and k.contype in ('p', 'u', 'x')
union all
select 'unique index', c.relname, x.relname, format('drop index citeledger.%%I', x.relname)
from pg_catalog.pg_index as i
join pg_catalog.pg_class as x on x.oid = i.indexrelid
join pg_catalog.pg_class as c on c.oid = i.indrelid
where c.relnamespace = 'citeledger'::regnamespace
  and i.indisunique
  and not exists (select from pg_catalog.pg_constraint as k where k.conindid = i.indexrelid)
union all
select 'policy', c.relname, p.polname,
  format('drop policy %%I on citeledger.%%I', p.polname, c.relname)
from pg_catalog.pg_policy as p
join pg_catalog.pg_class as c on c.oid = p.polrelid
where c.relnamespace = 'citeledger'::regnamespace
union all
select 'opened policy', c.relname, p.polname,
  format('alter policy %%I on citeledger.%%I using (true) with check (true)', p.polname, c.relname)
from pg_catalog.pg_policy as p
join pg_catalog.pg_class as c on c.oid = p.polrelid
where c.relnamespace = 'citeledger'::regnamespace
union all
select 'row security', c.relname, c.relname,
  format('alter table citeledger.%%I disable row level security', c.relname)
from pg_catalog.pg_class as c
where c.relnamespace = 'citeledger'::regnamespace and c.relrowsecurity
union all
select 'forced row security', c.relname, c.relname,
  format('alter table citeledger.%%I no force row level security', c.relname)
from pg_catalog.pg_class as c
where c.relnamespace = 'citeledger'::regnamespace and c.relforcerowsecurity
union all
select 'trigger', c.relname, t.tgname,
  format('drop trigger %%I on citeledger.%%I', t.tgname, c.relname)
from pg_catalog.pg_trigger as t
join pg_catalog.pg_class as c on c.oid = t.tgrelid
where c.relnamespace = 'citeledger'::regnamespace and not t.tgisinternal
order by 2, 1, 3
""".replace("%%", "%")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One guard that is taken away."""

    kind: str
    table: str
    name: str
    statement: str

    def __str__(self) -> str:
        """Name it: its kind, its table where that is not part of the name, and its name."""
        where = "" if self.name == self.table else f" of {self.table}"
        return f"{self.kind} {self.name}{where}"


def mutants_of(connection: psycopg.Connection[tuple[str, str, str, str]]) -> list[Mutant]:
    """Return every mutant of a deployed database."""
    return [Mutant(*row) for row in connection.execute(_MUTANTS).fetchall()]


def files() -> list[Path]:
    """Return the pgTAP files that look at what the database does."""
    return [p for p in sorted(PGTAP.rglob("*.sql")) if str(p.relative_to(PGTAP)) not in STRUCTURAL]


@cache
def words(file: Path) -> Counter[str]:
    """Count the names in a file."""
    return Counter(re.findall(r"\w+", file.read_text(encoding="utf-8")))


def by_relevance(mutant: Mutant, caught: Counter[Path]) -> list[Path]:
    """Return the files in the order in which they are likely to notice."""

    def relevance(file: Path) -> tuple[int, int, int]:
        found = words(file)
        about = file.stem in ("checks", "forged_writes") and "check" in mutant.kind
        about = about or (file.stem == "isolation" and "row security" in mutant.kind)
        about = about or (file.stem in ("isolation", "walls") and "policy" in mutant.kind)
        return (found[mutant.name], int(about), found[mutant.table] + caught[file])

    return sorted(files(), key=relevance, reverse=True)


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a mutant: the file that went red, or None, and how many were run."""

    mutant: Mutant
    caught_by: Path | None
    seconds: float


class Hunt:
    """Tries mutants against one server."""

    def __init__(self, server: Server, template: str) -> None:
        """Take the server, and the database that the mutants are copies of."""
        self.server = server
        self.template = template
        self.caught: Counter[Path] = Counter()
        self.red: set[Path] = set()

    def baseline(self) -> list[str]:
        """Return what is red without any mutant: such a file can tell nothing, and is left out."""
        wrong = []
        with self.server.database(template=self.template) as name:
            for file in files():
                done = prove(self.server, name, file)
                if done.returncode:
                    self.red.add(file)
                    wrong.append(f"{file.relative_to(PGTAP)} is red without a mutant")
                    print(done.stdout, done.stderr, sep="")
        return wrong

    def attempt(self, mutant: Mutant) -> Result:
        """Take one guard away and run the files until one goes red."""
        started = time.monotonic()
        with self.server.database(template=self.template) as name:
            with self.server.connect(dbname=name, autocommit=True) as superuser:
                superuser.execute(mutant.statement.encode())
            for file in by_relevance(mutant, self.caught):
                if file not in self.red and prove(self.server, name, file).returncode:
                    self.caught[file] += 1
                    return Result(mutant, file, time.monotonic() - started)
        return Result(mutant, None, time.monotonic() - started)

    def attempts(self, mutants: Sequence[Mutant], jobs: int) -> Iterator[Result]:
        """Try all of them, some at the same time; yield the results in order."""
        with ThreadPoolExecutor(jobs) as pool:
            yield from pool.map(self.attempt, mutants)


def hunt(server: Server, template: str, only: str | None, jobs: int, *, listing: bool) -> int:
    """Try the mutants, print the report, and return the exit status."""
    with server.connect(dbname=template) as connection:
        everything = mutants_of(connection)
    chosen = [m for m in everything if only is None or re.search(only, str(m))]
    if listing:
        print(*(f"{m}: {m.statement}" for m in chosen), sep="\n")
        return 0
    if not chosen:
        print("mutants: none of that name")
        return 1
    running = Hunt(server, template)
    wrong = running.baseline()
    count: Counter[str] = Counter()
    for result in running.attempts(chosen, jobs):
        name = str(result.mutant)
        reason = EQUIVALENT.get(name)
        if result.caught_by is not None:
            outcome = f"caught by {result.caught_by.relative_to(PGTAP)}"
            count["caught"] += 1
            if reason is not None:
                wrong.append(f"{name} is listed as equivalent, but was caught")
        elif reason is not None:
            outcome = f"equivalent: {reason}"
            count["equivalent"] += 1
        else:
            outcome = "SURVIVED"
            count["survived"] += 1
            wrong.append(f"{name} survived: {result.mutant.statement}")
        print(f"{name}: {outcome} ({result.seconds:.1f} s)", flush=True)
    gone = set(EQUIVALENT) - {str(m) for m in everything}
    wrong += [f"{name} is listed as equivalent, but there is no such mutant" for name in gone]
    print(*wrong, sep="\n")
    print(
        f"mutants: {len(chosen)}, {count['caught']} caught, {count['equivalent']} equivalent,"
        f" {count['survived']} survived"
    )
    return int(bool(wrong))


def main(arguments: list[str] | None = None) -> int:
    """Read the command line and hunt."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--list", action="store_true", help="print the mutants and try none")
    parser.add_argument("--only", metavar="PATTERN", help="a regular expression on their names")
    parser.add_argument("--jobs", type=int, default=2, help="how many at the same time")
    chosen = parser.parse_args(arguments)
    with prepared_server() as (server, template):
        return hunt(server, template, chosen.only, chosen.jobs, listing=chosen.list)


if __name__ == "__main__":
    sys.exit(main())
