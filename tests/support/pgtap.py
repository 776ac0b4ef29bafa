"""pgTAP: brings it into a database, and runs files with the real pg_prove."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import psycopg

from .server import Server

TAP_SCHEMA = "tap"
TESTER = "t_tester"

_PLAN = re.compile(r"^select plan\(\d+\);$", re.MULTILINE)


def pgtap_script() -> Path:
    """Return Debian's pgTAP as one SQL script, whichever PostgreSQL its package is for."""
    found = [
        p
        for p in Path("/usr/share/postgresql").glob("*/extension/pgtap--*.sql")
        if p.name.count("--") == 1
    ]
    if not found:
        msg = "pgTAP is not on this machine; install Debian's postgresql-<version>-pgtap"
        raise RuntimeError(msg)
    return max(found, key=lambda p: [int(n) for n in re.findall(r"\d+", p.stem)])


def install_pgtap(connection: psycopg.Connection[Any]) -> None:
    """Load pgTAP into a schema of its own, as plain SQL.

    The script works on any server, while the extension belongs to the one that Debian's package is
    for. What an extension's script may say and plain SQL may not is taken out.
    """
    text = pgtap_script().read_text(encoding="utf-8")
    text = re.sub(r"^\\.*$", "", text, flags=re.MULTILINE).replace("@extschema@", TAP_SCHEMA)
    with connection.transaction():
        connection.execute(f"create schema {TAP_SCHEMA}")
        connection.execute(f"grant usage on schema {TAP_SCHEMA} to public")
        connection.execute(f"set local search_path = {TAP_SCHEMA}, pg_catalog")
        # One message with many statements, so no parameters.
        connection.execute(text.encode())


def form_problems(text: str) -> list[str]:
    """Say what a test file lacks of the form that lets a cut or padded file be noticed."""
    lines = [line.strip() for line in text.lower().splitlines()]
    lines = [line for line in lines if line and not line.startswith("--")]
    problems = []
    if lines[:1] != ["begin;"]:
        problems.append("it does not start with begin;")
    if lines[-1:] != ["rollback;"]:
        problems.append("it does not end with rollback;")
    if "commit;" in lines:
        problems.append("it commits")
    if len(_PLAN.findall("\n".join(lines))) != 1:
        problems.append("it has no single plan with a number of tests")
    if "select * from finish();" not in lines:
        problems.append("it does not call finish()")
    return problems


def prove(
    server: Server, dbname: str, *files: Path, user: str = TESTER
) -> subprocess.CompletedProcess[str]:
    """Run pg_prove on files, each in a psql of its own."""
    return subprocess.run(
        [
            "pg_prove",
            "--verbose",
            *("--psql-bin", str(server.bin_dir / "psql")),
            *("--host", server.host, "--port", str(server.port)),
            *("--username", user, "--dbname", dbname),
            *map(str, files),
        ],
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        env=server.environment(user, dbname),
    )
