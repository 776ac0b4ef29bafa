"""The HTTP door on a real server, and a client that sends whatever it is told to send."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import jwt
import uvicorn
from fastapi import FastAPI

from citeledger.http import JwtPrincipal

from .records import READ, Records

SECRET = "a secret of the tests that is long enough"
AUDIENCE = "citeledger"


def principal(**changes: Any) -> JwtPrincipal:
    """Return the verifier of the tests."""
    return JwtPrincipal(**{"key": SECRET, "algorithms": ["HS256"], "audience": AUDIENCE} | changes)


def claims(firm: UUID, /, **changes: Any) -> dict[str, Any]:
    """Return the claims of a good token; a change to ... takes the claim out."""
    whole = {
        "firm_id": str(firm),
        "permissions": list(READ),
        "aud": AUDIENCE,
        "exp": int(time.time()) + 600,
    } | changes
    return {key: value for key, value in whole.items() if value is not ...}


def token(firm: UUID, /, **changes: Any) -> str:
    """Return a good token."""
    return jwt.encode(claims(firm, **changes), SECRET, "HS256")


@dataclass(frozen=True, slots=True)
class Answer:
    """A response."""

    status: int
    headers: dict[str, str]
    """By name in lower case, without the date."""
    body: bytes

    @property
    def json(self) -> Any:
        """The body, read."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Door:
    """A running door."""

    port: int
    records: Records

    def send(
        self,
        path: str,
        body: bytes | Iterable[bytes] = b"",
        headers: dict[str, str] | None = None,
        method: str = "POST",
    ) -> Answer:
        """Send a request as it is; an iterable is sent in chunks."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            # It may have heard enough before all is sent; the answer is there all the same.
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.request(
                    method, path, body, headers or {}, encode_chunked=not isinstance(body, bytes)
                )
            response = connection.getresponse()
            answer = Answer(
                response.status,
                {k.lower(): v for k, v in response.getheaders() if k.lower() != "date"},
                response.read(),
            )
        finally:
            connection.close()
        return answer

    def cite(
        self,
        span: Any = None,
        *,
        matter: Any = None,
        bearer: str | None = None,
        raw: bytes | Iterable[bytes] | None = None,
        headers: dict[str, str] | None = None,
        **claims: Any,
    ) -> Answer:
        """Cite with a good token of the firm, and whatever differs from that."""
        records = self.records
        if raw is None:
            raw = json.dumps(records.span() if span is None else span).encode()
        good = {
            "Authorization": f"Bearer {bearer or token(records.firm_id, **claims)}",
            "Content-Type": "application/json",
        }
        chunked = {} if isinstance(raw, bytes) else {"Transfer-Encoding": "chunked"}
        sent = {k: v for k, v in (good | chunked | (headers or {})).items() if v}
        matter_id = records.matter if matter is None else matter
        return self.send(f"/app/matters/{matter_id}/context/cite", raw, sent)


@contextmanager
def running(app: FastAPI, records: Records) -> Iterator[Door]:
    """Run an application on a port of its own for the length of the block."""
    server = uvicorn.Server(
        uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical", lifespan="on")
    )
    thread = threading.Thread(target=server.run, name="door")
    thread.start()
    try:
        deadline = time.monotonic() + 15
        while not server.started:
            assert thread.is_alive(), "the door did not start"
            assert time.monotonic() < deadline, "the door did not start in time"
            time.sleep(0.005)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield Door(port, records)
    finally:
        server.should_exit = True
        thread.join(15)
        assert not thread.is_alive()
