"""Deploy, verify, revert, deploy: the schema is the same, to the last comment and privilege."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.deploy import REPOSITORY, checked, deploy_with_psql, sqitch
from support.dump import is_empty, schema_dump
from support.filled import contents, fill
from support.plan import planned
from support.server import DEPLOYER, Server

from .steps import Step, steps

if TYPE_CHECKING:
    from conftest import Database

SCRIPTS = [change.script for change in planned()]

# What else may live in the database: it stays, with its data, whatever happens beside it.
NEIGHBOUR = """
create schema house;
create table house.keys (id integer primary key, note text not null);
comment on table house.keys is 'Not ours.';
alter table house.keys enable row level security;
create policy keys_of_all on house.keys using (true);
grant select on house.keys to public;
insert into house.keys select i, 'key ' || i from generate_series(1, 3) as i;
"""


def assert_reversible(deployed: list[Step], reverted: list[Step], before: str) -> None:
    """Each revert leads back to the schema as it was before its change."""
    assert [step.script for step in reverted] == [step.script for step in reversed(deployed)]
    schemas = [before, *(step.schema for step in deployed)]
    for position, step in enumerate(reverted, start=1):
        earlier = schemas[len(deployed) - position]
        assert step.schema == earlier, f"{step.script} leaves something behind"


def test_change_by_change(server: Server) -> None:
    """Each change is verified, undone whole by its own revert, and the same when deployed again."""
    with server.database() as dbname:
        before = schema_dump(server, dbname)
        deployed, done = steps(server, dbname, "deploy", "--verify")
        checked(done)
        assert [step.script for step in deployed] == SCRIPTS
        assert deployed[-1].schema == schema_dump(server, dbname)
        reverted, done = steps(server, dbname, "revert", "-y")
        checked(done)
        assert_reversible(deployed, reverted, before)
        checked(sqitch(server, dbname, "deploy", "--verify"))
        assert schema_dump(server, dbname) == deployed[-1].schema


EXAMPLE_PLAN = """\
%syntax-version=1.0.0
%project=example

a/one 2026-01-01T00:00:00Z t <t@example.invalid> # n
a/two [a/one] 2026-01-01T00:00:01Z t <t@example.invalid> # n
@v0.1.0 2026-01-01T00:00:02Z t <t@example.invalid> # n

a/one [a/one@v0.1.0] 2026-01-01T00:00:03Z t <t@example.invalid> # n
"""
ONE = "create or replace function public.one() returns int language sql return {};\n"
EXAMPLE = {
    "deploy/a/one@v0.1.0": ONE.format(1),
    "revert/a/one@v0.1.0": "drop function public.one();\n",
    "deploy/a/two": "create table public.two (id int);\n",
    "revert/a/two": "drop table public.two;\n",
    "deploy/a/one": ONE.format(2),
    "revert/a/one": ONE.format(1),
}


def example(directory: Path, scripts: dict[str, str]) -> Path:
    """Write a small project, in which one change is reworked after a tag."""
    for name, text in scripts.items():
        file = directory / f"{name}.sql"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"begin;\n{text}commit;\n", encoding="utf-8")
    (directory / "sqitch.plan").write_text(EXAMPLE_PLAN, encoding="utf-8")
    (directory / "sqitch.conf").write_text("[core]\n\tengine = pg\n", encoding="utf-8")
    return directory


def example_steps(server: Server, directory: Path) -> tuple[list[Step], list[Step], str]:
    with server.database() as dbname:
        before = schema_dump(server, dbname)
        deployed, done = steps(server, dbname, "deploy", directory=directory)
        checked(done)
        reverted, done = steps(server, dbname, "revert", "-y", directory=directory)
        checked(done)
    return deployed, reverted, before


def test_a_reworked_change_is_a_step_of_its_own(server: Server, tmp_path: Path) -> None:
    deployed, reverted, before = example_steps(server, example(tmp_path, EXAMPLE))
    assert [step.script for step in deployed] == ["a/one@v0.1.0", "a/two", "a/one"]
    assert_reversible(deployed, reverted, before)


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("a/one", "select 1;\n"),
        ("a/two", "alter table public.two rename to three;\n"),
        ("a/one@v0.1.0", "revoke all on function public.one() from public;\n"),
    ],
)
def test_a_revert_that_leaves_something_is_named(
    server: Server, tmp_path: Path, script: str, text: str
) -> None:
    scripts = EXAMPLE | {f"revert/{script}": text}
    deployed, reverted, before = example_steps(server, example(tmp_path, scripts))
    with pytest.raises(AssertionError, match=f"{script} leaves something behind"):
        assert_reversible(deployed, reverted, before)


@contextmanager
def with_a_neighbour(server: Server) -> Iterator[str]:
    """Give a database that is somebody's already."""
    with server.database() as dbname:
        checked(server.psql("-q", stdin=NEIGHBOUR, user=DEPLOYER, dbname=dbname))
        yield dbname


def neighbours_data(server: Server, dbname: str) -> list[tuple[int, str]]:
    with server.connect(dbname=dbname) as connection:
        return connection.execute("select id, note from house.keys order by id").fetchall()


def test_with_data_in_every_table(server: Server) -> None:
    """All of it goes; what the neighbour has stays; and it can be deployed and filled again."""
    with with_a_neighbour(server) as dbname:
        empty = schema_dump(server, dbname)
        keys = neighbours_data(server, dbname)
        deploy_without_verify(server, dbname)
        first = schema_dump(server, dbname)
        fill_every_table(server, dbname)
        checked(sqitch(server, dbname, "verify"))
        checked(sqitch(server, dbname, "revert", "-y"))
        assert schema_dump(server, dbname) == empty
        assert neighbours_data(server, dbname) == keys
        deploy_without_verify(server, dbname)
        assert schema_dump(server, dbname) == first
        fill_every_table(server, dbname)
        assert neighbours_data(server, dbname) == keys


def deploy_without_verify(server: Server, dbname: str) -> None:
    checked(sqitch(server, dbname, "deploy", "--no-verify"))


def fill_every_table(server: Server, dbname: str) -> None:
    with server.connect(dbname=dbname, autocommit=True) as superuser:
        fill(superuser)
    rows = contents(server.dsn(dbname=dbname))
    assert len(rows) > 20
    assert not [table for table, found in rows.items() if not found], "no row there"


def uninstall(server: Server, dbname: str) -> None:
    file = str(REPOSITORY / "sql" / "uninstall.sql")
    checked(server.psql("-q", "-1", "-f", file, user=DEPLOYER, dbname=dbname))


def test_the_single_file_is_the_same_schema(server: Server, deployed: Database) -> None:
    with server.database() as dbname:
        for _ in range(2):
            deploy_with_psql(server, dbname)
            assert schema_dump(server, dbname) == schema_dump(server, deployed.name)
            uninstall(server, dbname)
            assert is_empty(schema_dump(server, dbname))


def test_the_single_file_with_data_in_every_table(server: Server) -> None:
    with with_a_neighbour(server) as dbname:
        empty = schema_dump(server, dbname)
        keys = neighbours_data(server, dbname)
        for _ in range(2):
            deploy_with_psql(server, dbname)
            fill_every_table(server, dbname)
            uninstall(server, dbname)
            assert schema_dump(server, dbname) == empty
            assert neighbours_data(server, dbname) == keys


def test_the_single_file_needs_one_transaction(server: Server) -> None:
    with server.database() as dbname:
        file = str(REPOSITORY / "sql" / "citeledger.sql")
        done = server.psql("-q", "-f", file, user=DEPLOYER, dbname=dbname)
        assert done.returncode != 0
        assert "transaction blocks" in done.stderr
        assert is_empty(schema_dump(server, dbname))


def test_the_single_file_is_refused_where_the_schema_is(server: Server) -> None:
    with server.database() as dbname:
        deploy_with_psql(server, dbname)
        before = schema_dump(server, dbname)
        file = str(REPOSITORY / "sql" / "citeledger.sql")
        done = server.psql("-q", "-1", "-f", file, user=DEPLOYER, dbname=dbname)
        assert done.returncode != 0
        assert 'schema "citeledger" already exists' in done.stderr
        assert schema_dump(server, dbname) == before
