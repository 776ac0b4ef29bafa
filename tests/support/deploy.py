"""Deploys citeledger the way that people do: real Sqitch, or one file through psql."""

from __future__ import annotations

import subprocess
from pathlib import Path

from .server import DEPLOYER, Server

REPOSITORY = Path(__file__).resolve().parents[2]


def sqitch(
    server: Server,
    dbname: str,
    *arguments: str,
    user: str = DEPLOYER,
    directory: Path = REPOSITORY,
) -> subprocess.CompletedProcess[str]:
    """Run sqitch against a database; nothing of the person who runs it takes part."""
    environment = server.environment(user, dbname) | {
        "SQITCH_FULLNAME": "citeledger tests",
        "SQITCH_EMAIL": "tests@citeledger.invalid",
        "SQITCH_USER_CONFIG": "/nonexistent",
        "SQITCH_SYSTEM_CONFIG": "/nonexistent",
        "SQITCH_TARGET": "db:pg:",
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
    }
    return subprocess.run(
        ["sqitch", *arguments],
        check=False,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        env=environment,
    )


def checked(done: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    """Return a process that succeeded; fail with all that it printed otherwise."""
    if done.returncode != 0:
        msg = f"{done.args} exited with {done.returncode}\n{done.stdout}{done.stderr}"
        raise AssertionError(msg)
    return done


def deploy_with_sqitch(server: Server, dbname: str) -> None:
    """Deploy every change of the plan, each verified."""
    checked(sqitch(server, dbname, "deploy", "--verify"))


def deploy_with_psql(server: Server, dbname: str, *, user: str = DEPLOYER) -> None:
    """Install the one generated file in one transaction."""
    file = REPOSITORY / "sql" / "citeledger.sql"
    checked(server.psql("-q", "-1", "-f", str(file), user=user, dbname=dbname))
