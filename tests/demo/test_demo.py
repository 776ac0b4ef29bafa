"""The demo: what it prints, on a terminal and into a pipe, and that it leaves nothing."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from support.deploy import REPOSITORY

COMMAND = [sys.executable, "-m", "citeledger.demo"]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give a temporary folder of the test's own, which any user can reach."""
    with tempfile.TemporaryDirectory(prefix="cl-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def environment(folder: Path) -> dict[str, str]:
    """Give an environment in which the demo's temporary folder is the test's own."""
    kept = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
    return kept | {
        "PYTHONPATH": str(REPOSITORY / "python_client"),
        "TERM": "xterm-256color",
        "TMPDIR": str(folder),
    }


def nothing_left(folder: Path) -> bool:
    """Say whether the folder is empty, and no process is at work in it."""
    at_work = [
        p
        for p in psutil.process_iter(["cmdline"])
        if any(str(folder) in argument for argument in p.info["cmdline"] or [])
    ]
    return not at_work and not list(folder.iterdir())


def test_into_a_pipe(environment: dict[str, str], folder: Path) -> None:
    done = subprocess.run(COMMAND, env=environment, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    text = done.stdout
    assert "\x1b" not in text
    lines = text.splitlines()
    assert max(map(len, lines)) <= 100
    assert all(line == line.rstrip() for line in lines)
    verdicts = re.findall(r"^Verdict +\[([A-Z ]+)\]", text, flags=re.MULTILINE)
    assert verdicts == ["FIDUCIARY GRADE", "SUPPORTED ONLY", "FLAGGED"]
    assert len(re.findall(r"^Question ", text, flags=re.MULTILINE)) == 3
    assert len(re.findall(r"^Answer ", text, flags=re.MULTILINE)) == 3
    for word in ("exact_match", "tolerant_match", "paraphrase_judge", "unverified", "provenance"):
        assert word in text
    for word in ("kb_document", "caselaw", "courtlistener", "What failed", "Why"):
        assert word in text
    before, after = text.split("\nClicks -", 1)[1].split("\nScanned again ", 1)
    link = r"^ +(/matters/2026-0147/record/doc/[0-9a-f-]{36}\?page=\d&block=\d)$"
    badges = r"^ +\[(VERIFIED|NEEDS RE-VERIFICATION)\]$"
    assert re.findall(badges, before, flags=re.MULTILINE) == ["VERIFIED"]
    (first,) = re.findall(link, before, flags=re.MULTILINE)
    assert re.findall(badges, after, flags=re.MULTILINE) == ["NEEDS RE-VERIFICATION", "VERIFIED"]
    (other,) = re.findall(link, after, flags=re.MULTILINE)
    assert (first[-15:], other[-15:]) == ("?page=7&block=2", "?page=4&block=1")
    assert "quote_absent: the quoted words are not on the page" in after
    assert "There is no link." in after
    assert "Read next" in text
    assert "Nothing is left behind" in text
    assert nothing_left(folder)


def test_on_a_terminal(environment: dict[str, str]) -> None:
    try:
        main, child = pty.openpty()
    except OSError:
        pytest.skip("this machine has no terminals to give")
    with subprocess.Popen(
        COMMAND, env=environment | {"COLUMNS": "100"}, stdin=child, stdout=child, stderr=child
    ) as process:
        os.close(child)
        output = b""
        while True:
            try:
                block = os.read(main, 65536)
            except OSError:  # the other end is closed
                break
            if not block:
                break
            output += block
    os.close(main)
    assert process.returncode == 0, output.decode()
    text = output.decode()
    assert "\x1b[" in text
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)
    for badge in (
        "FIDUCIARY GRADE", "SUPPORTED ONLY", "FLAGGED", "VERIFIED", "NEEDS RE-VERIFICATION",
    ):  # fmt: skip
        assert f" {badge} " in plain
    assert max(len(line.rstrip("\r")) for line in plain.split("\n")) <= 100


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(environment: dict[str, str], folder: Path, number: signal.Signals) -> None:
    with subprocess.Popen(
        COMMAND, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        deadline = time.monotonic() + 20
        while not list(folder.glob("*/data/postmaster.pid")) and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 128 + number, errors.decode()
    assert nothing_left(folder)


def test_an_output_without_the_characters(environment: dict[str, str]) -> None:
    done = subprocess.run(
        COMMAND, env=environment | {"PYTHONIOENCODING": "ascii"}, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    assert b"FLAGGED" in done.stdout


def test_a_kept_directory_is_named(environment: dict[str, str], folder: Path) -> None:
    directory = folder / "kept"
    done = subprocess.run(
        [*COMMAND, "--directory", str(directory)],
        env=environment,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    assert f"its data is in {directory}" in done.stdout
    assert (directory / "data" / "PG_VERSION").exists()
