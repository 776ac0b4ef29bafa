"""Takes the schema of a database as text, so that two databases can be compared whole."""

from __future__ import annotations

import re
import subprocess

from .server import Server


def schema_dump(server: Server, dbname: str) -> str:
    """Return the schema, comments and privileges and all, but not Sqitch's registry and pgTAP."""
    done = subprocess.run(
        [
            str(server.bin_dir / "pg_dump"),
            "--schema-only",
            *("--exclude-schema", "sqitch", "--exclude-schema", "tap"),
        ],
        check=False,
        capture_output=True,
        encoding="utf-8",
        env=server.environment("postgres", dbname),
    )
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    # A random token of each dump, and which programs made it.
    return re.sub(r"^(\\(un)?restrict .*|-- Dumped .*)\n", "", done.stdout, flags=re.MULTILINE)


def is_empty(dump: str) -> bool:
    """Tell whether a dump holds no object."""
    lines = (line.strip() for line in dump.splitlines())
    return not any(line and not line.startswith(("--", "SET ", "SELECT ")) for line in lines)
