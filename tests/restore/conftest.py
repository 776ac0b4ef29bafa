"""A filled database whose schema came by Sqitch, and the roles that copy it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import sql

from support.filled import contents, fill
from support.server import DEPLOYER, Server, running_server

if TYPE_CHECKING:
    from conftest import Database

BACKUP = "citeledger_backup"


@dataclass(frozen=True, slots=True)
class Original:
    """The database to copy, and every row of it."""

    server: Server
    dbname: str
    rows: dict[str, list[str]]


def run(server: Server, statement: str, dbname: str = "postgres") -> None:
    """Run one statement as the superuser."""
    with server.connect(dbname=dbname, autocommit=True) as superuser:
        superuser.execute(statement)


@pytest.fixture(scope="session")
def original(deployed: Database) -> Iterator[Original]:
    """Give a database with a row in every table, and Sqitch's record, and nothing else."""
    server = deployed.server
    with server.database(template=deployed.name) as dbname:
        run(server, "drop schema tap cascade", dbname)
        with server.connect(dbname=dbname, autocommit=True) as superuser:
            fill(superuser)
        yield Original(server, dbname, contents(server.dsn(dbname=dbname)))


@pytest.fixture
def backup(server: Server) -> Iterator[str]:
    """Give the role of the operations guide that may dump."""
    run(server, f"create role {BACKUP} login bypassrls")
    try:
        run(server, f"grant pg_read_all_data to {BACKUP}")
        yield BACKUP
    finally:
        run(server, f"drop role {BACKUP}")


@pytest.fixture(scope="session")
def another_server() -> Iterator[Server]:
    """Run another cluster, of the newest version."""
    with running_server("embedded") as running:
        run(running, f"create role {DEPLOYER} login nosuperuser createrole nobypassrls")
        yield running


@pytest.fixture
def newest(another_server: Server) -> Iterator[Server]:
    """Give the other cluster, and take the roles away that a test brought there."""
    yield another_server
    with another_server.connect(autocommit=True) as superuser:
        ours = superuser.execute(
            "select rolname from pg_roles"
            " where rolname <> all (array['postgres', 'deployer']) and rolname !~ '^pg_'"
        ).fetchall()
        for (role,) in ours:
            superuser.execute(sql.SQL("drop role {}").format(sql.Identifier(role)))


def settings_free(dsn: str) -> psycopg.Connection[tuple[object, ...]]:
    """Connect with an empty search_path, as dumps and maintenance do."""
    return psycopg.connect(dsn, options="-c search_path=", autocommit=True)
