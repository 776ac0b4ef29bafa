"""A deployer without superuser, among things that are not ours, makes the very same schema."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from uuid import UUID

import pytest

from services import provider
from support.deploy import REPOSITORY, checked, deploy_with_psql, sqitch
from support.dump import schema_dump
from support.server import DEPLOYER, Server, running_server
from support.world import World, set_context

OURS = ("citeledger", "citeledger_private")
PGCRYPTO = """
create schema if not exists extensions;
grant usage on schema extensions to public;
"""
ALL_OF_IT = (provider.IMPOSTORS, provider.DEFAULT_PRIVILEGES, provider.EVENT_TRIGGERS)


@pytest.fixture(scope="module")
def service() -> Iterator[Server]:
    """Run a server whose superuser is not ours."""
    with running_server() as running:
        provider.make_roles(running)
        yield running


def our_schema(server: Server, dbname: str) -> str:
    """Return our two schemas as text, with comments, policies and grants."""
    return schema_dump(server, dbname, *(f"--schema={name}" for name in OURS))


@pytest.fixture(scope="module")
def plain(service: Server) -> Iterator[str]:
    """Give a database of which nobody has changed anything; it keeps the roles in the cluster."""
    with service.database() as dbname:
        deploy_with_psql(service, dbname)
        yield dbname


@pytest.fixture(scope="module")
def furnished(service: Server, plain: str) -> Iterator[str]:
    """Give a database full of a provider's things, into which Sqitch deployed."""
    with service.database() as dbname:
        provider.furnish(service, dbname, *ALL_OF_IT)
        checked(sqitch(service, dbname, "deploy", "--verify"))
        yield dbname


def use(server: Server, dbname: str) -> None:
    """Finalize a turn, as a login whose search_path meets the impostors first."""
    with server.connect(dbname=dbname) as superuser:
        world = World.make(superuser)
        superuser.execute("set local search_path = public, extensions, pg_catalog")
        turn = world.turn(world.project())
        world.citation(turn)
        document = world.document(doi="https://doi.org/10.1000/ABC")
        set_context(superuser, world.firm_id)
        report = world.finalize(turn)
        assert report["gate"]["gate_status"] == "fiduciary_grade"
        assert not report["failures"]
        for identifier in (world.firm_id, turn, document):
            assert identifier != UUID(provider.NOT_RANDOM)
        row = superuser.execute(
            "select d.doi_key, d.created_at > 'epoch'::pg_catalog.timestamptz,"
            " m.finalized_at > 'epoch'::pg_catalog.timestamptz"
            " from citeledger.documents as d cross join citeledger.messages as m"
            " where d.doi_key is not null"
        ).fetchone()
        assert row == ("10.1000/abc", True, True)
        superuser.rollback()


def test_the_deployer_is_no_superuser(service: Server) -> None:
    """What the other tests stand on."""
    with service.connect(DEPLOYER) as connection:
        row = connection.execute(
            "select rolsuper, rolbypassrls, rolcreaterole from pg_catalog.pg_roles"
            " where rolname = current_user"
        ).fetchone()
    assert row == (False, False, True)


def test_no_extension_is_needed(service: Server, plain: str) -> None:
    with service.connect(dbname=plain) as superuser:
        names = superuser.execute("select extname from pg_catalog.pg_extension").fetchall()
    assert names == [("plpgsql",)]
    use(service, plain)


def test_pgcrypto_in_a_schema_of_its_own(service: Server, plain: str) -> None:
    with service.database() as dbname:
        with service.connect(dbname=dbname, autocommit=True) as superuser:
            if not provider.has_pgcrypto(superuser):
                pytest.skip("this server ships no pgcrypto; the impostors stand for it")
            superuser.execute(PGCRYPTO)
            superuser.execute("create extension pgcrypto schema extensions")
        provider.furnish(service, dbname)
        deploy_with_psql(service, dbname)
        assert our_schema(service, dbname) == our_schema(service, plain)
        use(service, dbname)


def test_sqitch_makes_the_same_schema(service: Server, plain: str, furnished: str) -> None:
    """Whatever the provider's defaults grant, triggers do and names shadow."""
    assert our_schema(service, furnished) == our_schema(service, plain)
    checked(sqitch(service, furnished, "verify"))
    use(service, furnished)


def test_the_single_file_makes_the_same_schema(service: Server, plain: str) -> None:
    with service.database() as dbname:
        provider.furnish(service, dbname, *ALL_OF_IT)
        before = provider_objects(service, dbname)
        deploy_with_psql(service, dbname)
        assert our_schema(service, dbname) == our_schema(service, plain)
        use(service, dbname)
        uninstall = str(REPOSITORY / "sql" / "uninstall.sql")
        checked(service.psql("-q", "-1", "-f", uninstall, user=DEPLOYER, dbname=dbname))
        assert provider_objects(service, dbname) == before


def provider_objects(server: Server, dbname: str) -> list[str]:
    """Name all functions, tables and types outside the system's schemas."""
    with server.connect(dbname=dbname) as superuser:
        rows = superuser.execute(
            "select pg_catalog.format('%s %s', i.type, i.identity)"
            " from ("
            "   select 'pg_proc'::pg_catalog.regclass, p.oid, p.pronamespace"
            "   from pg_catalog.pg_proc as p"
            "   union all select 'pg_class'::pg_catalog.regclass, c.oid, c.relnamespace"
            "   from pg_catalog.pg_class as c"
            "   union all select 'pg_type'::pg_catalog.regclass, t.oid, t.typnamespace"
            "   from pg_catalog.pg_type as t"
            " ) as o (class, object, namespace)"
            " join pg_catalog.pg_namespace as n on n.oid = o.namespace"
            " cross join lateral pg_catalog.pg_identify_object(o.class, o.object, 0) as i"
            " where n.nspname !~ '^(pg_|information_schema$)' order by 1"
        ).fetchall()
    return [row[0] for row in rows]


@pytest.mark.parametrize("role", ["public", provider.AUTHENTICATOR, *provider.API_ROLES])
def test_default_privileges_reach_nothing_of_ours(
    service: Server, furnished: str, role: str
) -> None:
    with service.connect(dbname=furnished) as superuser:
        leaks = superuser.execute(
            "select 'schema', n.nspname::text from pg_catalog.pg_namespace as n"
            " where n.nspname = any(%(ours)s)"
            "   and (has_schema_privilege(%(role)s, n.oid, 'usage')"
            "     or has_schema_privilege(%(role)s, n.oid, 'create'))"
            " union all"
            " select 'function', f.oid::pg_catalog.regprocedure::text from pg_catalog.pg_proc as f"
            " where f.pronamespace::pg_catalog.regnamespace::text = any(%(ours)s)"
            "   and has_function_privilege(%(role)s, f.oid, 'execute')"
            " union all"
            " select 'relation', c.oid::pg_catalog.regclass::text from pg_catalog.pg_class as c"
            " where c.relnamespace::pg_catalog.regnamespace::text = any(%(ours)s)"
            "   and c.relkind in ('r', 'p', 'v', 'm', 'f')"
            "   and (has_any_column_privilege("
            "       %(role)s, c.oid, 'select, insert, update, references')"
            "     or has_table_privilege(%(role)s, c.oid, 'delete, truncate, trigger'))"
            " union all"
            # Row types of tables have no privileges of their own.
            " select 'type', t.oid::pg_catalog.regtype::text from pg_catalog.pg_type as t"
            " left join pg_catalog.pg_class as c on c.oid = t.typrelid"
            " where t.typnamespace::pg_catalog.regnamespace::text = any(%(ours)s)"
            "   and (t.typtype in ('d', 'e') or c.relkind = 'c')"
            "   and has_type_privilege(%(role)s, t.oid, 'usage')",
            {"ours": list(OURS), "role": role},
        ).fetchall()
    assert leaks == []


def test_the_defaults_of_the_provider_do_work(service: Server, furnished: str) -> None:
    """Else the test above could not fail: what the deployer makes by itself is everybody's."""
    with service.connect(DEPLOYER, furnished) as connection:
        connection.execute("create schema theirs")
        connection.execute("create table theirs.rows ()")
        row = connection.execute(
            "select has_schema_privilege('anon', 'theirs', 'usage'),"
            " has_table_privilege('anon', 'theirs.rows', 'select')"
        ).fetchone()
        connection.rollback()
    assert row == (True, True)


def test_event_triggers_fired(service: Server, furnished: str) -> None:
    with service.connect(dbname=furnished) as superuser:
        row = superuser.execute(
            "select count(*) filter (where object = 'citeledger.chats'),"
            " count(*) filter (where object ~ '^citeledger.finalize_turn')"
            " from provider.journal where command ~ '^CREATE'"
        ).fetchone()
    assert row is not None
    assert min(row) > 0


def test_the_deployer_needs_no_event_trigger(service: Server, furnished: str) -> None:
    with service.connect(dbname=furnished) as superuser:
        rows = superuser.execute("select evtname from pg_catalog.pg_event_trigger").fetchall()
    assert sorted(rows) == [("provider_watch",), ("provider_watch_drops",)]


def test_a_grant_by_the_provider_is_seen_by_verify(service: Server, plain: str) -> None:
    """Default privileges for our own role are the one thing that reaches us; verify tells."""
    with service.database() as dbname:
        with service.connect(dbname=dbname, autocommit=True) as superuser:
            superuser.execute(
                "alter default privileges for role citeledger_owner grant select on tables to anon"
            )
        done = sqitch(service, dbname, "deploy", "--verify")
        assert done.returncode != 0
        said = done.stdout + done.stderr
        assert "ERROR:  citeledger.firms is not as it was deployed" in said
        assert "grant select to anon" in said


def pg_dump(server: Server, dbname: str, user: str, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(server.bin_dir / "pg_dump"), "--data-only", "--schema=citeledger", *more],
        check=False,
        capture_output=True,
        encoding="utf-8",
        env=server.environment(user, dbname),
    )


def test_a_first_role_that_is_exempt_from_row_security(service: Server, plain: str) -> None:
    """As Supabase's postgres: it deploys, and may dump; objects and functions are as ever."""
    with service.connect(autocommit=True) as superuser:
        superuser.execute("create role project_owner login createrole bypassrls nosuperuser")
        superuser.execute("grant citeledger_owner to project_owner")
    with service.database(owner="project_owner") as dbname:
        deploy_with_psql(service, dbname, user="project_owner")
        assert our_schema(service, dbname) == our_schema(service, plain)
        with service.connect(dbname=dbname) as superuser:
            firm_id = World.make(superuser).firm_id
        dumped = pg_dump(service, dbname, "project_owner")
        assert dumped.returncode == 0, dumped.stderr
        assert str(firm_id) in dumped.stdout
    with service.connect(autocommit=True) as superuser:
        superuser.execute("drop role project_owner")


def test_a_dump_under_row_security_is_empty(service: Server) -> None:
    """Why the page says never to use it: it succeeds, and the firm's rows are not in it."""
    with service.database() as dbname:
        deploy_with_psql(service, dbname)
        with service.connect(dbname=dbname) as superuser:
            world = World.make(superuser)
            chat_id = world.chat()
        refused = pg_dump(service, dbname, DEPLOYER)
        assert refused.returncode != 0
        assert "query would be affected by row-level security policy" in refused.stderr
        dumped = pg_dump(service, dbname, DEPLOYER, "--enable-row-security")
        assert dumped.returncode == 0, dumped.stderr
        assert str(chat_id) not in dumped.stdout
