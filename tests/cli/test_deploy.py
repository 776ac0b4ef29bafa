"""deploy and status: the schema by the bundled file, and never where it must not be touched."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from citeledger import SUPPORTED_SCHEMA, __version__
from citeledger.cli import deployment
from citeledger.cli.exits import CommandError, Exit
from citeledger.schema import installation_sql
from support.deploy import REPOSITORY, checked, deploy_with_psql
from support.dump import is_empty, schema_dump
from support.server import DEPLOYER

from .conftest import Ran, run_alone

if TYPE_CHECKING:
    from conftest import Database
    from support.server import Server


@pytest.fixture
def empty(deployed: Database) -> Iterator[str]:
    """Give a database with nothing in it, that the deployer owns."""
    with deployed.server.database() as name:
        yield name


def as_deployer(server: Server, name: str, *arguments: str) -> Ran:
    return run_alone(*arguments, DATABASE_URL=server.dsn(DEPLOYER, name))


def test_it_installs_what_psql_installs(server: Server, empty: str) -> None:
    ran = as_deployer(server, empty, "status")
    assert (ran.code, "not installed" in ran.out) == (Exit.NO, True)
    assert re.search(r"^next +citeledger deploy$", ran.out, re.MULTILINE)
    ran = as_deployer(server, empty, "deploy")
    assert (ran.code, ran.out) == (Exit.DONE, f"citeledger {__version__}: installed.\n")
    with server.database() as other:
        deploy_with_psql(server, other)
        assert schema_dump(server, empty) == schema_dump(server, other)
    ran = as_deployer(server, empty, "status", "--json")
    assert ran.code == Exit.DONE
    assert ran.json == {
        "installed": True,
        "schema_version": __version__,
        "managed_by": "single file",
        "client_version": __version__,
        "client_knows_schema": True,
        "server_version": server.version,
    }
    before = schema_dump(server, empty)
    for arguments in (("deploy",), ("deploy", "--upgrade")):
        ran = as_deployer(server, empty, *arguments)
        assert (ran.code, "already installed" in ran.out) == (Exit.DONE, True)
    assert schema_dump(server, empty) == before


def test_it_is_one_transaction(server: Server, empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = installation_sql()
    monkeypatch.setattr(deployment, "installation_sql", lambda: f"{whole}\nselect 1 / 0;")
    ran = as_deployer(server, empty, "deploy")
    assert (ran.code, ran.err) == (Exit.REFUSED, "citeledger: error: division by zero\n")
    assert is_empty(schema_dump(server, empty))


def test_a_role_that_may_not(server: Server, empty: str) -> None:
    ran = run_alone("deploy", DATABASE_URL=server.dsn("t_none", empty))
    assert ran.code == Exit.REFUSED
    assert len(ran.err.splitlines()) == 1
    assert is_empty(schema_dump(server, empty))


def test_sqitchs_database_is_left_alone(db: Database) -> None:
    before = schema_dump(db.server, db.name)
    for arguments in (("deploy",), ("deploy", "--upgrade")):
        ran = as_deployer(db.server, db.name, *arguments)
        assert ran.code == Exit.REFUSED
        assert "Sqitch manages this database" in ran.err
        assert "sqitch deploy" in ran.err
    assert schema_dump(db.server, db.name) == before
    ran = as_deployer(db.server, db.name, "status", "--json")
    assert (ran.code, ran.json["managed_by"]) == (Exit.DONE, "sqitch")


def registry(name: str, project: str) -> str:
    tables = ("changes", "dependencies", "events", "tags")
    return (
        f"create schema {name}; create table {name}.projects (project text);"
        f" insert into {name}.projects values ('{project}');"
        + "".join(f" create table {name}.{table} ();" for table in tables)
    )


def test_sqitchs_database_before_its_first_change_and_under_another_name(
    server: Server, empty: str
) -> None:
    with server.connect(DEPLOYER, empty, autocommit=True) as deployer:
        deployer.execute(registry("the_registry", "citeledger"))
    ran = as_deployer(server, empty, "deploy")
    assert (ran.code, "Sqitch manages" in ran.err) == (Exit.REFUSED, True)


def test_sqitch_of_another_project_is_no_hindrance(server: Server, empty: str) -> None:
    with server.connect(DEPLOYER, empty, autocommit=True) as deployer:
        deployer.execute(registry("sqitch", "shop"))
    assert as_deployer(server, empty, "deploy").code == Exit.DONE
    ran = as_deployer(server, empty, "status")
    assert (ran.code, "single file" in ran.out) == (Exit.DONE, True)


def test_a_registry_that_cannot_be_read_may_be_ours(server: Server, empty: str) -> None:
    with server.connect(dbname=empty, autocommit=True) as superuser:
        superuser.execute(registry("sqitch", "shop"))
    ran = as_deployer(server, empty, "deploy")
    assert (ran.code, "registry of Sqitch" in ran.err) == (Exit.REFUSED, True)


def test_a_schema_of_somebody_else(server: Server, empty: str) -> None:
    with server.connect(DEPLOYER, empty, autocommit=True) as deployer:
        deployer.execute("create schema citeledger")
    ran = as_deployer(server, empty, "deploy")
    assert (ran.code, "not of this package" in ran.err) == (Exit.REFUSED, True)
    ran = as_deployer(server, empty, "status")
    assert (ran.code, "next" in ran.out) == (Exit.NO, False)


OLD, NEWER = "0.0.9", "0.9.0"


@pytest.fixture
def older(server: Server, empty: str) -> str:
    """Give a database with a version that this release does not know."""
    with server.connect(DEPLOYER, empty, autocommit=True) as deployer:
        deployer.execute(
            "create schema citeledger; create function citeledger.version() returns text"
            f" language sql as $$ select '{OLD}' $$"
        )
    return empty


def script(old: str, new: str) -> str:
    return (
        "create or replace function citeledger.version() returns text language sql"
        f" as $$ select '{new}' $$; create table citeledger.t_{old.replace('.', '_')} ();"
    )


def test_another_version_is_left_alone_and_the_way_is_told(
    server: Server, older: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = schema_dump(server, older)
    ran = as_deployer(server, older, "status", "--json")
    assert (ran.code, ran.json["client_knows_schema"]) == (Exit.NO, False)
    ran = as_deployer(server, older, "deploy")
    assert (ran.code, "has no upgrade from there" in ran.err) == (Exit.NO, True)
    assert "next" not in as_deployer(server, older, "status").out
    assert OLD in ran.err
    ran = as_deployer(server, older, "deploy", "--upgrade")
    assert ran.code == Exit.REFUSED
    monkeypatch.setattr(deployment, "upgrade_scripts", lambda: {(OLD, __version__): "select 1/0"})
    ran = as_deployer(server, older, "deploy")
    assert (ran.code, "citeledger deploy --upgrade" in ran.err) == (Exit.NO, True)
    ran = as_deployer(server, older, "status")
    assert re.search(r"^known to this client +no$", ran.out, re.MULTILINE)
    assert re.search(r"^next +citeledger deploy --upgrade$", ran.out, re.MULTILINE)
    assert schema_dump(server, older) == before


def test_an_upgrade_runs_the_scripts_between(
    server: Server, older: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = {(OLD, "0.0.10"), ("0.0.10", __version__), ("0.0.10", NEWER), ("0.0.8", OLD)}
    scripts = {step: script(*step) for step in steps}
    broken = scripts | {("0.0.10", __version__): "select 1 / 0"}
    monkeypatch.setattr(deployment, "upgrade_scripts", lambda: broken)
    assert as_deployer(server, older, "deploy", "--upgrade").code == Exit.REFUSED
    # The first step is done and stays; the next attempt goes on from there.
    assert "t_0_0_9" in schema_dump(server, older)
    monkeypatch.setattr(deployment, "upgrade_scripts", lambda: scripts)
    ran = as_deployer(server, older, "deploy", "--upgrade")
    assert (ran.code, f"from 0.0.10 to {__version__}" in ran.out) == (Exit.DONE, True)
    assert "t_0_0_10" in schema_dump(server, older)
    assert as_deployer(server, older, "status").code == Exit.DONE


def test_an_upgrade_from_a_release(server: Server, empty: str, deployed: object) -> None:
    """The real one, with its own transactions."""
    release = subprocess.run(
        [sys.executable, str(REPOSITORY / "tools/build_sql.py"), "--release", "0.1.0"],
        check=True,
        capture_output=True,
        encoding="utf-8",
    ).stdout
    checked(server.psql("-q", "-1", "-f", "-", user=DEPLOYER, dbname=empty, stdin=release))
    ran = as_deployer(server, empty, "deploy")
    assert (ran.code, "citeledger deploy --upgrade" in ran.err) == (Exit.NO, True)
    ran = as_deployer(server, empty, "deploy", "--upgrade")
    assert (ran.code, f"from 0.1.0 to {__version__}" in ran.out) == (Exit.DONE, True)
    with server.database() as other:
        deploy_with_psql(server, other)
        assert schema_dump(server, empty) == schema_dump(server, other)


def test_the_fewest_steps() -> None:
    known = {("1", "2"): "", ("2", "3"): "", ("1", "3"): "", ("3", "1"): ""}
    assert deployment.upgrade_path("1", "3", known) == [("1", "3")]
    assert deployment.upgrade_path("2", "1", known) == [("2", "3"), ("3", "1")]
    assert deployment.upgrade_path("1", "4", known) == []


def test_every_upgrade_script_of_the_package_leads_to_a_known_version() -> None:
    for (old, new), text in deployment.upgrade_scripts().items():
        assert new in SUPPORTED_SCHEMA, (old, new)
        assert text.strip()


def test_a_server_that_is_too_old() -> None:
    too_old = deployment.Installation("14.9", 140009, False, None, None)
    with pytest.raises(CommandError, match=r"PostgreSQL 14\.9"):
        deployment.require_server(too_old)
