"""Reads sqitch.plan as Sqitch does: after a rework one name is planned more than once."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from .deploy import REPOSITORY, checked
from .server import DEPLOYER, Server


@dataclass(frozen=True, slots=True)
class Change:
    """One line of the plan."""

    name: str
    requires: tuple[str, ...]
    script: str
    """Its path below deploy/, revert/ and verify/, without .sql."""


_LINE = re.compile(r"([a-z]+/[a-z_]+)(?: \[(.*?)\])? 20")


def read_plan(text: str) -> list[Change]:
    """Return the changes of a plan, in order.

    The scripts of a change that is planned again further down are kept as name@tag, by the last
    change before that which was tagged (its first tag). Its last line has the plain name.
    """
    entries: list[tuple[str, tuple[str, ...]]] = []
    scripts: list[str] = []
    tag, tagged = "", 0
    for line in text.splitlines():
        if line.startswith("@") and len(entries) > tagged:
            tag, tagged = line.split()[0], len(entries)
        found = _LINE.match(line)
        if found is None:
            continue
        name, requires = found[1], tuple((found[2] or "").split())
        if name in scripts:
            scripts[scripts.index(name)] = name + tag
        entries.append((name, requires))
        scripts.append(name)
    return [
        Change(name, requires, script)
        for (name, requires), script in zip(entries, scripts, strict=True)
    ]


def planned() -> list[Change]:
    """Return the changes of this project's plan."""
    return read_plan((REPOSITORY / "sqitch.plan").read_text(encoding="utf-8"))


def verify_with_psql(server: Server, dbname: str, user: str = DEPLOYER) -> None:
    """Run the verify scripts of all changes, as someone without Sqitch does.

    Sqitch does not verify a change that was reworked later, either.
    """
    scripts = [f"verify/{c.script}.sql" for c in planned() if c.script == c.name]
    files = [argument for script in scripts for argument in ("-f", str(REPOSITORY / script))]
    checked(server.psql("-q", "-o", os.devnull, *files, user=user, dbname=dbname))
