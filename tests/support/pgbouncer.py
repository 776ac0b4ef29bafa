"""A real PgBouncer in transaction mode, in front of one database of the test server."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from .server import Server

# Debian has it where the path of an ordinary user does not lead.
PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
ABSENT = "there is no pgbouncer; install Debian's package of that name"

_PORT = 6432


@dataclass(frozen=True, slots=True)
class Bouncer:
    """A running PgBouncer."""

    folder: Path
    dbname: str

    def dsn(self, user: str = "t_app") -> str:
        """Return the connection string for a role."""
        return make_conninfo(host=str(self.folder), port=_PORT, user=user, dbname=self.dbname)


def _settings(server: Server, dbname: str, folder: Path, pool_size: int) -> str:
    assert PROGRAM is not None
    said = subprocess.run([PROGRAM, "--version"], check=True, capture_output=True, encoding="utf-8")
    found = re.search(r"(\d+)\.(\d+)", said.stdout)
    assert found is not None
    lines = [
        "[databases]",
        f"{dbname} = host={server.host} port={server.port} dbname={dbname}",
        "[pgbouncer]",
        "listen_addr =",
        f"listen_port = {_PORT}",
        f"unix_socket_dir = {folder}",
        "auth_type = trust",
        f"auth_file = {folder}/users.txt",
        f"logfile = {folder}/log",
        "pool_mode = transaction",
        f"default_pool_size = {pool_size}",
        "server_round_robin = 1",
    ]
    if tuple(map(int, found.groups())) >= (1, 21):
        # Later ones can track prepared statements; the hard case is the one that does not.
        lines.append("max_prepared_statements = 0")
    return "\n".join(lines) + "\n"


@contextmanager
def bouncer(
    server: Server, dbname: str, *, pool_size: int = 1, user: str = "t_app"
) -> Iterator[Bouncer]:
    """Run PgBouncer with so many connections to the server; it refuses to run as root."""
    assert PROGRAM is not None
    folder = Path(tempfile.mkdtemp(prefix="citeledger-bouncer-"))
    command = [PROGRAM, "-q", str(folder / "ini")]
    try:
        (folder / "ini").write_text(_settings(server, dbname, folder, pool_size))
        (folder / "users.txt").write_text(f'"{user}" ""\n')
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            for path in (folder, *folder.iterdir()):
                os.chown(path, nobody.pw_uid, nobody.pw_gid)
            become = f"--reuid={nobody.pw_uid} --regid={nobody.pw_gid} --clear-groups"
            command = ["setpriv", *become.split(), *command]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            running = Bouncer(folder, dbname)
            _wait(running, process, user)
            yield running
        finally:
            process.terminate()
            process.wait(15)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait(running: Bouncer, process: subprocess.Popen[bytes], user: str) -> None:
    deadline = time.monotonic() + 15
    while not _answers(running.dsn(user)):
        log = running.folder / "log"
        said = log.read_text() if log.exists() else "it wrote no log"
        assert process.poll() is None, said
        assert time.monotonic() < deadline, said
        time.sleep(0.02)


def _answers(dsn: str) -> bool:
    try:
        psycopg.connect(dsn, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True
