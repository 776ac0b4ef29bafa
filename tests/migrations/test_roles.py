"""Roles belong to the cluster: what that means for two databases, and for who may deploy."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from support.deploy import REPOSITORY, checked, deploy_with_psql, sqitch
from support.dump import is_empty, schema_dump
from support.filled import contents, fill, problems
from support.plan import verify_with_psql
from support.server import DEPLOYER, Server, running_server

OURS = ("citeledger_admin", "citeledger_app", "citeledger_owner", "citeledger_reader")


@pytest.fixture
def cluster() -> Iterator[Server]:
    """Give a server of its own, in which the roles of the package are absent."""
    with running_server() as running:
        with running.connect(autocommit=True) as superuser:
            superuser.execute(f"create role {DEPLOYER} login nosuperuser createrole nobypassrls")
        yield running


def query(server: Server, statement: str, dbname: str = "postgres") -> list[Any]:
    with server.connect(dbname=dbname) as superuser:
        return superuser.execute(statement).fetchall()


def roles(server: Server) -> list[str]:
    return [
        r[0]
        for r in query(
            server, r"select rolname from pg_roles where rolname like 'citeledger\_%' order by 1"
        )
    ]


def uninstall(server: Server, dbname: str, user: str = DEPLOYER) -> str:
    """Take the schema away with the one file; return what it said."""
    file = str(REPOSITORY / "sql" / "uninstall.sql")
    done = checked(server.psql("-q", "-1", "-f", file, user=user, dbname=dbname))
    return done.stdout + done.stderr


def run(server: Server, statement: str) -> None:
    with server.connect(autocommit=True) as superuser:
        superuser.execute(statement)


def all_roles(server: Server) -> str:
    """Return every role of the cluster, with attributes, comments and members."""
    done = subprocess.run(
        [str(server.bin_dir / "pg_dumpall"), "--roles-only"],
        check=True,
        capture_output=True,
        encoding="utf-8",
        env=server.environment(),
    )
    return re.sub(r"^\\(un)?restrict .*\n", "", done.stdout, flags=re.MULTILINE)


def test_one_database_and_back(cluster: Server) -> None:
    """The deployer is no superuser; a revert takes the roles along that nothing uses."""
    before = all_roles(cluster)
    with cluster.database() as one:
        checked(sqitch(cluster, one, "deploy", "--verify"))
        assert roles(cluster) == list(OURS)
        first = all_roles(cluster)
        checked(sqitch(cluster, one, "revert", "-y"))
        assert all_roles(cluster) == before
        deploy_with_psql(cluster, one)
        assert all_roles(cluster) == first
        uninstall(cluster, one)
        assert all_roles(cluster) == before


def test_two_databases_of_one_cluster(cluster: Server) -> None:
    """Reverting one leaves the other whole, and says why the roles stay."""
    with cluster.database() as one, cluster.database() as two:
        checked(sqitch(cluster, one, "deploy", "--no-verify"))
        checked(sqitch(cluster, two, "deploy", "--no-verify"))
        with cluster.connect(dbname=two, autocommit=True) as superuser:
            fill(superuser)
        whole, rows = schema_dump(cluster, two), contents(cluster.dsn(dbname=two))
        done = checked(sqitch(cluster, one, "revert", "-y"))
        for role in OURS:
            assert f"role {role} stays: objects in this cluster depend on it" in (
                done.stdout + done.stderr
            )
        assert is_empty(schema_dump(cluster, one))
        assert schema_dump(cluster, two) == whole
        assert contents(cluster.dsn(dbname=two)) == rows
        with cluster.connect(dbname=two, autocommit=True) as superuser:
            assert problems(superuser) == []
        verify_with_psql(cluster, two)
        checked(sqitch(cluster, two, "revert", "-y"))
        assert roles(cluster) == []


def test_a_role_with_other_members_stays(cluster: Server) -> None:
    run(cluster, "create role somebody login")
    with cluster.database() as one:
        deploy_with_psql(cluster, one)
        run(cluster, "grant citeledger_reader to somebody")
        said = uninstall(cluster, one)
        assert "role citeledger_reader stays: other roles are members of it" in said
        assert roles(cluster) == ["citeledger_reader"]
        deploy_with_psql(cluster, one)
        verify_with_psql(cluster, one)


def precreate(server: Server) -> None:
    for role in OURS:
        run(server, f"create role {role} nologin")
    run(server, "grant citeledger_reader to citeledger_app")
    run(server, "grant citeledger_app to citeledger_admin")
    run(server, "alter role deployer nocreaterole")


def test_roles_made_by_an_administrator_before(cluster: Server) -> None:
    """A deployer without CREATEROLE needs the owner role granted, and nothing else."""
    precreate(cluster)
    with cluster.database() as one:
        done = sqitch(cluster, one, "deploy", "--verify")
        assert done.returncode != 0
        assert "the deployer cannot become citeledger_owner" in done.stdout + done.stderr
        assert is_empty(schema_dump(cluster, one))

        run(cluster, "grant citeledger_owner to deployer")
        deploy_with_psql(cluster, one)
        verify_with_psql(cluster, one)
        assert "role citeledger_owner stays" in uninstall(cluster, one)
        assert is_empty(schema_dump(cluster, one))


def test_a_second_deployer_of_the_same_cluster(cluster: Server) -> None:
    """Since PostgreSQL 16 CREATEROLE reaches only roles that one administers."""
    run(cluster, "create role other login nosuperuser createrole nobypassrls")
    with cluster.database() as one, cluster.database(owner="other") as two:
        deploy_with_psql(cluster, one)
        if cluster.major >= 16:
            done = sqitch(cluster, two, "deploy", "--verify", user="other")
            assert done.returncode != 0
            assert "the deployer cannot become citeledger_owner" in done.stdout + done.stderr
            run(cluster, "grant citeledger_owner to other")
        deploy_with_psql(cluster, two, user="other")
        verify_with_psql(cluster, two, user="other")
        uninstall(cluster, one)
        verify_with_psql(cluster, two, user="other")
        uninstall(cluster, two, user="other")
        assert is_empty(schema_dump(cluster, two))


@pytest.mark.parametrize("attribute", ["superuser", "bypassrls", "login"])
def test_a_role_that_is_too_powerful_is_refused(cluster: Server, attribute: str) -> None:
    run(cluster, f"create role citeledger_owner {attribute}")
    with cluster.database() as one:
        done = sqitch(cluster, one, "deploy", "--verify")
        assert done.returncode != 0
        assert "exists with attributes that it must not have" in done.stdout + done.stderr
        assert is_empty(schema_dump(cluster, one))


def test_deployed_by_a_superuser(cluster: Server) -> None:
    """It works too, and the objects are the owner role's all the same."""
    with cluster.database() as one:
        deploy_with_psql(cluster, one, user="postgres")
        owners = query(
            cluster,
            "select distinct pg_get_userbyid(relowner) from pg_class"
            " where relnamespace = 'citeledger'::regnamespace",
            one,
        )
        assert owners == [("citeledger_owner",)]


def test_nothing_is_public_again_after_create_and_drop(cluster: Server) -> None:
    """A function that is dropped and made again does not become PUBLIC's."""
    with cluster.database() as one:
        deploy_with_psql(cluster, one)
        with cluster.connect(DEPLOYER, one) as connection:
            connection.execute("set local role citeledger_owner")
            connection.execute("drop function citeledger.version()")
            connection.execute(
                "create function citeledger.version() returns text language sql as $$select '9'$$"
            )
        assert query(
            cluster,
            "select has_function_privilege('public', 'citeledger.version()', 'execute')",
            one,
        ) == [(False,)]
