"""Fixtures of every test: the server, a deployed database, and connections by role."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from support.deploy import deploy_with_sqitch
from support.pgtap import TAP_SCHEMA, TESTER, install_pgtap
from support.races import Race, race
from support.server import DEPLOYER, Copies, Server, expected_major, running_server, server_kind
from support.shares import is_left_to_others, left_to_others
from support.world import World

# Logins of the tests, and the roles of the package that each has.
LOGINS = {
    "t_app": ("citeledger_app",),
    "t_reader": ("citeledger_reader",),
    "t_admin": ("citeledger_admin",),
    "t_none": (),
    TESTER: ("citeledger_app", "citeledger_admin", "citeledger_reader"),
}


def pytest_report_header() -> str:
    """Say in the header which server the run is for."""
    return f"citeledger: {server_kind()} server, PostgreSQL {expected_major()}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say at the end what a run at the same time does for this one."""
    if left := left_to_others(server_kind()):
        terminalreporter.write_line(f"Left to the run beside this one: {', '.join(left)}")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out the folders that a run at the same time has."""
    return is_left_to_others(collection_path, server_kind()) or None


@dataclass(frozen=True, slots=True)
class Database:
    """One database of the test server."""

    server: Server
    name: str

    def dsn(self, user: str = "postgres") -> str:
        """Return the connection string for a role."""
        return self.server.dsn(user, self.name)

    def connect(self, user: str = "postgres", **kwargs: Any) -> psycopg.Connection[Any]:
        """Open a connection; the caller closes it."""
        return self.server.connect(user, self.name, **kwargs)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """Run the server that CITELEDGER_SERVER asks for, with the logins of the tests."""
    with running_server() as running:
        with running.connect(autocommit=True) as superuser:
            superuser.execute(f"create role {DEPLOYER} login nosuperuser createrole nobypassrls")
            for login in LOGINS:
                superuser.execute(
                    sql.SQL("create role {} login nosuperuser nobypassrls nocreaterole").format(
                        sql.Identifier(login)
                    )
                )
            superuser.execute(f"alter role {TESTER} set search_path = {TAP_SCHEMA}")
        yield running


@pytest.fixture(scope="session")
def deployed(server: Server) -> Iterator[Database]:
    """Give the database that Sqitch deployed, with pgTAP; a template, so not to be written to."""
    with server.database() as name:
        deploy_with_sqitch(server, name)
        with server.connect(autocommit=True) as superuser:
            for login, roles in LOGINS.items():
                for role in roles:
                    superuser.execute(f"grant {role} to {login}")
        with server.connect(dbname=name, autocommit=True) as superuser:
            install_pgtap(superuser)
        yield Database(server, name)


@pytest.fixture(scope="session")
def copies(deployed: Database) -> Iterator[Copies]:
    """Keep fresh copies of the deployed database at hand."""
    ready = Copies(deployed.server, deployed.name)
    try:
        yield ready
    finally:
        ready.close()


@pytest.fixture
def db(deployed: Database, copies: Copies) -> Iterator[Database]:
    """Give a fresh copy of the deployed database for one test."""
    name = copies.take()
    try:
        yield Database(deployed.server, name)
    finally:
        copies.give_back(name)


@pytest.fixture(scope="session")
def tap_db(deployed: Database) -> Iterator[Database]:
    """Give one copy for all pgTAP files, which roll back what they do."""
    with deployed.server.database(template=deployed.name) as name:
        with deployed.server.connect(autocommit=True) as superuser:
            superuser.execute(
                sql.SQL("alter role {} in database {} set search_path = {}").format(
                    *map(sql.Identifier, (DEPLOYER, name, TAP_SCHEMA))
                )
            )
        yield Database(deployed.server, name)


def _connection(db: Database, user: str) -> Iterator[psycopg.Connection[Any]]:
    connection = db.connect(user)
    try:
        yield connection
    finally:
        connection.close()


@pytest.fixture
def su(db: Database) -> Iterator[psycopg.Connection[Any]]:
    """Connect as the superuser, in autocommit mode: what it does is there at once."""
    connection = db.connect(autocommit=True)
    try:
        yield connection
    finally:
        connection.close()


@pytest.fixture
def app(db: Database) -> Iterator[psycopg.Connection[Any]]:
    """Connect as a login that has citeledger_app."""
    yield from _connection(db, "t_app")


@pytest.fixture
def reader(db: Database) -> Iterator[psycopg.Connection[Any]]:
    """Connect as a login that has citeledger_reader."""
    yield from _connection(db, "t_reader")


@pytest.fixture
def admin(db: Database) -> Iterator[psycopg.Connection[Any]]:
    """Connect as a login that has citeledger_admin."""
    yield from _connection(db, "t_admin")


@pytest.fixture
def stranger(db: Database) -> Iterator[psycopg.Connection[Any]]:
    """Connect as a login that has no role of the package."""
    yield from _connection(db, "t_none")


@pytest.fixture
def world(su: psycopg.Connection[Any]) -> World:
    """Make a firm, as the superuser."""
    return World.make(su)


@pytest.fixture
def racing(db: Database) -> Iterator[Race]:
    """Give sessions to race on the test's database."""
    with race(db.connect) as running:
        yield running
