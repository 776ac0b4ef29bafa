"""Takes the schema of a database as text, so that two databases can be compared whole."""

from __future__ import annotations

import re
import subprocess

from .server import Server

NOT_OURS = ("--exclude-schema", "sqitch", "--exclude-schema", "tap")


def schema_dump(server: Server, dbname: str, *which: str) -> str:
    """Return the schema, comments and privileges and all, but not Sqitch's registry and pgTAP.

    Other options of pg_dump may say which schemas it is to be.
    """
    done = subprocess.run(
        [
            str(server.bin_dir / "pg_dump"),
            "--schema-only",
            *(which or NOT_OURS),
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
