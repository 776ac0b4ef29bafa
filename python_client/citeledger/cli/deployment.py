"""Looks at what is installed in a database and by whom, and installs what the package bundles."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, LiteralString, cast

from psycopg import sql

from citeledger.schema import installation_sql

from .exits import CommandError, Exit

if TYPE_CHECKING:
    import psycopg

_CHECKOUT: Final = Path(__file__).resolve().parents[3] / "sql"
_HEADER: Final = re.compile(r"-- citeledger (\d+\.\d+\.\d+):")
_UPGRADE: Final = re.compile(r"upgrade--(\d+\.\d+\.\d+)--(\d+\.\d+\.\d+)\.sql")
_OLDEST: Final = 150000
# Sqitch's registry, by its tables: its schema may have any name.
_REGISTRIES: Final[LiteralString] = """
  select n.nspname, pg_catalog.has_schema_privilege(n.oid, 'usage')
    and pg_catalog.has_table_privilege(p.oid, 'select')
  from pg_catalog.pg_namespace as n
  join pg_catalog.pg_class as p on p.relnamespace = n.oid and p.relname = 'projects'
  where (
      select pg_catalog.count(*)
      from pg_catalog.pg_class as c
      where c.relnamespace = n.oid and c.relname in ('changes', 'dependencies', 'events', 'tags')
    ) = 4
  order by n.nspname
"""

Manager = Literal["sqitch", "single file", "unknown"]


@dataclass(frozen=True, slots=True)
class Installation:
    """What a database has."""

    server_version: str
    server_version_num: int
    schema: bool
    """Whether there is a schema citeledger."""
    version: str | None
    """The version that it gives; None when it gives none."""
    managed_by: Manager | None
    """Who installed it, or, without a schema, whose the database is; None when nobody's."""


def inspect(connection: psycopg.Connection[Any]) -> Installation:
    """Look, and change nothing."""
    row = connection.execute(
        "select pg_catalog.current_setting('server_version'),"
        " pg_catalog.current_setting('server_version_num')::integer,"
        " pg_catalog.to_regnamespace('citeledger') is not null"
    ).fetchone()
    version, number, schema = cast("tuple[str, int, bool]", row)
    manager = _sqitch(connection)
    if manager is None and schema:
        manager = "single file"
    return Installation(version, number, schema, _version(connection) if schema else None, manager)


def _sqitch(connection: psycopg.Connection[Any]) -> Manager | None:
    """Say whether a registry of Sqitch has citeledger, as far as this role may look."""
    for name, readable in connection.execute(_REGISTRIES).fetchall():
        if not readable:
            return "unknown"
        query = sql.SQL("select exists (select from {}.projects where project = 'citeledger')")
        row = connection.execute(query.format(sql.Identifier(name))).fetchone()
        if row is not None and row[0]:
            return "sqitch"
    return None


def _version(connection: psycopg.Connection[Any]) -> str | None:
    row = connection.execute(
        "select pg_catalog.to_regprocedure('citeledger.version()') is not null"
    ).fetchone()
    if row is None or not row[0]:
        return None
    row = connection.execute("select citeledger.version()").fetchone()
    return None if row is None else str(row[0])


def bundled_version() -> str:
    """Return the version of the schema that the package carries."""
    found = _HEADER.match(installation_sql())
    if found is None:
        msg = "citeledger.sql does not say which version it is"
        raise ValueError(msg)
    return found[1]


def install(connection: psycopg.Connection[Any]) -> None:
    """Run the bundled file in the transaction of the connection."""
    connection.execute(installation_sql())


def upgrade_scripts() -> dict[tuple[str, str], str]:
    """Return the upgrade scripts that the package carries, by the versions from and to."""
    bundled = files("citeledger").joinpath("sql")
    place = bundled if bundled.is_dir() else _CHECKOUT
    return {
        (name[1], name[2]): file.read_text(encoding="utf-8")
        for file in place.iterdir()
        if (name := _UPGRADE.fullmatch(file.name)) is not None
    }


def upgrade_path(old: str, new: str, known: dict[tuple[str, str], str]) -> list[tuple[str, str]]:
    """Return the fewest steps from one version to another; none when there is no way."""
    paths: dict[str, list[tuple[str, str]]] = {old: []}
    waiting = [old]
    while waiting and new not in paths:
        here = waiting.pop(0)
        for step in sorted(known):
            if step[0] == here and step[1] not in paths:
                paths[step[1]] = [*paths[here], step]
                waiting.append(step[1])
    return paths.get(new, [])


def upgrade(connection: psycopg.Connection[Any], old: str, new: str) -> list[tuple[str, str]]:
    """Run the scripts from one version to another, each part in a transaction of its own.

    One that failed may be run again: the parts that were done do no harm.
    """
    known = upgrade_scripts()
    steps = upgrade_path(old, new, known)
    if not steps:
        msg = f"there is no upgrade from {old} to {new} in this release"
        raise CommandError(
            msg,
            code=Exit.REFUSED,
            hint="Install the release of the client that has one, or use Sqitch.",
        )
    for step in steps:
        connection.execute(known[step])
    return steps


def require_server(installation: Installation) -> None:
    """Refuse a server that is too old, before anything is tried."""
    if installation.server_version_num < _OLDEST:
        msg = f"the server is PostgreSQL {installation.server_version}, which is too old"
        raise CommandError(
            msg,
            code=Exit.REFUSED,
            hint="citeledger runs on PostgreSQL 15 to 18.",
        )
