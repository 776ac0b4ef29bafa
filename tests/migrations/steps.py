"""Steps through a plan with one Sqitch: the schema is dumped after each of its scripts.

Starting Sqitch for every change costs more than all that it does. So it is started once, and finds
a psql that runs the real one, and then pg_dump behind each script.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from support.deploy import REPOSITORY, sqitch
from support.server import Server

_PSQL = """\
#!/bin/sh
{psql} "$@" || exit
for argument; do
  case $argument in
    deploy/*.sql | */deploy/*.sql | revert/*.sql | */revert/*.sql)
      printf '%s\\n' "$argument" >> {folder}/scripts
      number=$(wc -l < {folder}/scripts)
      exec {dump} --schema-only --exclude-schema sqitch --file "{folder}/$number.sql"
      ;;
  esac
done
"""


@dataclass(frozen=True, slots=True)
class Step:
    """A script that ran, below deploy/ or revert/, and the schema after it."""

    script: str
    schema: str


def steps(
    server: Server, dbname: str, *arguments: str, directory: Path = REPOSITORY
) -> tuple[list[Step], subprocess.CompletedProcess[str]]:
    """Run sqitch; return what it did step by step, and how it ended."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "bin").mkdir()
        program = folder / "bin" / "psql"
        quoted = {
            "psql": shlex.quote(str(server.bin_dir / "psql")),
            "dump": shlex.quote(str(server.bin_dir / "pg_dump")),
            "folder": shlex.quote(name),
        }
        program.write_text(_PSQL.format(**quoted), encoding="utf-8")
        program.chmod(0o755)
        stepping = replace(server, bin_dir=program.parent)
        done = sqitch(stepping, dbname, *arguments, directory=directory)
        listed = folder / "scripts"
        scripts = listed.read_text(encoding="utf-8").splitlines() if listed.exists() else []
        taken = [
            Step(
                re.sub(r"^(.*/)?(deploy|revert)/|\.sql$", "", script),
                _plain((folder / f"{number}.sql").read_text(encoding="utf-8")),
            )
            for number, script in enumerate(scripts, start=1)
        ]
    return taken, done


def _plain(dump: str) -> str:
    """Take out a random token of each dump, and which programs made it."""
    return re.sub(r"^(\\(un)?restrict .*|-- Dumped .*)\n", "", dump, flags=re.MULTILINE)
