"""``citeledger serve``: it starts, says where it is, and leaves nothing behind."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from citeledger.cli.app import run
from support.door import AUDIENCE, SECRET, token

if TYPE_CHECKING:
    from conftest import Database
    from reader.library import Library

COMMAND = [sys.executable, "-m", "citeledger.cli", "serve", "--port", "0"]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give a temporary folder of the test's own, which any user can reach."""
    with tempfile.TemporaryDirectory(prefix="cl-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def environment(**changes: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | changes


def address(process: subprocess.Popen[str]) -> tuple[str, int]:
    """Wait until it says where it is."""
    assert process.stdout is not None
    for line in process.stdout:
        found = re.search(r"Reading room: http://([\d.]+):(\d+)/", line)
        if found:
            return found[1], int(found[2])
    raise AssertionError("it said nothing")


def ask(
    place: tuple[str, int], method: str, path: str, body: str = "", **headers: str
) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(*place, timeout=30)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        response.read()
    finally:
        connection.close()
    return response


def test_the_demo(folder: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "--demo"],
        env=environment(TMPDIR=str(folder)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        try:
            place = address(process)
            kind = {"Content-Type": "application/x-www-form-urlencoded"}
            begun = ask(place, "POST", "/sign-in", urlencode({"person": "ada"}), **kind)
            cookie = (begun.getheader("Set-Cookie") or "").partition(";")[0]
            start = ask(place, "GET", "/", Cookie=cookie)
            assert (place[0], begun.status, start.status) == ("127.0.0.1", 303, 200)
        finally:
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, "")
    assert list(folder.iterdir()) == []


def test_a_database_of_ones_own(shelf: Database, library: Library, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text(SECRET + "\n")
    with subprocess.Popen(
        [
            *COMMAND,
            f"--jwt-key={key}",
            "--jwt-algorithm=HS256",
            f"--jwt-audience={AUDIENCE}",
            "--cookie=session",
        ],
        env=environment(DATABASE_URL=shelf.dsn("t_app")),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        try:
            place = address(process)
            path = f"/chats/{library.chat}"
            good = ask(place, "GET", path, Cookie=f"session={token(library.firm_id)}")
            none = ask(place, "GET", path)
            assert (good.status, none.status) == (200, 401)
        finally:
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, "")


def test_what_is_wrong_is_told_of_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = tmp_path / "key"
    key.write_text("too short")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for arguments, words in (
            ([], "--jwt-key"),
            (["--demo", "--jwt-key", str(key)], "--demo"),
            (["--jwt-key", str(tmp_path / "none")], "cannot be read"),
            (["--jwt-key", str(key)], "do not go together"),
            (["--jwt-key", str(key), "--jwt-algorithm", "HS256"], "32 random bytes"),
            (["--jwt-key", str(key), "--jwt-algorithm", "none"], "algorithms"),
            (["--demo", "--port", port], "cannot listen"),
            (["--demo", "--host", "no.such.host.invalid"], "no address"),
        ):
            chosen = arguments if "--port" in arguments else ["--port", "0", *arguments]
            assert run(["serve", *chosen]) == 2, arguments
            error = capsys.readouterr().err
            assert words in error, (arguments, error)
            assert len(error.splitlines()) == 1
            assert "too short" not in error
