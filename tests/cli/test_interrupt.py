"""Ctrl-C: exit 130, no traceback, and whole batches only."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from citeledger.cli.exits import Exit
from support.deploy import REPOSITORY

if TYPE_CHECKING:
    from conftest import Database
    from support.world import World

PATIENCE = 30


def start(db: Database, world: World, *arguments: str) -> subprocess.Popen[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "CITELEDGER_"))}
    return subprocess.Popen(
        [sys.executable, "-m", "citeledger.cli", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        # Whoever runs the tests may ignore it, as a shell does for what runs in the background.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        env=kept
        | {
            "PYTHONPATH": str(REPOSITORY / "python_client"),
            "DATABASE_URL": db.dsn("t_app"),
            "CITELEDGER_FIRM_ID": str(world.firm_id),
        },
    )


def wait_for(process: subprocess.Popen[str], fact: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not fact():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def interrupt(process: subprocess.Popen[str]) -> str:
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == Exit.INTERRUPTED, err
    assert out == ""
    assert "Traceback" not in err
    assert "interrupted" in err.splitlines()[-1]
    return err


def count(su: psycopg.Connection[Any], table: str) -> int:
    ((found,),) = su.execute(f"select count(*) from citeledger.{table}").fetchall()
    return int(found)


def test_between_batches(
    db: Database, su: psycopg.Connection[Any], world: World, tmp_path: Path
) -> None:
    pipe = tmp_path / "works"
    os.mkfifo(pipe)
    process = start(db, world, "crossref", str(pipe), "--batch", "2")
    with pipe.open("w") as works:
        for n in range(5):
            works.write(json.dumps({"DOI": f"10.1000/{n}"}) + "\n")
        works.flush()
        # Two batches are in; the fifth work waits for a sixth that does not come.
        wait_for(process, lambda: count(su, "documents") == 4)
        err = interrupt(process)
    assert "4 works are recorded" in err
    assert count(su, "documents") == 4


def test_in_the_middle_of_a_file(
    db: Database, su: psycopg.Connection[Any], world: World, tmp_path: Path
) -> None:
    world.project(matter_number="1")
    file = tmp_path / "a.txt"
    file.write_text("text")
    with db.connect() as other:
        other.execute("lock table citeledger.document_pages in access exclusive mode")
        process = start(db, world, "ingest", str(file), "--matter", "1")
        waiting = (
            "select from pg_stat_activity where datname = current_database()"
            " and application_name = 'citeledger' and wait_event_type = 'Lock'"
        )
        wait_for(process, lambda: bool(su.execute(waiting).fetchall()))
        interrupt(process)
    assert count(su, "documents") == 0
