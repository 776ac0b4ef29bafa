#!/usr/bin/env python3
"""Make docs/reference.md from the catalogs and the comments of a deployed database.

``reference_md.py --dsn DSN`` writes the page; with ``--check`` it writes nothing and exits 1 when
the page is stale. Without ``--dsn`` a private server is made for it, which needs the package
``citeledger[demo]``. The page is the same whichever supported version of PostgreSQL it comes from.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from build_sql import planned
from psycopg.rows import namedtuple_row

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager

REPOSITORY = Path(__file__).resolve().parents[1]
TARGET = REPOSITORY / "docs" / "reference.md"

CAPABILITIES = {
    "tenancy": "Firms, matters, walls, and the context that says for whom a session acts.",
    "ledger": "Chats, turns, their sources, and one metadata entry for each source.",
    "gate": "One computed verdict for each turn, and what finalizes a turn.",
    "cite": "The documents that citations point to.",
    "graph": "References between documents.",
    "ops": "What an operator asks a database.",
}

HEAD = """\
# Reference

<!-- Made by tools/reference_md.py from what a deployed database says. Do not edit. -->

citeledger {version}. Everything in the schema `citeledger`, by capability, as the database itself
describes it. An [appendix](#appendix-citeledger_private) lists the helpers in `citeledger_private`,
which no role but the owner can call by name. How to use it all is in the [guide](guide.md), and
every error in [errors.md](errors.md).

Every object belongs to `citeledger_owner`. Where no grant is named, no other role has one.

"""

FUNCTIONS = """
select
  n.nspname as schema,
  f.proname as name,
  oidvectortypes(f.proargtypes) as types,
  pg_get_function_arguments(f.oid) as arguments,
  pg_get_function_result(f.oid) as result,
  f.prorettype = 'trigger'::regtype as is_trigger,
  case f.provolatile when 'i' then 'immutable' when 's' then 'stable' else 'volatile' end
    as volatility,
  case f.proparallel
    when 's' then 'parallel safe' when 'r' then 'parallel restricted' else 'parallel unsafe'
  end as parallel,
  case when f.prosecdef then 'security definer' else 'security invoker' end as security,
  array(
    select case when g.grantee = 0 then 'public' else pg_get_userbyid(g.grantee)::text end
    from aclexplode(coalesce(f.proacl, acldefault('f', f.proowner))) as g
    where g.grantee <> f.proowner and g.privilege_type = 'EXECUTE'
    order by 1
  ) as executors,
  obj_description(f.oid, 'pg_proc') as comment
from pg_proc as f
join pg_namespace as n on n.oid = f.pronamespace
where n.nspname in ('citeledger', 'citeledger_private')
order by n.nspname collate "C", f.proname collate "C", oidvectortypes(f.proargtypes) collate "C"
"""

TABLES = """
select
  c.oid,
  c.relname as name,
  case
    when c.relrowsecurity and c.relforcerowsecurity then 'enabled and forced'
    when c.relrowsecurity then 'enabled'
    else 'off'
  end as row_security,
  obj_description(c.oid, 'pg_class') as comment
from pg_class as c
where c.relnamespace = 'citeledger'::regnamespace and c.relkind in ('r', 'p')
order by c.relname collate "C"
"""

COLUMNS = """
select
  a.attname as name,
  format_type(a.atttypid, a.atttypmod) as type,
  a.attnotnull as not_null,
  case
    when a.attgenerated = 's' then 'generated: ' || pg_get_expr(d.adbin, d.adrelid)
    else pg_get_expr(d.adbin, d.adrelid)
  end as default,
  col_description(a.attrelid, a.attnum) as comment
from pg_attribute as a
left join pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum
where a.attrelid = %s and a.attnum > 0 and not a.attisdropped
order by a.attnum
"""

# Since PostgreSQL 18 not null is a constraint too; the column says it on every version.
CONSTRAINTS = """
select
  k.conname as name,
  pg_get_constraintdef(k.oid) as definition,
  obj_description(k.oid, 'pg_constraint') as comment
from pg_constraint as k
where k.conrelid = %s and k.contype <> 'n'
order by
  case k.contype when 'p' then 1 when 'u' then 2 when 'f' then 3 else 4 end,
  k.conname collate "C"
"""

INDEXES = """
select
  c.relname as name,
  regexp_replace(
    pg_get_indexdef(i.indexrelid), '^CREATE (UNIQUE )?INDEX .* USING ', '\\1'
  ) as definition,
  obj_description(i.indexrelid, 'pg_class') as comment
from pg_index as i
join pg_class as c on c.oid = i.indexrelid
where i.indrelid = %s
  and not exists (
    select from pg_constraint as k
    where k.conindid = i.indexrelid and k.contype in ('p', 'u', 'x')
  )
order by c.relname collate "C"
"""

POLICIES = """
select
  p.polname as name,
  concat_ws(
    ' ',
    case when p.polpermissive then 'permissive' else 'restrictive' end,
    'for',
    case p.polcmd
      when '*' then 'all' when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update'
      else 'delete'
    end,
    'using ' || pg_get_expr(p.polqual, p.polrelid),
    'with check ' || pg_get_expr(p.polwithcheck, p.polrelid)
  ) as definition,
  obj_description(p.oid, 'pg_policy') as comment
from pg_policy as p
where p.polrelid = %s
order by p.polname collate "C"
"""

TRIGGERS = """
select
  t.tgname as name,
  regexp_replace(pg_get_triggerdef(t.oid), '^CREATE TRIGGER \\S+ ', '') as definition,
  obj_description(t.oid, 'pg_trigger') as comment
from pg_trigger as t
where t.tgrelid = %s and not t.tgisinternal
order by t.tgname collate "C"
"""

GRANTS = """
select grantee, string_agg(privilege, ', ' order by privilege collate "C") as privileges
from (
  select
    case when g.grantee = 0 then 'public' else pg_get_userbyid(g.grantee)::text end as grantee,
    lower(g.privilege_type) as privilege
  from pg_class as c
  cross join lateral aclexplode(c.relacl) as g
  where c.oid = %(oid)s and g.grantee <> c.relowner
  union all
  select
    case when g.grantee = 0 then 'public' else pg_get_userbyid(g.grantee)::text end,
    format('%%s (%%s)', lower(g.privilege_type), string_agg(a.attname, ', ' order by a.attnum))
  from pg_attribute as a
  join pg_class as c on c.oid = a.attrelid
  cross join lateral aclexplode(a.attacl) as g
  where a.attrelid = %(oid)s and a.attnum > 0 and not a.attisdropped and g.grantee <> c.relowner
  group by g.grantee, g.privilege_type
) as granted
group by grantee
order by grantee collate "C"
"""

_CREATED = re.compile(
    r"^create (?:or replace )?(?P<what>table|function) (?P<name>citeledger(?:_private)?\.\w+)",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Catalog:
    """The rows of one deployed database."""

    version: str
    functions: list[Any]
    tables: list[tuple[Any, dict[str, list[Any]]]]


def changes() -> dict[tuple[str, str], str]:
    """Say which change of the plan made each table and function."""
    made: dict[tuple[str, str], str] = {}
    for change in planned((REPOSITORY / "sqitch.plan").read_text(encoding="utf-8")):
        text = (REPOSITORY / "deploy" / f"{change.script}.sql").read_text(encoding="utf-8")
        for found in _CREATED.finditer(text):
            made[found["what"], found["name"]] = change.name
    return made


def read(connection: psycopg.Connection[Any]) -> Catalog:
    """Read the catalogs."""
    with connection.transaction(), connection.cursor(row_factory=namedtuple_row) as cursor:
        # Nothing of ours on the path, so that every name is printed with its schema.
        cursor.execute("set local search_path = pg_catalog")

        def rows(query: str, parameters: Any = None) -> list[Any]:
            return cursor.execute(query, parameters).fetchall()

        version = rows("select citeledger.version()")[0][0]
        functions = rows(FUNCTIONS)
        parts = {
            "columns": COLUMNS,
            "constraints": CONSTRAINTS,
            "indexes": INDEXES,
            "policies": POLICIES,
            "triggers": TRIGGERS,
        }
        tables = [
            (
                table,
                {part: rows(query, (table.oid,)) for part, query in parts.items()}
                | {"grants": rows(GRANTS, {"oid": table.oid})},
            )
            for table in rows(TABLES)
        ]
    return Catalog(version, functions, tables)


def code(text: str) -> str:
    """Write text as code, on one line."""
    return f"`{' '.join(text.split())}`"


def cell(text: str | None) -> str:
    """Write text for a table."""
    return (text or "").replace("|", "\\|")


def named(names: Iterable[str]) -> str:
    """List roles."""
    return ", ".join(map(code, names))


def items(title: str, rows: list[Any]) -> list[str]:
    """List the parts of a table that have a name, a definition and a comment."""
    if not rows:
        return []
    return [f"{title}:\n", *(f"- `{r.name}` {code(r.definition)}: {r.comment}" for r in rows), ""]


def function_section(function: Any, change: str) -> str:
    """Describe a public function."""
    executors = named(function.executors) or "no role but the owner"
    return (
        f"#### {function.name}\n\n"
        f"```text\n{function.schema}.{function.name}({function.arguments})\n"
        f"returns {function.result}\n```\n\n"
        f"{function.comment}\n\n"
        f"{function.volatility}, {function.parallel}, {function.security}. "
        f"Executable by {executors}. Change `{change}`.\n"
    )


def table_section(table: Any, parts: dict[str, list[Any]], change: str) -> str:
    """Describe a table."""
    lines = [
        f"#### {table.name}\n",
        f"{table.comment}\n",
        f"Row security {table.row_security}. Change `{change}`.\n",
        "| column | type | null | default | meaning |",
        "|---|---|---|---|---|",
        *(
            f"| `{c.name}` | {cell(c.type)} | {'no' if c.not_null else 'yes'} "
            f"| {code(cell(c.default)) if c.default else ''} | {cell(c.comment)} |"
            for c in parts["columns"]
        ),
        "",
        *items("Constraints", parts["constraints"]),
        *items("Indexes", parts["indexes"]),
        *items("Policies", parts["policies"]),
        *items("Triggers", parts["triggers"]),
    ]
    if parts["grants"]:
        lines += ["Grants:\n", *(f"- `{g.grantee}`: {g.privileges}" for g in parts["grants"]), ""]
    return "\n".join(lines)


def first_sentence(text: str | None) -> str:
    """Return the first sentence, in one line."""
    return re.split(r"(?<=[.])\s", " ".join((text or "").split()), maxsplit=1)[0]


def render(catalog: Catalog) -> str:
    """Write the page."""
    made = changes()
    functions: dict[str, list[str]] = defaultdict(list)
    private = []
    for function in catalog.functions:
        change = made["function", f"{function.schema}.{function.name}"]
        if function.schema == "citeledger":
            functions[change.split("/")[0]].append(function_section(function, change))
        else:
            arguments = "" if function.is_trigger else function.types
            private.append(
                f"- `{function.name}({arguments})`, `{change}`: {first_sentence(function.comment)}"
            )
    tables: dict[str, list[str]] = defaultdict(list)
    for table, parts in catalog.tables:
        change = made["table", f"citeledger.{table.name}"]
        tables[change.split("/")[0]].append(table_section(table, parts, change))

    unknown = (functions.keys() | tables.keys()) - CAPABILITIES.keys()
    if unknown:
        raise SystemExit(f"no title for the capabilities {', '.join(sorted(unknown))}")
    present = [c for c in CAPABILITIES if functions[c] or tables[c]]
    page = [HEAD.format(version=catalog.version)]
    page += [f"- [{c}](#{c}): {CAPABILITIES[c]}\n" for c in present]
    for capability in present:
        page.append(f"\n## {capability}\n\n{CAPABILITIES[capability]}\n")
        if functions[capability]:
            page.append(f"\n### Functions of {capability}\n\n" + "\n".join(functions[capability]))
        if tables[capability]:
            page.append(f"\n### Tables of {capability}\n\n" + "\n".join(tables[capability]))
    page.append(
        "\n## Appendix: citeledger_private\n\nHelpers and trigger functions: not for callers, and "
        "free to change.\n\n" + "\n".join(private) + "\n"
    )
    return re.sub(r"\n{3,}", "\n\n", "".join(page))


def server(dsn: str | None) -> AbstractContextManager[Any]:
    """Give something whose ``deployer_dsn`` leads to a deployed database."""
    if dsn is not None:
        return nullcontext(argparse.Namespace(deployer_dsn=dsn))
    sys.path.insert(0, str(REPOSITORY / "python_client"))
    from citeledger.embedded import installed

    return installed()


def main() -> int:
    """Write the page, or say whether it is stale."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dsn", help="a database with citeledger; a private one when left out")
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 when stale")
    options = parser.parse_args()
    with server(options.dsn) as place, psycopg.connect(place.deployer_dsn) as connection:
        text = render(read(connection))
    if not options.check:
        TARGET.write_text(text, encoding="utf-8")
    elif not TARGET.is_file() or TARGET.read_text(encoding="utf-8") != text:
        name = TARGET.relative_to(REPOSITORY)
        print(f"{name} is stale; run tools/reference_md.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
