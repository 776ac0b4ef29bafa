"""The run is on the server that it says it is on, and on no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.server import FETCHED, KINDS, Server, expected_major, server_kind, server_programs


def test_it_is_the_version_that_this_run_believes_it_is(server: Server) -> None:
    kind = server_kind()
    with server.connect() as connection:
        row = connection.execute(
            "select current_setting('server_version_num')::integer / 10000,"
            " version(), current_setting('data_directory')"
        ).fetchone()
    assert row is not None
    major, text, data = row
    assert server.kind == kind
    assert major == server.major == expected_major()
    assert re.match(rf"PostgreSQL {major}[. ]", text)
    # Of a kind with its version in its name there is no doubt which that is.
    assert FETCHED.get(kind, major) == major
    assert "citeledger-" in data, "it is somebody else's server"


def test_its_programs_are_of_a_version_that_can_read_it(server: Server) -> None:
    for name in ("psql", "pg_dump", "pg_restore", "pg_dumpall"):
        done = server.program(name, "--version")
        assert done.returncode == 0, done.stderr
        found = re.search(r"\(PostgreSQL\) (\d+)", done.stdout)
        assert found is not None
        assert int(found[1]) >= server.major
        assert server.has_own_programs == (int(found[1]) == server.major)


@pytest.mark.parametrize("kind", ["", "pg14", "postgres"])
def test_another_kind_is_refused(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setenv("CITELEDGER_SERVER", kind)
    if not kind:
        assert server_kind() == "embedded"
    else:
        with pytest.raises(RuntimeError, match=f"it is one of {', '.join(KINDS)}"):
            server_kind()


def test_a_server_that_was_not_fetched_says_how_to(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CITELEDGER_SERVERS", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"run tools/servers\.py pg16"):
        server_programs("pg16")
