"""The size of a body: counted as it comes, whatever its header says, and never kept."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from citeledger.http import create_app
from support.deploy import REPOSITORY
from support.door import AUDIENCE, SECRET, Door, principal, running, token
from support.records import Records

LIMIT = 65_536


def padded(records: Records, size: int) -> bytes:
    """Write a good span with white space up to a size."""
    body = json.dumps(records.span()).encode()
    return body + b" " * (size - len(body))


def test_up_to_the_limit(door: Door, records: Records) -> None:
    assert door.cite(raw=padded(records, LIMIT)).status == 200
    assert door.cite(raw=padded(records, LIMIT + 1)).status == 413
    body = padded(records, LIMIT)
    assert door.cite(raw=[body[i : i + 1000] for i in range(0, LIMIT, 1000)]).status == 200
    answer = door.cite(raw=[body, b" "])
    assert answer.status == 413
    assert answer.headers["content-type"] == "application/problem+json"


def test_another_limit(dsn: str, records: Records) -> None:
    app = create_app(dsn, principal=principal(), max_body_bytes=1000)
    with running(app, records) as door:
        assert door.cite(raw=padded(records, 1000)).status == 200
        assert door.cite(raw=padded(records, 1001)).status == 413


def raw_request(door: Door, records: Records, head: str, body: bytes, *, end: bool = True) -> bytes:
    """Send bytes, perhaps end the sending side, and return what comes back."""
    with socket.create_connection(("127.0.0.1", door.port), timeout=10) as wire:
        wire.sendall(
            f"POST /app/matters/{records.matter}/context/cite HTTP/1.1\r\nHost: door\r\n"
            f"Authorization: Bearer {token(records.firm_id)}\r\n"
            f"Content-Type: application/json\r\n{head}\r\n\r\n".encode()
            + body
        )
        if end:
            wire.shutdown(socket.SHUT_WR)
        found = b""
        try:
            while part := wire.recv(65_536):
                found += part
                if not end:
                    break
        except ConnectionResetError:
            pass
        return found


def test_a_length_that_lies(door: Door, records: Records) -> None:
    body = json.dumps(records.span()).encode()
    # Too long, announced alone: refused without waiting for it.
    assert b" 413 " in raw_request(door, records, "Content-Length: 99999999999", b"", end=False)
    # Shorter than announced: no answer or a refusal, and nothing is cited.
    short = raw_request(door, records, f"Content-Length: {len(body) + 5}", body)
    assert b" 200 " not in short
    # Longer than announced: what is beyond is no part of the body.
    cut = raw_request(door, records, f"Content-Length: {len(body) - 5}", body, end=False)
    assert cut.startswith(b"HTTP/1.1 422 ")
    # Both ways at once, and lengths that are none.
    for head in (
        f"Content-Length: {len(body)}\r\nContent-Length: 5",
        "Content-Length: -1",
        "Content-Length: 0x10",
        "Content-Length: 5, 6",
    ):
        assert b" 200 " not in raw_request(door, records, head, body)
    assert door.cite().status == 200


def test_a_large_quote(door: Door, records: Records) -> None:
    assert door.cite(records.span(quote="x" * 5_000_000)).status == 413


SERVE = """
import sys, uvicorn
from citeledger.http import JwtPrincipal, create_app
dsn, secret, audience, port = sys.argv[1:]
principal = JwtPrincipal(secret, algorithms=["HS256"], audience=audience)
uvicorn.run(create_app(dsn, principal=principal), port=int(port), log_level="critical")
"""


@pytest.fixture
def process(dsn: str, records: Records) -> Iterator[tuple[Door, psutil.Process]]:
    """Run the door in a process of its own, so that its memory can be measured."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "python_client")}
    with subprocess.Popen(
        [sys.executable, "-c", SERVE, dsn, SECRET, AUDIENCE, str(port)], env=environment
    ) as started:
        try:
            door = Door(port, records)
            deadline = time.monotonic() + 30
            while True:
                try:
                    assert door.cite().status == 200
                    break
                except ConnectionRefusedError:
                    assert started.poll() is None
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
            yield door, psutil.Process(started.pid)
        finally:
            started.terminate()


def test_memory_stays_flat(process: tuple[Door, psutil.Process]) -> None:
    door, measured = process
    megabyte = b" " * 1_000_000

    def peak() -> int:
        status = Path(f"/proc/{measured.pid}/status").read_text(encoding="ascii")
        (line,) = (part for part in status.splitlines() if part.startswith("VmHWM"))
        return int(line.split()[1]) * 1024

    assert door.cite(raw=[megabyte]).status == 413
    before = peak()
    for _ in range(3):
        answer = door.cite(raw=(megabyte for _ in range(10)))
        assert answer.status == 413
    assert peak() - before < 2_000_000
    assert door.cite().status == 200
