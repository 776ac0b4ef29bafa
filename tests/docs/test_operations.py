"""Does what docs/operations.md tells an administrator to do, on servers of its own."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from support.deploy import REPOSITORY, checked, deploy_with_psql, deploy_with_sqitch, sqitch
from support.pages import Block, blocks, named
from support.server import DEPLOYER, Server, running_server
from support.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE = "docs/operations.md"


@pytest.fixture
def cluster() -> Iterator[Server]:
    """Give a fresh server, in which the roles of the package are absent."""
    with running_server() as running:
        yield running


def run_as_superuser(server: Server, text: str) -> None:
    checked(server.psql("-q", stdin=text))


def superuser_block() -> Block:
    (block,) = (b for b in blocks(PAGE) if b.asks.get("as") == "superuser")
    return block


def program(server: Server, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(server.bin_dir / name), "-h", server.host, "-p", str(server.port), *arguments],
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        env=server.environment(),
    )


def test_roles_made_by_an_administrator(cluster: Server) -> None:
    """Then the deployer needs no CREATEROLE, and may deploy, revert and deploy again."""
    run_as_superuser(cluster, f"create role {DEPLOYER} login nocreaterole;")
    run_as_superuser(cluster, named(PAGE, "precreated").text)
    with cluster.database() as dbname:
        checked(sqitch(cluster, dbname, "deploy", "--verify"))
        done = checked(sqitch(cluster, dbname, "revert", "-y"))
        assert "stays: the deployer may not drop it" in done.stdout + done.stderr
        deploy_with_psql(cluster, dbname)
        uninstall = str(REPOSITORY / "sql" / "uninstall.sql")
        checked(cluster.psql("-q", "-1", "-f", uninstall, user=DEPLOYER, dbname=dbname))


def test_without_createrole_and_without_roles(cluster: Server) -> None:
    run_as_superuser(cluster, f"create role {DEPLOYER} login nocreaterole;")
    with cluster.database() as dbname:
        done = sqitch(cluster, dbname, "deploy")
        assert done.returncode != 0
        assert "permission denied to create role" in done.stdout + done.stderr


def test_another_deployer_of_the_cluster(cluster: Server) -> None:
    """From 16 on, membership in the owner has to be granted by who may."""
    run_as_superuser(
        cluster, f"create role {DEPLOYER} login createrole; create role other login createrole;"
    )
    with cluster.database() as one, cluster.database(owner="other") as two:
        deploy_with_psql(cluster, one)
        if cluster.major >= 16:
            done = sqitch(cluster, two, "deploy", user="other")
            assert "the deployer cannot become citeledger_owner" in done.stdout + done.stderr
            checked(
                cluster.psql("-c", "grant citeledger_owner to other", user=DEPLOYER, dbname=one)
            )
        checked(sqitch(cluster, two, "deploy", "--verify", user="other"))


def fill(server: Server, dbname: str) -> None:
    """Make a firm with a finalized turn."""
    with server.connect(dbname=dbname) as superuser:
        world = World.make(superuser)
        message_id = world.turn(world.project())
        world.citation(message_id)
        world.caselaw(message_id, None)
        superuser.execute(
            "update citeledger.messages set finalized_at = now() where id = %s", (message_id,)
        )


def counts(server: Server, dbname: str) -> list[int]:
    tables = (
        "firms", "projects", "chats", "messages", "message_citations",
        "message_caselaw_citations", "citation_ledger_entry", "work_product_fiduciary_gate",
    )  # fmt: skip
    with server.connect(dbname=dbname) as superuser:
        found = []
        for table in tables:
            row = superuser.execute(f"select count(*) from citeledger.{table}").fetchone()
            assert row is not None
            found.append(row[0])
    return found


@dataclass(frozen=True, slots=True)
class Dumped:
    """A database, its dump, and how many rows its tables have."""

    server: Server
    dbname: str
    file: Path
    rows: list[int]


@pytest.fixture(scope="module")
def filled(server: Server) -> Iterator[str]:
    """Give a database with citeledger and rows, and nothing else in it."""
    with server.database() as dbname:
        deploy_with_sqitch(server, dbname)
        fill(server, dbname)
        yield dbname


@pytest.fixture(scope="module")
def dumped(server: Server, filled: str, tmp_path_factory: pytest.TempPathFactory) -> Dumped:
    """Give a dump that the backup role of the page made."""
    file = tmp_path_factory.mktemp("dump") / "mydb.dump"
    run_as_superuser(server, superuser_block().text)
    try:
        checked(
            program(server, "pg_dump", "-U", "citeledger_backup", "-Fc", "-f", str(file), filled)
        )
        checked(sqitch(server, filled, "verify"))
    finally:
        run_as_superuser(server, "drop role citeledger_backup;")
    return Dumped(server, filled, file, counts(server, filled))


def test_the_owner_cannot_dump(server: Server, filled: str, tmp_path: Path) -> None:
    file = str(tmp_path / "owner.dump")
    for more in ("", "--role=citeledger_owner --schema=citeledger"):
        arguments = ("-U", DEPLOYER, *more.split(), "-Fc", "-f", file, filled)
        done = program(server, "pg_dump", *arguments)
        assert done.returncode != 0
        assert "query would be affected by row-level security policy" in done.stderr


def assert_whole(server: Server, dbname: str, rows: list[int]) -> None:
    assert counts(server, dbname) == rows
    assert min(rows) > 0
    checked(sqitch(server, dbname, "verify"))
    with server.connect(dbname=dbname) as superuser:
        (firm_id,) = superuser.execute("select id from citeledger.firms").fetchone() or (None,)
        superuser.execute(
            "select citeledger.set_context(%s, null, array['matters:read'])", (firm_id,)
        )
        assert superuser.execute("select * from citeledger.check_integrity()").fetchall() == []


def test_restore_beside_the_original(dumped: Dumped) -> None:
    with dumped.server.database() as restored:
        checked(
            program(
                dumped.server, "pg_restore", "-U", DEPLOYER,
                "--exit-on-error", "--single-transaction", "-d", restored, str(dumped.file),
            )
        )  # fmt: skip
        assert_whole(dumped.server, restored, dumped.rows)


def test_restore_into_a_fresh_cluster(dumped: Dumped, cluster: Server) -> None:
    """The deployer does it all, and the dump needs nothing but the four roles."""
    run_as_superuser(cluster, f"create role {DEPLOYER} login createrole;")
    roles = str(REPOSITORY / "deploy" / "tenancy" / "roles.sql")
    with cluster.database() as restored:
        checked(cluster.psql("-f", roles, user=DEPLOYER, dbname=restored))
        checked(
            program(
                cluster, "pg_restore", "-U", DEPLOYER,
                "--exit-on-error", "--single-transaction", "-d", restored, str(dumped.file),
            )
        )  # fmt: skip
        assert_whole(cluster, restored, dumped.rows)
        with cluster.connect(dbname=restored, autocommit=True) as superuser:
            superuser.execute(f"reindex database {restored}")


def page_table(heading: str) -> list[list[str]]:
    """Return the cells of the table of the page whose head starts with these cells."""
    text = (REPOSITORY / PAGE).read_text(encoding="utf-8")
    head = f"| {heading} |"
    assert text.count(head) == 1
    lines = iter(text[text.index(head) :].splitlines()[2:])
    rows = []
    while (line := next(lines, "")).startswith("|"):
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def test_who_may_call_what(server: Server, filled: str) -> None:
    """The table of functions is what the grants say, and lacks no function."""
    said = {
        name: tuple(cell == "yes" for cell in row[1:4])
        for row in page_table("function | reader | app | admin | needs in the context")
        for name in re.findall(r"`(\w+)`", row[0])
    }
    with server.connect(dbname=filled) as superuser:
        rows = superuser.execute(
            "select f.proname, has_function_privilege('citeledger_reader', f.oid, 'execute'),"
            " has_function_privilege('citeledger_app', f.oid, 'execute'),"
            " has_function_privilege('citeledger_admin', f.oid, 'execute')"
            " from pg_catalog.pg_proc as f where f.pronamespace = 'citeledger'::regnamespace"
        ).fetchall()
    assert said == {name: tuple(grants) for name, *grants in rows}


def test_what_the_application_may_do_to_tables(server: Server, filled: str) -> None:
    """The table of tables names every table, and select, insert, update and delete of each."""
    said = {
        name: (row[1], row[2])
        for row in page_table("table | app | admin adds")
        for name in re.findall(r"`(\w+)`", row[0])
    }
    with server.connect(dbname=filled) as superuser:
        for role in ("citeledger_app", "citeledger_admin"):
            rows = superuser.execute(
                "select c.relname, array(select p from unnest(array['select', 'insert', 'update',"
                " 'delete']) as p where case when p = 'delete'"
                " then has_table_privilege(%(role)s, c.oid, p)"
                " else has_any_column_privilege(%(role)s, c.oid, p) end)"
                " from pg_catalog.pg_class as c"
                " where c.relnamespace = 'citeledger'::regnamespace and c.relkind = 'r'",
                {"role": role},
            ).fetchall()
            assert {name for name, _ in rows} == said.keys()
            for name, privileges in rows:
                app, admin = said[name]
                text = app if role == "citeledger_app" else f"{app} {admin}"
                assert set(re.findall(r"\b(select|insert|update|delete)\b", text)) == set(
                    privileges
                ), (role, name)
