"""Runs the command line in this process, against the database of the test."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from citeledger.cli.app import app as command_line

if TYPE_CHECKING:
    from conftest import Database
    from support.world import World

WIDE = {"COLUMNS": "200", "TERM": "dumb", "NO_COLOR": "1"}


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed, read."""
        return json.loads(self.out)


Run = Callable[..., Ran]


def run_alone(*arguments: object, **environment: str | None) -> Ran:
    """Run a command that is given nothing but this."""
    ours = ("DATABASE_URL", *(k for k in os.environ if k.startswith(("PG", "CITELEDGER_"))))
    nothing: dict[str, str | None] = dict.fromkeys(ours)
    result = CliRunner().invoke(
        command_line, [str(a) for a in arguments], env=nothing | WIDE | environment
    )
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr)


@pytest.fixture(autouse=True)
def no_secrets_from_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the passwords of other tests: a short one would hide a part of every message."""
    monkeypatch.setattr("citeledger.cli.secrets._known", set())


@pytest.fixture
def run(db: Database, world: World) -> Run:
    """Run commands as an application of the firm."""

    def run(*arguments: object, user: str = "t_app", **environment: str | None) -> Ran:
        given = {"DATABASE_URL": db.dsn(user), "CITELEDGER_FIRM_ID": str(world.firm_id)}
        return run_alone(*arguments, **(given | environment))

    return run


@pytest.fixture
def matter(world: World) -> str:
    """Make a matter, and give its number."""
    world.project(matter_number="2026-0147")
    return "2026-0147"
