"""The two servers of the tests: Debian's PostgreSQL, and the embedded 18.

``CITELEDGER_SERVER`` chooses: ``debian`` (by testing.postgresql) or ``embedded``, the default.
Neither touches a cluster that the machine already has.
"""

from __future__ import annotations

import os
import pwd
import re
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from citeledger.embedded import EmbeddedServer

DEBIAN_PROGRAMS = Path("/usr/lib/postgresql")
EMBEDDED_MAJOR = 18
DEPLOYER = "deployer"


def server_kind() -> str:
    """Return which server this run is for."""
    kind = os.environ.get("CITELEDGER_SERVER") or "embedded"
    if kind not in ("debian", "embedded"):
        msg = f"CITELEDGER_SERVER is {kind!r}; it is 'debian' or 'embedded'"
        raise RuntimeError(msg)
    return kind


def debian_major() -> int:
    """Return the newest major version that Debian's packages have put on this machine."""
    found = [
        int(p.name)
        for p in DEBIAN_PROGRAMS.glob("*")
        if p.name.isdigit() and (p / "bin" / "postgres").exists()
    ]
    if not found:
        msg = f"no PostgreSQL server below {DEBIAN_PROGRAMS}; install Debian's postgresql package"
        raise RuntimeError(msg)
    return max(found)


def expected_major() -> int:
    """Return the major version that this run believes it runs on."""
    return debian_major() if server_kind() == "debian" else EMBEDDED_MAJOR


@dataclass
class Server:
    """A running server that belongs to this test run alone."""

    kind: str
    version: str
    major: int
    bin_dir: Path
    host: str
    port: int

    def dsn(self, user: str = "postgres", dbname: str = "postgres") -> str:
        """Return the connection string for a role and a database."""
        return make_conninfo(host=self.host, port=self.port, user=user, dbname=dbname)

    @property
    def superuser_dsn(self) -> str:
        """The connection string of the superuser, for the maintenance database."""
        return self.dsn()

    def connect(
        self, user: str = "postgres", dbname: str = "postgres", **kwargs: Any
    ) -> psycopg.Connection[Any]:
        """Open a connection; the caller closes it."""
        return psycopg.connect(self.dsn(user, dbname), **kwargs)

    def environment(self, user: str = "postgres", dbname: str = "postgres") -> dict[str, str]:
        """Return the environment in which psql, sqitch and pg_prove find this server."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "SQITCH_"))}
        return kept | {
            "PATH": f"{self.bin_dir}{os.pathsep}{os.environ['PATH']}",
            "PGHOST": self.host,
            "PGPORT": str(self.port),
            "PGUSER": user,
            "PGDATABASE": dbname,
            "PGCLIENTENCODING": "UTF8",
        }

    def psql(
        self, *arguments: str, user: str = "postgres", dbname: str = "postgres", stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run this server's psql, without anybody's psqlrc, stopping at the first error."""
        return subprocess.run(
            [str(self.bin_dir / "psql"), "-X", "-v", "ON_ERROR_STOP=1", *arguments],
            check=False,
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            env=self.environment(user, dbname),
        )

    def create_database(
        self, name: str | None = None, *, owner: str = DEPLOYER, template: str | None = None
    ) -> str:
        """Create a database, owned by the deployer and perhaps a copy; return its name."""
        name = name or f"t_{secrets.token_hex(6)}"
        statement = sql.SQL("create database {} owner {} template {}").format(
            sql.Identifier(name), sql.Identifier(owner), sql.Identifier(template or "template0")
        )
        with self.connect(autocommit=True) as superuser:
            superuser.execute(statement)
        return name

    def drop_database(self, name: str) -> None:
        """Drop a database, whoever is still connected to it."""
        with self.connect(autocommit=True) as superuser:
            superuser.execute(
                sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name))
            )

    @contextmanager
    def database(self, *, owner: str = DEPLOYER, template: str | None = None) -> Iterator[str]:
        """Give a database for the length of the block."""
        name = self.create_database(owner=owner, template=template)
        try:
            yield name
        finally:
            self.drop_database(name)


class Copies:
    """Fresh copies of one database; the next is made, and the last dropped, behind the test."""

    def __init__(self, server: Server, template: str, ahead: int = 2) -> None:
        self._server = server
        self._template = template
        self._behind = ThreadPoolExecutor(max_workers=1, thread_name_prefix="copies")
        self._ready: list[Future[str]] = []
        self._ahead = ahead

    def _order(self) -> None:
        self._ready.append(
            self._behind.submit(self._server.create_database, template=self._template)
        )

    def take(self) -> str:
        """Return the name of a copy that nobody has used."""
        while len(self._ready) <= self._ahead:
            self._order()
        return self._ready.pop(0).result()

    def give_back(self, name: str) -> None:
        """Drop a copy, whoever is still connected to it."""
        self._behind.submit(self._server.drop_database, name)

    def close(self) -> None:
        """Drop the copies that nobody took."""
        for ready in self._ready:
            self.give_back(ready.result())
        self._behind.shutdown(wait=True)


def scratch() -> Path | None:
    """Return where the servers' data goes: in memory where there is room, which is far quicker.

    Creating a database writes hundreds of files, and every test creates one.
    """
    memory = Path("/dev/shm")
    if memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2**31:
        return memory
    return None


def _unprivileged() -> pwd.struct_passwd | None:
    """Return the user that a server of root runs as; None when one's own does."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def _wrapper(folder: Path, program: Path, user: pwd.struct_passwd, owned: Path) -> str:
    """Write a small program that becomes another user and then the real program.

    testing.postgresql makes its folders as whoever runs it, so they are handed over here. ``exec``
    keeps the process id, so that its signals reach the server itself.
    """
    path = folder / program.name
    path.write_text(
        "#!/bin/sh\n"
        f"chown -R {user.pw_uid}:{user.pw_gid} '{owned}'\n"
        f"exec setpriv --reuid={user.pw_uid} --regid={user.pw_gid} --clear-groups"
        f" '{program}' \"$@\"\n"
    )
    path.chmod(0o755)
    return str(path)


@contextmanager
def _debian() -> Iterator[Server]:
    from testing.postgresql import Postgresql

    major = debian_major()
    bin_dir = DEBIAN_PROGRAMS / str(major) / "bin"
    # Neither is below pytest's own folder, which only its user can enter.
    home = Path(tempfile.mkdtemp(prefix="citeledger-debian-", dir=scratch()))
    wrappers = Path(tempfile.mkdtemp(prefix="citeledger-wrappers-"))
    initdb, postgres = str(bin_dir / "initdb"), str(bin_dir / "postgres")
    user = _unprivileged()
    if user is not None:
        initdb = _wrapper(wrappers, bin_dir / "initdb", user, home)
        postgres = _wrapper(wrappers, bin_dir / "postgres", user, home)
    try:
        # It picks a free port and then takes it; should another process be quicker, once more.
        for attempt in (1, 2, 3):
            try:
                running = Postgresql(
                    base_dir=str(home),
                    initdb=initdb,
                    initdb_args="-U postgres -A trust --encoding=UTF8 --locale=C.UTF-8",
                    postgres=postgres,
                    postgres_args="-h 127.0.0.1 -F -c full_page_writes=off -c max_connections=60",
                )
                break
            except RuntimeError:
                if attempt == 3:
                    raise
        try:
            yield _server("debian", bin_dir, str(home / "tmp"), running.settings["port"])
        finally:
            running.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)
        shutil.rmtree(wrappers, ignore_errors=True)


@contextmanager
def _embedded() -> Iterator[Server]:
    with EmbeddedServer(parent=scratch()) as running:
        yield _server("embedded", running.bin_dir, str(running.directory), 5432)


def _server(kind: str, bin_dir: Path, host: str, port: int) -> Server:
    with psycopg.connect(make_conninfo(host=host, port=port, user="postgres")) as connection:
        version = connection.info.parameter_status("server_version") or ""
    found = re.match(r"\d+", version)
    major = int(found.group()) if found else 0
    if major != expected_major():
        msg = f"this run is for PostgreSQL {expected_major()}, but the server says {version!r}"
        raise RuntimeError(msg)
    return Server(kind, version, major, bin_dir, host, port)


@contextmanager
def running_server() -> Iterator[Server]:
    """Run the server that CITELEDGER_SERVER asks for."""
    with _debian() if server_kind() == "debian" else _embedded() as server:
        yield server
