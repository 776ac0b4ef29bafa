"""Changing what is ours: every statement that would define, drop, lock or own something.

======================================  ========================================================
attack                                  what must come of it
======================================  ========================================================
alter, drop, comment, truncate, index,  42501, for each table, function, type and schema
trigger, rule, policy, statistics,
inherit, cluster, reindex, label
vacuum and analyze                      skipped with a warning
drop owned and reassign owned by a      nothing is dropped and no privilege is revoked
role that one is a member of
grant and revoke                        nothing can be given, nothing taken
default privileges of the owner         42501
event triggers, publications            42501
writing the ledger, verdicts, logs,     42501, by INSERT, UPDATE, DELETE, TRUNCATE, MERGE, COPY
pages and edges
unsealing a finalized turn              55000 or 42501, by every way to write
a typed table or a column of our type   the owner can still drop the type's schema by cascade
LOCK TABLE                              the three source tables to the end: denial of service
                                        within the boundary. No other beyond ROW EXCLUSIVE
advisory locks on the graph's key       anybody who may connect and knows the firm's id makes
                                        its ingests wait: within the boundary; nothing is lost
======================================  ========================================================
"""

from __future__ import annotations

import pytest

from attack.asking import heard, said, sqlstate
from attack.scene import Connection, Scene
from support.races import race

LOGINS = ("t_reader", "t_app")

TABLE = (
    "alter table {t} add column x int",
    "alter table {t} drop column created_at",
    "alter table {t} disable trigger all",
    "alter table {t} disable trigger user",
    "alter table {t} disable row level security",
    "alter table {t} no force row level security",
    "alter table {t} owner to current_user",
    "alter table {t} rename to x",
    "alter table {t} set schema lair_{login}",
    "alter table {t} alter column created_at set default '2000-01-01'",
    "alter table {t} alter column created_at set statistics 1000",
    "alter table {t} replica identity full",
    "alter table {t} set (autovacuum_enabled = off)",
    "alter table {t} set unlogged",
    "alter table {t} cluster on x",
    "drop table {t}",
    "drop table {t} cascade",
    "truncate {t}",
    "truncate {t} cascade",
    "comment on table {t} is 'x'",
    "comment on column {t}.created_at is 'x'",
    "create index on {t} (created_at)",
    "create statistics lair_{login}.s on created_at, firm_id from {t}",
    "create trigger t before insert on {t} for each row execute function"
    " suppress_redundant_updates_trigger()",
    "create rule r as on insert to {t} do instead nothing",
    "create rule r as on select to {t} do instead select 1",
    "create policy p on {t} using (true)",
    "create table lair_{login}.heir () inherits ({t})",
    "create temporary table heir () inherits ({t})",
    "create table lair_{login}.part partition of {t} default",
    "cluster {t}",
    "reindex table {t}",
    "security label on table {t} is 'x'",
    "grant select on {t} to t_none",
    "grant all on {t} to public",
    "create publication p for table {t}",
    "select pg_catalog.pg_get_serial_sequence('{t}', 'created_at') from {t} for update of x",
)


@pytest.mark.parametrize("login", LOGINS)
def test_no_table_of_ours_is_redefined(scene: Scene, login: str) -> None:
    refused = {"42501", "42809", "42P01", "42P17", "0A000", "22023", "42704", "25001"}
    before = definitions(scene)
    with scene.database.connect(login) as connection:
        scene.enter(connection)
        for table in scene.tables:
            for statement in TABLE:
                made = statement.format(t=f"citeledger.{table}", login=login)
                with heard(connection) as warnings:
                    answer = sqlstate(connection, made)
                if made.startswith("grant") and answer is None:
                    assert warnings == [f'WARNING no privileges were granted for "{table}"']
                else:
                    assert answer in refused, made
    assert definitions(scene) == before


OTHERS = (
    "alter function citeledger.cite(uuid, jsonb) reset search_path",
    "alter function citeledger.cite(uuid, jsonb) security invoker",
    "alter function citeledger.cite(uuid, jsonb) leakproof",
    "alter function citeledger.cite(uuid, jsonb) owner to current_user",
    "drop function citeledger.cite(uuid, jsonb) cascade",
    "comment on function citeledger.cite(uuid, jsonb) is 'x'",
    "create or replace function citeledger.current_firm_id() returns uuid language sql as"
    " 'select null::uuid'",
    "create function citeledger.extra() returns int language sql as 'select 1'",
    "create table citeledger.extra (id int)",
    "create view citeledger.extra as select 1",
    "create type citeledger.extra as (id int)",
    "create operator citeledger.= (function = pg_catalog.uuid_eq, leftarg = uuid, rightarg = uuid)",
    "create cast (citeledger.span_resolution as text) with inout as implicit",
    "create cast (uuid as text) with inout as implicit",
    "alter type citeledger.span_resolution add attribute x int",
    "drop type citeledger.span_resolution cascade",
    "alter schema citeledger rename to x",
    "alter schema citeledger owner to current_user",
    "drop schema citeledger cascade",
    "create schema citeledger",
    "alter default privileges for role citeledger_owner grant execute on functions to public",
    "alter default privileges for role citeledger_owner in schema citeledger grant select on"
    " tables to public",
    "grant citeledger_owner to current_user",
    "grant citeledger_admin to current_user",
    "grant citeledger_app to t_none",
    "revoke citeledger_reader from citeledger_app",
    "grant usage on schema citeledger to t_none",
    "grant create on schema citeledger to current_user",
    "alter role citeledger_owner login",
    "alter role citeledger_app bypassrls",
    "alter role current_user bypassrls",
    "alter role current_user superuser",
    "drop role citeledger_reader",
    "create role attacker",
    "alter policy messages_of_the_firm on citeledger.messages using (true)",
    "drop policy projects_behind_a_wall on citeledger.projects",
    "drop trigger messages_seal on citeledger.messages",
    "alter trigger messages_seal on citeledger.messages rename to x",
    "alter table citeledger.messages drop constraint messages_role_is_known",
    "alter index citeledger.messages_pkey rename to x",
    "drop index citeledger.citation_ledger_entry_citation_key",
    "set constraints all deferred; set constraints citeledger.messages_chat_fkey deferred",
    "create event trigger e on ddl_command_start execute function x()",
    "create extension pg_stat_statements",
    "alter system set row_security = off",
    "alter database {db} set row_security = off",
    "alter database {db} owner to current_user",
    "drop database {db}",
    "import foreign schema x from server y into lair",
    "reassign owned by citeledger_owner to current_user",
    "drop owned by citeledger_owner cascade",
    "drop owned by citeledger_admin cascade",
    "prepare transaction 'x'",
    "checkpoint",
)


@pytest.mark.parametrize("login", LOGINS)
def test_nothing_else_of_ours_is_redefined(scene: Scene, login: str) -> None:
    before = definitions(scene)
    with scene.database.connect(login) as connection:
        for statement in OTHERS:
            made = statement.format(db=scene.database.name)
            with heard(connection) as warnings:
                answer = sqlstate(connection, made)
            if answer is None:
                assert warnings, made
                assert "no privileges" in warnings[0], made
            else:
                # What stands first in the way differs: a privilege, a state, a missing object.
                assert answer[:2] in ("42", "55", "25", "22", "0A", "2B", "0L"), (made, answer)
    assert definitions(scene) == before


@pytest.mark.parametrize("login", LOGINS)
def test_a_member_who_drops_what_the_role_owns_takes_no_privilege_from_it(
    scene: Scene, login: str
) -> None:
    """It would be every application's privileges. Who did not grant them cannot revoke them."""
    before = definitions(scene)
    with scene.database.connect(login) as connection:
        for role in ("citeledger_reader", "citeledger_app", "current_user"):
            for statement in (
                f"drop owned by {role} cascade",
                f"reassign owned by {role} to current_user",
            ):
                with connection.transaction():
                    if role == "citeledger_app" and login == "t_reader":
                        assert sqlstate(connection, statement) == "42501"
                        continue
                    # Not its own schema, which other tests use.
                    if role != "current_user":
                        connection.execute(statement)
        connection.commit()
    assert definitions(scene) == before


def test_vacuum_and_analyze_are_skipped_with_a_warning(scene: Scene) -> None:
    for login in LOGINS:
        with scene.database.connect(login, autocommit=True) as connection:
            for statement in (
                "vacuum citeledger.messages",
                "analyze citeledger.messages",
                "vacuum full citeledger.messages",
            ):
                with heard(connection) as warnings:
                    connection.execute(statement)
                assert warnings, statement
                assert "permission denied" in warnings[0] or "only table" in warnings[0]


WRITTEN_BY_FUNCTIONS = (
    "citation_ledger_entry",
    "citation_ledger_entry_revision",
    "work_product_fiduciary_gate",
    "finalize_failure",
    "document_citations",
    "document_references",
    "document_pages",
    "document_page_blocks",
    "project_members",
)


@pytest.mark.parametrize("table", WRITTEN_BY_FUNCTIONS)
@pytest.mark.parametrize("login", LOGINS)
def test_what_functions_write_nobody_else_writes(scene: Scene, login: str, table: str) -> None:
    with scene.database.connect(login) as connection:
        scene.enter(connection)
        for statement in (
            "insert into citeledger.{t} default values",
            "insert into citeledger.{t} default values on conflict do nothing",
            "update citeledger.{t} set created_at = now()",
            "update citeledger.{t} set firm_id = firm_id",
            "delete from citeledger.{t}",
            "truncate citeledger.{t}",
            "copy citeledger.{t} from stdin",
            "merge into citeledger.{t} as t using (select 1) as x on true when matched then delete",
            "merge into citeledger.{t} as t using (select 1) as x on false"
            " when not matched then insert default values",
            "select * from citeledger.{t} for update",
            "select * from citeledger.{t} for key share",
            "with x as (delete from citeledger.{t} returning 1) select * from x",
        ):
            made = statement.format(t=table)
            assert sqlstate(connection, made) == "42501", made


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("update citeledger.messages set content = 'x' where id = '{m}'", "55000"),
        ("update citeledger.messages set finalized_at = null where id = '{m}'", "55000"),
        ("update citeledger.messages set finalized_at = now() where id = '{m}'", "55000"),
        ("update citeledger.messages set role = 'user' where id = '{m}'", "42501"),
        ("update citeledger.messages set chat_id = '{c}' where id = '{m}'", "42501"),
        ("update citeledger.messages set id = gen_random_uuid() where id = '{m}'", "42501"),
        ("delete from citeledger.messages where id = '{m}'", "42501"),
        ("delete from citeledger.chats", "42501"),
        ("delete from citeledger.documents", "42501"),
        (
            "insert into citeledger.messages (id, chat_id, role) values ('{m}', '{c}', 'user')"
            " on conflict (firm_id, id) do update set content = 'x', finalized_at = null",
            "55000",
        ),
        (
            "merge into citeledger.messages as m using (select 1) as x on m.id = '{m}'"
            " when matched then update set content = 'x'",
            "55000",
        ),
        (
            "with a as (update citeledger.messages set finalized_at = now() where id = '{o}')"
            " delete from citeledger.message_citations where message_id = '{o}'",
            "55000",
        ),
        (
            "with a as (delete from citeledger.message_citations where message_id = '{o}')"
            " update citeledger.messages set finalized_at = now() where id = '{o}'",
            "55000",
        ),
        ("delete from citeledger.message_citations where message_id = '{m}'", "55000"),
        ("delete from citeledger.message_caselaw_citations where message_id = '{m}'", "55000"),
        ("delete from citeledger.message_tool_sources where message_id = '{m}'", "55000"),
        (
            "merge into citeledger.message_citations as s using (select 1) as x"
            " on s.message_id = '{m}' when matched then delete",
            "55000",
        ),
        ("set local role citeledger_app; delete from citeledger.message_tool_sources", "55000"),
        ("set local role citeledger_reader; delete from citeledger.message_citations", "42501"),
        ("truncate citeledger.message_citations", "42501"),
        ("update citeledger.message_citations set source_text = 'x'", "42501"),
        ("update citeledger.message_citations set source_document_id = null", "42501"),
        ("update citeledger.message_citations set message_id = '{o}'", "42501"),
        ("update citeledger.message_citations set created_at = now()", "42501"),
        ("update citeledger.message_tool_sources set label = 'x'", "42501"),
        (
            "insert into citeledger.message_citations (id, message_id, source_text)"
            " select id, message_id, 'x' from citeledger.message_citations"
            " on conflict (firm_id, id) do update set source_text = 'x'",
            "42501",
        ),
    ],
)
def test_a_finalized_turn_stays_sealed(
    scene: Scene, insider: Connection, statement: str, expected: str
) -> None:
    made = statement.format(m=scene.own.finalized, o=scene.own.open, c=scene.own.chat)
    assert sqlstate(insider, made) == expected


@pytest.mark.parametrize(
    "statement",
    [
        "update citeledger.message_citations set verified = false where message_id = '{m}'",
        "insert into citeledger.message_citations (id, message_id, source_text)"
        " select id, message_id, 'x' from citeledger.message_citations where message_id = '{m}'"
        " on conflict (firm_id, id) do update set verified = false",
        "merge into citeledger.message_citations as s using (select 1) as x"
        " on s.message_id = '{m}' when matched then update set verified = false",
        "with a as (update citeledger.message_citations set verified = false"
        " where message_id = '{m}' returning 1) select count(*) from a",
        "update citeledger.message_citations set verification_method = 'failed', verified = false"
        " where message_id = '{m}'",
    ],
)
def test_no_way_to_change_a_verification_passes_the_ledger_by(
    scene: Scene, insider: Connection, statement: str
) -> None:
    """ON CONFLICT, MERGE and a writing WITH are updates too: entry, revision, verdict follow."""
    with insider.transaction(force_rollback=True):
        insider.execute(statement.format(m=scene.own.finalized))
        assert insider.execute(
            "select g.gate_status, g.fail_count,"
            " (select count(*) from citeledger.citation_ledger_entry_revision as r"
            "   where r.message_id = g.message_id)"
            " from citeledger.work_product_fiduciary_gate as g where g.message_id = %s",
            (scene.own.finalized,),
        ).fetchone() == ("flagged", 1, 1)
        assert said(insider, "select * from citeledger.check_integrity()") == "[]"


def test_what_is_finalized_and_cited_in_one_statement_is_counted(
    scene: Scene, insider: Connection
) -> None:
    with insider.transaction(force_rollback=True):
        insider.execute(
            "with a as (insert into citeledger.message_citations (message_id, source_text)"
            " values (%s, 'x')), b as (insert into citeledger.message_tool_sources"
            " (message_id, source_kind, label) values (%s, 'x', 'x'))"
            " update citeledger.messages set finalized_at = now() where id = %s",
            (scene.own.open,) * 3,
        )
        assert insider.execute(
            "select g.gate_status, g.fail_count, g.total_assertions"
            " from citeledger.work_product_fiduciary_gate as g where g.message_id = %s",
            (scene.own.open,),
        ).fetchone() == ("flagged", 1, 3)
        assert said(insider, "select * from citeledger.check_integrity()") == "[]"


def test_a_lock_on_a_whole_table_is_to_be_had_on_the_sources_alone(
    scene: Scene, insider: Connection, spy: Connection
) -> None:
    """Who may delete from a table may lock it. Every firm waits, then: a denial of service."""
    strong = {
        table
        for table in scene.tables
        if sqlstate(insider, f"lock table citeledger.{table} in access exclusive mode") is None
    }
    assert strong == {"message_citations", "message_caselaw_citations", "message_tool_sources"}
    for table in set(scene.tables) - strong:
        for mode in ("share", "share row exclusive", "exclusive", "share update exclusive"):
            assert sqlstate(insider, f"lock table citeledger.{table} in {mode} mode") == "42501"
    for table in scene.tables:
        assert sqlstate(spy, f"lock table citeledger.{table} in access share mode") == "42501"


def test_a_squatted_advisory_lock_makes_a_firms_ingests_wait_and_no_others(scene: Scene) -> None:
    """Advisory locks belong to nobody: even a login without a role of ours takes this one.

    It must know the firm's id. Ingests of that firm wait until it goes, or their lock_timeout
    strikes; nothing is lost, other firms and turns do not notice. An administrator ends it.
    """
    key = "hashtextextended('citeledger graph ' || %s::uuid, 0)"
    with (
        scene.database.connect("t_none", autocommit=True) as squatter,
        scene.database.connect("t_app") as app,
    ):
        squatter.execute(f"select pg_advisory_lock({key})", (scene.firm_id,))
        scene.enter(app)
        app.execute("set local lock_timeout = '50ms'")
        assert (
            sqlstate(
                app,
                "select citeledger.record_references(%s, '{10.5555/b}')",
                (scene.graph["a"],),
            )
            == "55P03"
        )
        assert sqlstate(app, "update citeledger.documents set doi = null") == "55P03"
        turn = said(app, "select citeledger.finalize_turn(%s)", (scene.own.open,))
        assert "'failures': []" in turn
        trace = said(app, "select citeledger.ledger_trace(%s)", (scene.own.chat,))
        assert trace.startswith("[(")
        scene.enter(app, scene.foreign_firm)
        assert said(app, "select citeledger.record_references(%s, '{}')", (scene.graph["secret"],))
        squatter.execute("select pg_advisory_unlock_all()")
        scene.enter(app)
        assert sqlstate(app, "update citeledger.documents set doi = null") is None
        assert (
            sqlstate(app, "select pg_terminate_backend(%s)", (squatter.info.backend_pid,))
            == "42501"
        )


def test_a_lock_on_a_turn_is_within_the_boundary_and_ends_with_its_session(scene: Scene) -> None:
    """A session of the app holds a turn: finalize says that it is busy, and nobody waits long."""
    with race(scene.database.connect) as running:
        holder = running.session("t_app", before=scene.enter)
        holder.run("select 1 from citeledger.messages where id = %s for update", (scene.own.open,))
        other = running.session("t_app", before=scene.enter)
        other.run("set local lock_timeout = '50ms'")
        report = other.value("select citeledger.finalize_turn(%s)", (scene.own.open,))
        assert report["finalized"] is False
        assert report["failures"] == [{"stage": "lock", "sqlstate": "55P03"}]
        other.rollback()


def definitions(scene: Scene) -> list[tuple[object, ...]]:
    """Return what the catalogs say of all that is ours, privileges and all."""
    return scene.superuser.execute(
        """
        select 'relation', c.oid::regclass::text, c.relowner::regrole::text, c.relacl::text,
          concat(c.relrowsecurity, c.relforcerowsecurity, c.relhastriggers, c.relhasrules,
            c.relhassubclass, c.reloptions)
        from pg_class as c
        where c.relnamespace in ('citeledger'::regnamespace, 'citeledger_private'::regnamespace)
        union all
        select 'column', a.attrelid::regclass::text || '.' || a.attname, a.attacl::text,
          a.atttypid::regtype::text, concat(a.attnotnull, a.attstattarget)
        from pg_attribute as a
        join pg_class as c on c.oid = a.attrelid
        where c.relnamespace = 'citeledger'::regnamespace
        union all
        select 'function', p.oid::regprocedure::text, p.proowner::regrole::text, p.proacl::text,
          concat(p.prosecdef, p.proleakproof, p.proconfig, md5(p.prosrc))
        from pg_proc as p
        where p.pronamespace in ('citeledger'::regnamespace, 'citeledger_private'::regnamespace)
        union all
        select 'trigger', t.tgrelid::regclass::text, t.tgname, t.tgenabled::text, ''
        from pg_trigger as t
        join pg_class as c on c.oid = t.tgrelid
        where c.relnamespace = 'citeledger'::regnamespace and not t.tgisinternal
        union all
        select 'policy', p.polrelid::regclass::text, p.polname, p.polpermissive::text,
          concat(pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid))
        from pg_policy as p
        union all
        select 'schema', n.nspname, n.nspowner::regrole::text, n.nspacl::text, ''
        from pg_namespace as n where n.nspname like 'citeledger%'
        union all
        select 'default', d.defaclrole::regrole::text, d.defaclobjtype::text, d.defaclacl::text, ''
        from pg_default_acl as d
        union all
        select 'role', r.rolname, concat(r.rolsuper, r.rolbypassrls, r.rolcanlogin),
          array(
            select m.member::regrole::text || m.admin_option
            from pg_auth_members as m where m.roleid = r.oid order by 1
          )::text, ''
        from pg_roles as r where r.rolname like 'citeledger%'
        order by 1, 2, 3
        """
    ).fetchall()
