"""Deploy, verify, revert, deploy: the schema is the same, to the last comment and privilege."""

from __future__ import annotations

from support.deploy import REPOSITORY, checked, deploy_with_psql, deploy_with_sqitch, sqitch
from support.dump import is_empty, schema_dump
from support.server import DEPLOYER, Server

from .test_plan import NAMES


def test_the_whole_plan(server: Server) -> None:
    with server.database() as dbname:
        deploy_with_sqitch(server, dbname)
        checked(sqitch(server, dbname, "verify"))
        first = schema_dump(server, dbname)
        checked(sqitch(server, dbname, "revert", "-y"))
        assert is_empty(schema_dump(server, dbname)), schema_dump(server, dbname)
        deploy_with_sqitch(server, dbname)
        assert schema_dump(server, dbname) == first


def test_change_by_change(server: Server) -> None:
    """Each change, deployed on what comes before it, is undone whole by its own revert."""
    with server.database() as dbname:
        before = schema_dump(server, dbname)
        for position, name in enumerate(NAMES):
            back = ["--to-change", NAMES[position - 1]] if position else []
            checked(sqitch(server, dbname, "deploy", "--verify", "--to-change", name))
            deployed = schema_dump(server, dbname)
            checked(sqitch(server, dbname, "revert", "-y", *back))
            assert schema_dump(server, dbname) == before, f"{name} leaves something behind"
            checked(sqitch(server, dbname, "deploy", "--verify", "--to-change", name))
            # Were it not the same again, the next change's revert would not lead back to it.
            before = deployed
        assert schema_dump(server, dbname) == before


def test_with_data_in_it(server: Server) -> None:
    with server.database() as dbname:
        deploy_with_sqitch(server, dbname)
        first = schema_dump(server, dbname)
        with server.connect(dbname=dbname) as connection:
            connection.execute(
                """
                with firm as (insert into citeledger.firms (name) values ('F') returning id),
                chat as (
                  insert into citeledger.chats (firm_id) select f.id from firm as f
                  returning firm_id, id
                )
                insert into citeledger.messages (firm_id, chat_id, role, finalized_at)
                select c.firm_id, c.id, 'assistant', now() from chat as c
                """
            )
        checked(sqitch(server, dbname, "revert", "-y"))
        assert is_empty(schema_dump(server, dbname))
        deploy_with_sqitch(server, dbname)
        assert schema_dump(server, dbname) == first


def test_the_single_file_is_the_same_schema(server: Server) -> None:
    with server.database() as by_sqitch, server.database() as by_psql:
        deploy_with_sqitch(server, by_sqitch)
        deploy_with_psql(server, by_psql)
        assert schema_dump(server, by_psql) == schema_dump(server, by_sqitch)

        file = str(REPOSITORY / "sql" / "uninstall.sql")
        checked(server.psql("-q", "-1", "-f", file, user=DEPLOYER, dbname=by_psql))
        assert is_empty(schema_dump(server, by_psql))
        deploy_with_psql(server, by_psql)
        assert schema_dump(server, by_psql) == schema_dump(server, by_sqitch)


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
