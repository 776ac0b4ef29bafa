"""A server of its own that is killed and started again, and must lose nothing that it promised.

All settings of durability are as PostgreSQL ships them: fsync, full pages, synchronous commits.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import psycopg
from psycopg.conninfo import make_conninfo

from citeledger.embedded import EmbeddedServer
from citeledger.schema import installation_sql
from support.server import client_programs, expected_major, server_programs

PATIENCE = 60.0
DBNAME = "soak"
LOGINS = {"soak_app": "citeledger_app", "soak_admin": "citeledger_admin"}
# A mark of each transaction, in the transaction: who asks for it afterwards knows what became of
# a commit whose answer was lost.
MARKS = """
create schema soak;
create table soak.transaction (id uuid primary key, client integer not null);
grant usage on schema soak to soak_app, soak_admin;
grant insert on soak.transaction to soak_app, soak_admin;
"""


class Server(Protocol):
    """What the soak needs of a server."""

    def dsn(self, user: str = "postgres", dbname: str = DBNAME) -> str:
        """Return a connection string."""

    def start(self) -> None:
        """Start it, also after it was killed."""

    def crash(self) -> None:
        """Shut it down immediately: no checkpoint, no goodbye."""

    def stop(self) -> None:
        """Stop it for good."""


class Embedded:
    """The embedded PostgreSQL of the package, on a directory that keeps its data."""

    def __init__(self, directory: Path) -> None:
        self._server = EmbeddedServer(directory)
        self._directory = directory

    def dsn(self, user: str = "postgres", dbname: str = DBNAME) -> str:
        """Return a connection string, also while the server is down."""
        return make_conninfo(host=str(self._directory), port=5432, user=user, dbname=dbname)

    def start(self) -> None:
        """Start it, also after it was killed."""
        self._server.__enter__()

    def crash(self) -> None:
        """Shut it down immediately: no checkpoint, no goodbye."""
        os.kill(self._server.pid, signal.SIGQUIT)
        _wait_for_end(self._server.pid)
        self._server.stop()

    def stop(self) -> None:
        """Stop it for good."""
        self._server.stop()


class Installed:
    """A PostgreSQL whose programs are somewhere on this machine."""

    def __init__(self, programs: Path, directory: Path) -> None:
        self._programs = programs
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        self._identity: dict[str, Any] = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(directory, nobody.pw_uid, nobody.pw_gid)
            self._identity = {
                "user": nobody.pw_uid,
                "group": nobody.pw_gid,
                "extra_groups": [],
            }

    def dsn(self, user: str = "postgres", dbname: str = DBNAME) -> str:
        """Return a connection string."""
        return make_conninfo(host=str(self._directory), port=5432, user=user, dbname=dbname)

    def start(self) -> None:
        """Start it, also after it was killed."""
        data = self._directory / "data"
        if not data.exists():
            subprocess.run(
                [
                    str(self._programs / "initdb"),
                    *("-D", str(data), "-U", "postgres", "-A", "trust", "--encoding=UTF8"),
                    *("--locale=C.UTF-8", "--no-sync"),
                ],
                check=True,
                capture_output=True,
                cwd=self._directory,
                **self._identity,
            )
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    str(self._programs / "postgres"),
                    *("-D", str(data), "-k", str(self._directory), "-p", "5432"),
                    *("-c", "listen_addresses=", "-c", "max_connections=60"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._directory,
                start_new_session=True,
                **self._identity,
            )

    def crash(self) -> None:
        """Shut it down immediately: no checkpoint, no goodbye."""
        self._end(signal.SIGQUIT)

    def stop(self) -> None:
        """Stop it for good."""
        self._end(signal.SIGINT)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(number)
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_for_end(pid: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        # Its parent has not waited for it yet: then it is a zombie.
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return
        if state == "Z":
            return
        time.sleep(0.01)


def connected(
    server: Server, user: str = "postgres", dbname: str = DBNAME, patience: float = PATIENCE
) -> psycopg.Connection[Any]:
    """Connect in autocommit mode, as soon as the server lets one in."""
    deadline = time.monotonic() + patience
    while True:
        try:
            return psycopg.connect(server.dsn(user, dbname), autocommit=True)
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


@contextmanager
def soaked_server(kind: str, directory: Path | None = None) -> Iterator[Server]:
    """Run a server with citeledger in a database; a given directory is kept."""
    home = directory or Path(tempfile.mkdtemp(prefix="citeledger-soak-"))
    server: Server = (
        Embedded(home) if kind == "embedded" else Installed(server_programs(kind), home)
    )
    try:
        server.start()
        _install(server, kind)
        yield server
    finally:
        server.stop()
        if directory is None:
            shutil.rmtree(home, ignore_errors=True)


def _install(server: Server, kind: str) -> None:
    with connected(server, dbname="postgres") as superuser:
        superuser.execute("create role deployer login createrole")
        superuser.execute(f"create database {DBNAME} owner deployer")
    psql = client_programs(expected_major(kind)) / "psql"
    done = subprocess.run(
        [
            str(psql),
            *("-X", "-q", "-v", "ON_ERROR_STOP=1", "-1", "-f", "-"),
            server.dsn("deployer"),
        ],
        check=False,
        input=installation_sql(),
        capture_output=True,
        encoding="utf-8",
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    with connected(server) as superuser:
        for login, role in LOGINS.items():
            superuser.execute(f"create role {login} login in role {role}")
        superuser.execute(MARKS)
        found = dict(
            superuser.execute(
                "select name, setting from pg_settings"
                " where name in ('fsync', 'full_page_writes', 'synchronous_commit')"
            ).fetchall()
        )
    assert set(found.values()) == {"on"}, f"the server is not durable: {found}"
