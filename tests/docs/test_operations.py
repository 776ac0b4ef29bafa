"""Does what docs/operations.md tells an administrator to do, on servers of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from support.deploy import REPOSITORY, checked, deploy_with_psql, deploy_with_sqitch, sqitch
from support.dump import schema_dump
from support.pages import Block, blocks, named
from support.server import DEPLOYER, Server, running_server
from support.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE = "docs/operations.md"
# Who Sqitch says did it; nothing of the person who runs the tests takes part.
SOMEBODY = {
    "SQITCH_FULLNAME": "citeledger tests",
    "SQITCH_EMAIL": "tests@citeledger.invalid",
    "SQITCH_USER_CONFIG": "/nonexistent",
    "SQITCH_SYSTEM_CONFIG": "/nonexistent",
    "LC_ALL": "C.UTF-8",
}


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


def shell(server: Server, dbname: str, text: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the page in the folder of the project, with the address of this server."""
    for address, ours in (
        ("-h host -U deployer mydb", ""),
        ("db:pg://deployer@host/mydb", "db:pg:"),
    ):
        text = text.replace(address, ours)
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        check=False,
        cwd=REPOSITORY,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        env=server.environment(DEPLOYER, dbname) | SOMEBODY,
    )


def said(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout + done.stderr


def commands(text: str) -> list[str]:
    """Return the commands in backquotes, as the page's tables have them."""
    return re.findall(r"`((?:sqitch|psql) [^`]+)`", text)


@pytest.fixture
def empty(server: Server) -> Iterator[str]:
    """Give an empty database of the deployer."""
    with server.database() as dbname:
        yield dbname


def test_what_may_stop_an_installation(server: Server, filled: str, empty: str) -> None:
    """Each message of the page is one that somebody gets to see."""
    file = str(REPOSITORY / "sql" / "citeledger.sql")
    messages = {row[0].strip("`"): row[1] for row in page_table("message | what to do")}
    seen = {
        "schema": server.psql("-q", "-1", "-f", file, user=DEPLOYER, dbname=filled),
        "SAVEPOINT": server.psql("-q", "-f", file, user=DEPLOYER, dbname=empty),
        "permission denied for database": server.psql(
            "-q", "-1", "-f", file, user=DEPLOYER, dbname="postgres"
        ),
        "Nothing to deploy": sqitch(server, filled, "deploy"),
    }
    for beginning, done in seen.items():
        (message,) = (m for m in messages if m.startswith(beginning))
        assert message.replace("mydb", "postgres") in said(done)
    text = (REPOSITORY / "deploy" / "tenancy" / "roles.sql").read_text(encoding="utf-8")
    for message in messages:
        if message.startswith(("the deployer cannot", "a citeledger role")):
            assert message in text


def test_verifying_with_psql(server: Server, empty: str) -> None:
    deploy_with_psql(server, empty)
    command = named(PAGE, "verify-with-psql").text
    done = shell(server, empty, command)
    assert (done.returncode, said(done)) == (0, "")
    with server.connect(dbname=empty) as superuser:
        superuser.execute("grant select on citeledger.chats to public")
    done = shell(server, empty, command)
    assert done.returncode != 0
    (shown,) = (b for b in blocks(PAGE) if "is not as it was deployed" in b.text)
    for line in shown.text.splitlines():
        assert line in done.stderr


def test_upgrading_by_file(server: Server, empty: str) -> None:
    """The command of the page, from the release that its file leads on from."""
    command = named(PAGE, "upgrade").text
    (old, new) = re.findall(r"upgrade--([\d.]+)--([\d.]+)\.sql", command)[0]
    installation = subprocess.run(
        [sys.executable, "tools/build_sql.py", "--release", old],
        check=True,
        cwd=REPOSITORY,
        capture_output=True,
        encoding="utf-8",
    ).stdout
    checked(server.psql("-q", "-1", user=DEPLOYER, dbname=empty, stdin=installation))
    for installed in (old, new):
        with server.connect(DEPLOYER, empty) as connection:
            connection.execute("set local role citeledger_owner")
            assert connection.execute("select citeledger.version()").fetchone() == (installed,)
        # It may be run again.
        done = checked(shell(server, empty, command))
        assert "WARNING" not in said(done)
    file = (REPOSITORY / f"sql/upgrade--{old}--{new}.sql").read_text(encoding="utf-8")
    assert "set lock_timeout = '30s'" in file
    for row in page_table("message of the file | what to do"):
        message = row[0].strip("`")
        assert message in file or message.startswith("canceling statement")
    assert said(shell(server, empty, named(PAGE, "verify-with-psql").text)) == ""


def test_from_one_way_to_the_other(server: Server, empty: str) -> None:
    """Only the record changes: the schema is the same before and after."""
    ways = {
        row[0]: commands(" ".join(row[1:]))
        for row in page_table("from, to | run, as the deployer | then")
    }
    deploy_with_psql(server, empty)
    before = schema_dump(server, empty)
    for command in ways["from the file to Sqitch"]:
        checked(shell(server, empty, command))
    assert "Nothing to deploy" in said(sqitch(server, empty, "deploy"))
    for command in ways["from Sqitch to the file"]:
        checked(shell(server, empty, command))
    assert schema_dump(server, empty) == before
    assert "Nothing to revert" in said(sqitch(server, empty, "revert", "-y"))


def test_uninstalled_behind_the_back_of_sqitch(server: Server, empty: str) -> None:
    """What the page says happens then, and its way out."""
    # As if Sqitch had deployed it, but far quicker.
    deploy_with_psql(server, empty)
    checked(sqitch(server, empty, "deploy", "--log-only", "--no-verify"))
    uninstall = str(REPOSITORY / "sql" / "uninstall.sql")
    checked(server.psql("-q", "-1", "-f", uninstall, user=DEPLOYER, dbname=empty))
    assert "Nothing to deploy" in said(sqitch(server, empty, "deploy"))
    for command in (("verify",), ("revert", "-y")):
        done = sqitch(server, empty, *command)
        assert done.returncode != 0
        assert re.search(
            r'role "citeledger_owner" does not exist|schema "citeledger(_private)?" does not exist',
            said(done),
        )
    checked(shell(server, empty, named(PAGE, "off-the-record").text))
    checked(sqitch(server, empty, "deploy", "--verify", "--to", "tenancy/schemas"))


def test_what_was_dropped_by_hand_stops_a_revert(cluster: Server) -> None:
    """Until it is put back, from the script of its change; or all is taken away at once."""
    run_as_superuser(cluster, f"create role {DEPLOYER} login createrole;")
    uninstall = ("-q", "-1", "-f", str(REPOSITORY / "sql" / "uninstall.sql"))
    folder = REPOSITORY / "deploy" / "graph"
    script = (folder / "document_triggers@v0.1.0.sql").read_text(encoding="utf-8")
    (made,) = re.findall(
        r"^create trigger documents_arrived\n.*?;$", script, re.MULTILINE | re.DOTALL
    )
    (comment,) = re.findall(
        r"^comment on trigger documents_arrived .*?;$", script, re.MULTILINE | re.DOTALL
    )
    with cluster.database() as dbname:
        empty = schema_dump(cluster, dbname)
        deploy_with_psql(cluster, dbname)
        with cluster.connect(dbname=dbname, autocommit=True) as superuser:
            superuser.execute("drop trigger documents_arrived on citeledger.documents")
        done = shell(cluster, dbname, named(PAGE, "verify-with-psql").text)
        assert "Missing: trigger CREATE TRIGGER documents_arrived" in done.stderr
        done = cluster.psql(*uninstall, user=DEPLOYER, dbname=dbname)
        assert 'trigger "documents_arrived" for table "documents" does not exist' in done.stderr
        with cluster.connect(DEPLOYER, dbname) as connection:
            connection.execute("set local role citeledger_owner")
            connection.execute(made)
            connection.execute(comment)
        assert said(shell(cluster, dbname, named(PAGE, "verify-with-psql").text)) == ""

        last = named(PAGE, "last-resort").text
        checked(cluster.psql("-q", user=DEPLOYER, dbname=dbname, stdin=last))
        roles = str(REPOSITORY / "revert" / "tenancy" / "roles.sql")
        checked(cluster.psql("-q", "-f", roles, user=DEPLOYER, dbname=dbname))
        assert schema_dump(cluster, dbname) == empty
        with cluster.connect(dbname=dbname) as superuser:
            left = superuser.execute(
                "select rolname from pg_catalog.pg_roles where rolname ~ '^citeledger'"
            ).fetchall()
        assert left == []
        deploy_with_psql(cluster, dbname)


def test_what_depends_on_our_objects_stops_the_file(server: Server, empty: str) -> None:
    deploy_with_psql(server, empty)
    before = schema_dump(server, empty)
    with server.connect(dbname=empty) as superuser:
        superuser.execute("create view public.mine as select id from citeledger.chats")
    uninstall = str(REPOSITORY / "sql" / "uninstall.sql")
    done = server.psql("-q", "-1", "-f", uninstall, user=DEPLOYER, dbname=empty)
    assert done.returncode != 0
    assert re.search(r"view (public\.)?mine depends on", done.stderr)
    with server.connect(dbname=empty) as superuser:
        superuser.execute("drop view public.mine")
    assert schema_dump(server, empty) == before


def test_sqitch_finds_nothing_to_revert_of_what_psql_installed(server: Server, empty: str) -> None:
    deploy_with_psql(server, empty)
    before = schema_dump(server, empty)
    assert "No registry found" in said(sqitch(server, empty, "revert", "-y"))
    assert schema_dump(server, empty) == before


def test_the_record_of_sqitch_stays(server: Server, empty: str) -> None:
    few = ("deploy", "--verify", "--to", "tenancy/schemas")
    checked(sqitch(server, empty, *few))
    checked(sqitch(server, empty, "revert", "-y"))
    with server.connect(DEPLOYER, empty) as connection:
        connection.execute("drop schema sqitch cascade")
    checked(sqitch(server, empty, *few))


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
        dumped.server.restore(restored, "--single-transaction", str(dumped.file))
        assert_whole(dumped.server, restored, dumped.rows)


def test_restore_into_a_fresh_cluster(dumped: Dumped, cluster: Server) -> None:
    """The deployer does it all, and the dump needs nothing but the four roles."""
    run_as_superuser(cluster, f"create role {DEPLOYER} login createrole;")
    roles = str(REPOSITORY / "deploy" / "tenancy" / "roles.sql")
    with cluster.database() as restored:
        checked(cluster.psql("-f", roles, user=DEPLOYER, dbname=restored))
        cluster.restore(restored, "--single-transaction", str(dumped.file))
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


def test_every_problem_has_a_remedy(server: Server, filled: str) -> None:
    """The table of problems names what check_integrity may say, all of it and nothing else."""
    said_here = {row[0].strip("`") for row in page_table("problem | what it means | mend it with")}
    with server.connect(dbname=filled) as superuser:
        row = superuser.execute(
            "select pg_catalog.pg_get_functiondef('citeledger.check_integrity()'::regprocedure)"
        ).fetchone()
    assert row is not None
    assert said_here == set(re.findall(r"select\s+'([a-z_]+)',", row[0]))


def test_every_stage_has_a_remedy(server: Server, filled: str) -> None:
    """And so has each stage that finalize_failure may name."""
    said_here = {
        stage
        for row in page_table("stage | look at")
        for stage in re.findall(r"`([a-z_]+)`", row[0])
    }
    with server.connect(dbname=filled) as superuser:
        bodies = " ".join(
            row[0]
            for row in superuser.execute(
                "select p.prosrc from pg_catalog.pg_proc as p"
                " where p.pronamespace = 'citeledger_private'::regnamespace"
                " or p.pronamespace = 'citeledger'::regnamespace"
            )
        )
    for stage in said_here:
        assert f"'{stage}'" in bodies, stage


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
