"""The server of a run: an embedded PostgreSQL 18 of its own that keeps what it commits.

Every database of the run is a copy of one into which citeledger was installed as anybody would,
and all of them are on the same server, so that what is compared meets the same memory and the
same disk.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias
from uuid import UUID

import psycopg
from psycopg import sql

from citeledger.embedded import EmbeddedServer
from citeledger.schema import installation_sql

Connection: TypeAlias = psycopg.Connection[Any]

APP: Final = "bench_app"
ADMIN: Final = "bench_admin"
FLOOR: Final = "bench_floor"
DEPLOYER: Final = "deployer"
_TEMPLATE: Final = "installed"

# Durability is as PostgreSQL ships it: fsync, synchronous_commit and full_page_writes are on. The
# rest keeps a checkpoint from falling into one side of a comparison only.
SETTINGS: Final = {
    "shared_buffers": "1GB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "30min",
    "maintenance_work_mem": "256MB",
}
STATED: Final = (
    "server_version", "fsync", "synchronous_commit", "full_page_writes", "autovacuum", "jit",
    "work_mem", *SETTINGS,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bench:
    """A running server, from which databases with citeledger in them can be had."""

    server: EmbeddedServer

    def dsn(self, user: str, dbname: str) -> str:
        """Return the connection string for a role and a database."""
        return self.server.dsn(user, dbname)

    def connect(self, user: str, dbname: str, *, autocommit: bool = False) -> Connection:
        """Open a connection; the caller closes it."""
        return psycopg.connect(self.dsn(user, dbname), autocommit=autocommit)

    def superuser(self, dbname: str = "postgres") -> Connection:
        """Open a superuser's connection in autocommit mode, for loading and for looking."""
        return self.connect("postgres", dbname, autocommit=True)

    def create(self, name: str, template: str = _TEMPLATE) -> str:
        """Make a database as a copy of another; return its name."""
        with self.superuser() as connection:
            connection.execute(
                sql.SQL("create database {} template {} strategy file_copy").format(
                    sql.Identifier(name), sql.Identifier(template)
                )
            )
        return name

    def drop(self, name: str) -> None:
        """Drop a database."""
        with self.superuser() as connection:
            connection.execute(sql.SQL("drop database {} (force)").format(sql.Identifier(name)))

    def stated(self) -> dict[str, str]:
        """Return the settings under which the run's figures hold."""
        with self.superuser() as connection:
            rows = connection.execute(
                "select s.name, pg_catalog.current_setting(s.name)"
                " from pg_catalog.pg_settings as s where s.name = any(%s) order by s.name",
                (list(STATED),),
            ).fetchall()
        return dict(rows)


@contextmanager
def running(parent: Path | None = None) -> Iterator[Bench]:
    """Run the server for the length of the block; what it wrote is deleted at the end."""
    directory = Path(tempfile.mkdtemp(prefix="citeledger-bench-", dir=parent))
    try:
        with EmbeddedServer(directory) as server:
            _configure(server)
        # Some settings are taken at the start only.
        with EmbeddedServer(directory) as server:
            bench = Bench(server)
            _install(bench)
            yield bench
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _configure(server: EmbeddedServer) -> None:
    with psycopg.connect(server.dsn(), autocommit=True) as superuser:
        for name, value in SETTINGS.items():
            superuser.execute(
                sql.SQL("alter system set {} = {}").format(sql.Identifier(name), sql.Literal(value))
            )
        superuser.execute(f"create role {DEPLOYER} login createrole")
        superuser.execute(f"create database {_TEMPLATE} owner {DEPLOYER}")


def _install(bench: Bench) -> None:
    with bench.connect(DEPLOYER, _TEMPLATE) as deployer:
        deployer.execute(installation_sql())
    with bench.superuser(_TEMPLATE) as superuser:
        superuser.execute(f"create role {APP} login in role citeledger_app")
        superuser.execute(f"create role {ADMIN} login in role citeledger_admin")
        # Whoever writes by hand passes row security and may write to every table.
        superuser.execute(f"create role {FLOOR} login bypassrls")
        superuser.execute(f"grant usage on schema citeledger, citeledger_private to {FLOOR}")
        superuser.execute(
            f"grant select, insert, update, delete on all tables in schema citeledger to {FLOOR}"
        )
        # Defaults and generated columns call these as the inserting role.
        superuser.execute(f"grant execute on all functions in schema citeledger to {FLOOR}")


def set_context(connection: Connection, firm_id: UUID) -> None:
    """Act for a firm in the connection's transaction, allowed to read its matters."""
    connection.execute(
        "select citeledger.set_context(%s::uuid, null, '{matters:read}')", (firm_id,)
    )
