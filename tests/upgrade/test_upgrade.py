"""An old installation with data in it becomes what a new one is, and keeps its rows."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import psycopg
import pytest

from support.deploy import REPOSITORY, checked, deploy_with_psql, sqitch
from support.dump import schema_dump
from support.filled import problems
from support.server import DEPLOYER, Server
from support.world import set_context

from .conftest import LONG_DOI, NEW, OLD, Installation, rows, upgrade

if TYPE_CHECKING:
    Installed = Callable[..., Installation]
WAYS = ("sqitch", "one file")


@pytest.fixture(scope="module")
def fresh_dump(server: Server, deployed: object) -> str:
    """Return the schema of a new installation."""
    with server.database() as name:
        deploy_with_psql(server, name)
        return schema_dump(server, name)


def version(installation: Installation) -> str:
    with installation.connect() as superuser:
        row = superuser.execute("select citeledger.version()").fetchone()
    assert row is not None
    return str(row[0])


@pytest.mark.parametrize("way", WAYS)
def test_an_upgraded_schema_is_a_fresh_one(installed: Installed, fresh_dump: str, way: str) -> None:
    installation = installed(way)
    assert version(installation) == OLD
    assert schema_dump(installation.server, installation.name) != fresh_dump
    checked(upgrade(installation, way))
    assert version(installation) == NEW
    assert schema_dump(installation.server, installation.name) == fresh_dump


@pytest.mark.parametrize("way", WAYS)
def test_every_row_stays(installed: Installed, way: str) -> None:
    installation = installed(way)
    before = rows(installation)
    assert all(before.values()), "a table without a row shows nothing"
    edges = "document_citations"
    assert sum(LONG_DOI in row for row in before[edges]) == 2
    checked(upgrade(installation, way))
    after = rows(installation)
    # What an edge held beyond its DOI is gone from it; the list still has it as printed.
    before[edges] = [row.replace(LONG_DOI, "10.1000/cited") for row in before[edges]]
    assert {table: sorted(found) for table, found in before.items()} == after
    with installation.connect() as superuser:
        superuser.autocommit = True
        assert problems(superuser) == []
        superuser.autocommit = False
        for firm in installation.firms:
            set_context(superuser, firm)
            plan = superuser.execute("select citeledger.resolve_references()").fetchone()
            assert plan is not None
            assert (plan[0]["rows_written"], plan[0]["rows_removed"]) == (0, 0)


def test_what_a_new_edge_keeps(installed: Installed) -> None:
    """As a new installation, an upgraded one keeps no more than a DOI in an edge."""
    installation = installed("sqitch")
    checked(upgrade(installation, "sqitch"))
    with installation.connect() as superuser:
        set_context(superuser, installation.firms[0])
        superuser.execute(
            "select citeledger.record_references(d.id, array[%s]) from citeledger.documents as d"
            " where d.title = 'Citing' and d.firm_id = %s",
            (LONG_DOI, installation.firms[0]),
        )
        found = superuser.execute(
            "select e.cited_doi from citeledger.document_citations as e"
            " join citeledger.documents as d"
            " on d.firm_id = e.firm_id and d.id = e.citing_document_id"
            " where e.firm_id = %s and d.title = 'Citing'",
            (installation.firms[0],),
        ).fetchall()
    assert found == [("10.1000/cited",)]


def test_the_upgrade_is_reverted_with_its_data(installed: Installed) -> None:
    installation = installed("sqitch")
    old = schema_dump(installation.server, installation.name)
    checked(upgrade(installation, "sqitch"))
    before = rows(installation)
    new = schema_dump(installation.server, installation.name)
    checked(sqitch(installation.server, installation.name, "revert", "-y", "--to", f"@v{OLD}"))
    assert version(installation) == OLD
    assert schema_dump(installation.server, installation.name) == old
    assert rows(installation) == before
    checked(sqitch(installation.server, installation.name, "verify"))
    checked(upgrade(installation, "sqitch"))
    assert schema_dump(installation.server, installation.name) == new
    assert rows(installation) == before


def test_the_file_may_be_run_again(installed: Installed, fresh_dump: str) -> None:
    """Also after it stopped halfway: each part by itself, and then the whole file."""
    installation = installed("one file")
    text = (REPOSITORY / f"sql/upgrade--{OLD}--{NEW}.sql").read_text(encoding="utf-8")
    parts = re.split(r"(?=^-- \w+/\w+$)", text, flags=re.MULTILINE)
    assert len(parts) > 5
    for part in parts[:-2]:
        checked(installation.server.psql("-q", user=DEPLOYER, dbname=installation.name, stdin=part))
    assert version(installation) == OLD
    for _ in range(2):
        checked(upgrade(installation, "one file"))
        assert version(installation) == NEW
        assert schema_dump(installation.server, installation.name) == fresh_dump


def test_the_file_refuses_one_transaction(installed: Installed) -> None:
    """Or its locks would be held until all is done."""
    installation = installed("one file")
    before = schema_dump(installation.server, installation.name)
    file = REPOSITORY / f"sql/upgrade--{OLD}--{NEW}.sql"
    done = installation.server.psql(
        "-q", "-1", "-f", str(file), user=DEPLOYER, dbname=installation.name
    )
    assert done.returncode != 0
    assert "this file cannot run within one transaction" in done.stderr
    assert schema_dump(installation.server, installation.name) == before


def test_the_file_leaves_what_sqitch_keeps(installed: Installed) -> None:
    installation = installed("sqitch")
    before = schema_dump(installation.server, installation.name)
    done = upgrade(installation, "one file")
    assert done.returncode != 0
    assert "this database is kept by Sqitch" in done.stderr
    assert "Run sqitch deploy instead." in done.stderr
    assert schema_dump(installation.server, installation.name) == before


def test_the_file_passes_a_registry_of_other_projects(installed: Installed) -> None:
    installation = installed("one file")
    with installation.connect() as superuser:
        superuser.execute("create schema sqitch")
        superuser.execute("create table sqitch.changes as select 'another'::text as project")
        superuser.execute(f"grant usage on schema sqitch to {DEPLOYER}")
        superuser.execute(f"grant select on sqitch.changes to {DEPLOYER}")
    checked(upgrade(installation, "one file"))
    assert version(installation) == NEW


def test_the_file_refuses_another_version(installed: Installed) -> None:
    installation = installed("one file")
    with installation.connect() as superuser:
        superuser.execute(
            "create or replace function citeledger.version() returns text language sql immutable"
            " set search_path = pg_catalog, pg_temp as $$select '0.0.9'::text$$"
        )
    done = upgrade(installation, "one file")
    assert done.returncode != 0
    assert f"this file upgrades citeledger {OLD} to {NEW}" in done.stderr
    assert "Installed is 0.0.9." in done.stderr


def test_the_check_of_an_edge(installed: Installed) -> None:
    """Nothing much longer than the DOI in it goes into an edge, by whatever hand."""
    installation = installed("one file")
    checked(upgrade(installation, "one file"))
    with installation.connect() as superuser, pytest.raises(psycopg.errors.CheckViolation) as e:
        superuser.execute("update citeledger.document_citations set cited_doi = %s", (LONG_DOI,))
    assert e.value.diag.constraint_name == "document_citations_cited_doi_is_short"
