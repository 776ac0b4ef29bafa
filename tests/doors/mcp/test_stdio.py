"""The door as a process: the SDK's client over stdio, and messages that no client should send."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any
from uuid import uuid4

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult

from citeledger import InvalidArgument
from citeledger.mcp.lines import LONGEST_LINE
from citeledger.mcp.principal import configuration
from support.deploy import REPOSITORY
from support.records import PERSON

if TYPE_CHECKING:
    from .conftest import Corpus

MODULE = ("-m", "citeledger.mcp")
ID = "00000000-0000-4000-8000-0000000000d1"


def environment(dsn: str, corpus: Corpus, **changes: str) -> dict[str, str]:
    return {
        "PYTHONPATH": str(REPOSITORY / "python_client"),
        "CITELEDGER_DSN": dsn,
        "CITELEDGER_FIRM_ID": str(corpus.firm_id),
    } | changes


def call(
    environment: dict[str, str], name: str, arguments: dict[str, Any], *options: str
) -> CallToolResult:
    parameters = StdioServerParameters(
        command=sys.executable, args=[*MODULE, *options], env=environment
    )

    async def run() -> CallToolResult:
        async with Client(parameters, read_timeout_seconds=30) as client:
            return await client.call_tool(name, arguments)

    return anyio.run(run)


def test_the_sdks_client_over_stdio(dsn: str, corpus: Corpus) -> None:
    result = call(
        environment(dsn, corpus), "walk_citations", {"document_ids": [str(corpus.citing)]}
    )
    assert not result.is_error
    assert result.structured_content == {
        "documents": [
            {"document_id": str(corpus.citing), "hop": 0},
            {"document_id": str(corpus.cited), "hop": 1},
        ]
    }


def test_the_principal_is_the_environments(dsn: str, corpus: Corpus) -> None:
    asked = {"document_id": str(corpus.walled)}
    plain = environment(dsn, corpus)
    assert call(plain, "get_citations", asked).is_error
    assert not call(plain, "get_citations", asked, "--user-id", str(PERSON)).is_error
    member = environment(dsn, corpus, CITELEDGER_USER_ID=str(PERSON))
    assert not call(member, "get_citations", asked).is_error
    assert call(member, "get_citations", asked, "--firm-id", str(uuid4())).is_error
    assert call(member, "get_citations", asked, "--permissions", "").is_error


@contextmanager
def raw(environment: dict[str, str]) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    """Start the door, and shake hands."""
    process = subprocess.Popen(
        [sys.executable, *MODULE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | environment,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        answer = send(process, request(0, "initialize", hello))
        assert answer["result"]["serverInfo"]["name"] == "citeledger"
        process.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        yield process, process.stdin
    finally:
        process.kill()
        process.communicate()


def request(identifier: int, method: str, params: dict[str, Any]) -> bytes:
    message = {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}
    return json.dumps(message).encode()


def send(process: subprocess.Popen[bytes], message: bytes) -> Any:
    """Send one line; return the answer to it."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(message + b"\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


CALLED = b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "%s", %s}}'
WALK = b'"arguments": {"document_ids": ["' + ID.encode() + b'"], "max_hops": %s}'
SPAN = (
    b'"arguments": {"matter_id": "' + ID.encode() + b'", "span": {"document_id": "'
    b"" + ID.encode() + b'", "quote": "q", %s}}'
)
BAD_LINES = {
    "a key given twice": CALLED % (b"cite", SPAN % b'"page_number": 1, "page_number": 2'),
    "an argument given twice": CALLED % (b"walk_citations", WALK % b'1, "max_hops": 2'),
    "NaN": CALLED % (b"walk_citations", WALK % b"NaN"),
    "Infinity": CALLED % (b"walk_citations", WALK % b"-Infinity"),
}
BAD_VALUES = {
    "a number beyond floats": CALLED % (b"walk_citations", WALK % b"1e999"),
    "a float": CALLED % (b"walk_citations", WALK % b"2.0"),
    "an exponent": CALLED % (b"walk_citations", WALK % b"2e0"),
    "a number of many digits": CALLED % (b"walk_citations", WALK % (b"9" * 4000)),
}


def test_lines_of_more_than_one_meaning(dsn: str, corpus: Corpus) -> None:
    with raw(environment(dsn, corpus)) as (process, _):
        for why, line in BAD_LINES.items():
            answer = send(process, line)
            assert answer["id"] == 7, why
            assert answer["error"]["code"] == -32600, why
            assert answer["error"]["message"] in (
                "A key is given twice.",
                "A number is not finite.",
            )
        for why, line in BAD_VALUES.items():
            result = send(process, line)["result"]
            assert result["isError"] is True, why
            assert result["structuredContent"]["error"]["field"] == "max_hops", why
        # And it goes on.
        good = send(process, CALLED % (b"walk_citations", WALK % b"2"))
        assert good["result"]["structuredContent"] == {"documents": []}


@pytest.mark.parametrize(
    "line",
    [b"SECRET", b"{", b"[" * 100_000, b"\xff\xfe", b'"\xed\xa0\x80"'],
    ids=["words", "cut", "deep", "no UTF-8", "a surrogate"],
)
def test_lines_that_are_no_json(dsn: str, corpus: Corpus, line: bytes) -> None:
    with raw(environment(dsn, corpus)) as (process, _):
        answer = send(process, line)
        assert answer["id"] is None
        assert answer["error"] == {"code": -32600, "message": "The message is not JSON."}
        assert "result" in send(process, request(8, "tools/list", {}))


def test_a_line_that_is_too_long_ends_it(dsn: str, corpus: Corpus) -> None:
    with raw(environment(dsn, corpus)) as (process, stdin):
        try:
            for _ in range(64):
                stdin.write(b"a" * LONGEST_LINE)
            stdin.flush()
        except BrokenPipeError:
            pass
        assert process.wait(timeout=30) == 1
        assert process.stderr is not None
        assert process.stderr.read() == b"a message was longer than 1048576 bytes\n"


def test_it_ends_when_the_client_leaves(dsn: str, corpus: Corpus) -> None:
    with raw(environment(dsn, corpus)) as (process, stdin):
        stdin.close()
        process.stdin = None
        assert process.wait(timeout=30) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"CITELEDGER_DSN": ""}, b"CITELEDGER_DSN is not set"),
        ({"CITELEDGER_FIRM_ID": ""}, b"neither --firm-id nor CITELEDGER_FIRM_ID is set"),
        ({"CITELEDGER_FIRM_ID": "SECRET"}, b"firm_id is not valid"),
        ({"CITELEDGER_USER_ID": "SECRET"}, b"user_id is not valid"),
    ],
    ids=["no DSN", "no firm", "a malformed firm", "a malformed person"],
)
def test_it_does_not_start_without_a_principal(
    dsn: str, corpus: Corpus, changes: dict[str, str], message: bytes
) -> None:
    done = subprocess.run(
        [sys.executable, *MODULE],
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=os.environ | environment(dsn, corpus, **changes),
    )
    assert done.returncode == 2
    assert done.stdout == b""
    assert message in done.stderr
    assert b"SECRET" not in done.stderr


def test_the_configuration() -> None:
    firm, person = uuid4(), uuid4()
    variables = {"CITELEDGER_DSN": "dbname=x", "CITELEDGER_FIRM_ID": str(firm)}
    principal = configuration([], variables).principal
    assert (principal.firm_id, principal.user_id) == (firm, None)
    assert principal.permissions == ("matters:read",)
    other = configuration(
        ["--firm-id", str(person), "--permissions", "matters:read, x:y"],
        variables | {"CITELEDGER_PERMISSIONS": "no"},
    ).principal
    assert (other.firm_id, other.permissions) == (person, ("matters:read", "x:y"))
    assert configuration([], variables | {"CITELEDGER_PERMISSIONS": ""}).principal.permissions == ()
    with pytest.raises(InvalidArgument):
        configuration(["--firm-id", f"{{{firm}}}"], variables)
