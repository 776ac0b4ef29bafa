"""What a session keeps: cursors, prepared statements, temporary tables, channels, large objects.

======================================  ========================================================
attack                                  what must come of it
======================================  ========================================================
a cursor WITH HOLD over the end of      it keeps what its transaction could see, in its own
a context                               session, until it is closed: the boundary. Not more
a cursor opened in one context and      the rows of one of the two, never of both or of a third
fetched in another
a prepared statement over a change of   the rows of the context it is executed in
context, of role, of row_security
a function of ours prepared in one      the same
context and executed in another
a context that outlives its transaction it does not, after commit, rollback or a savepoint
LISTEN on every channel that might be   silence: the package notifies nobody
NOTIFY of a forged message              nobody of ours listens
large objects                           ours are none; the attacker's hold nothing of ours
pg_get_functiondef and the catalogs     source text and names are no secret; no row is in them
information_schema                      the objects that one may use, and none of the private
                                        schema
files and programs of the server        42501
======================================  ========================================================
"""

from __future__ import annotations

import psycopg
import pytest

from attack.asking import said, sqlstate
from attack.scene import FOREIGN, WALLED, Connection, Scene

MESSAGES = "select content from citeledger.messages order by content"


def test_a_held_cursor_keeps_what_its_transaction_saw_and_nothing_else(scene: Scene) -> None:
    """Behind a pool it would be the next user's to fetch from: so must a pool discard all."""
    with scene.database.connect("t_app") as connection:
        scene.enter(connection, scene.foreign_firm)
        connection.execute(f"declare held cursor with hold for {MESSAGES}")
        connection.commit()
        assert said(connection, MESSAGES) == "[]"
        scene.enter(connection)
        kept = connection.execute("fetch all from held").fetchall()
        assert len(kept) == 2
        assert all(FOREIGN in row[0] for row in kept)
        connection.commit()
        connection.autocommit = True
        connection.execute("discard all")
        assert sqlstate(connection, "fetch all from held") == "34000"


def test_a_cursor_over_a_change_of_context_shows_one_firm_and_never_two(scene: Scene) -> None:
    for first, second in (
        (scene.firm_id, scene.foreign_firm),
        (scene.foreign_firm, scene.firm_id),
    ):
        with scene.database.connect("t_app") as connection:
            scene.enter(connection, first)
            connection.execute(
                "declare c cursor for select firm_id from citeledger.messages order by created_at"
            )
            rows = connection.execute("fetch 1 from c").fetchall()
            scene.enter(connection, second)
            rows += connection.execute("fetch all from c").fetchall()
            assert {firm for (firm,) in rows} == {first}
            connection.execute("select citeledger.set_context(null)")
            connection.execute(f"declare d cursor for {MESSAGES}")
            assert connection.execute("fetch all from d").fetchall() == []


@pytest.mark.parametrize("plans", ["auto", "force_generic_plan", "force_custom_plan"])
def test_a_prepared_statement_shows_the_firm_of_the_context_it_is_executed_in(
    scene: Scene, plans: str
) -> None:
    with scene.database.connect("t_app") as connection:
        connection.execute(f"set plan_cache_mode = {plans}")
        scene.enter(connection, scene.foreign_firm)
        connection.execute(f"prepare p as {MESSAGES}")
        connection.execute(
            f"prepare q as select citeledger.ledger_trace('{scene.foreign.chat}')::text"
        )
        for _ in range(7):
            assert FOREIGN in said(connection, "execute p")
            assert FOREIGN in said(connection, "execute q")
        connection.commit()
        assert said(connection, "execute p") == "[]"
        assert said(connection, "execute q").startswith("42501")
        scene.enter(connection)
        for _ in range(7):
            own = said(connection, "execute p")
            assert FOREIGN not in own
            assert WALLED in own, "within the firm the app reads messages, also of walled matters"
            assert said(connection, "execute q").startswith("P0002")
        connection.execute("set local role citeledger_reader")
        assert said(connection, "execute p").startswith("42501")
        connection.execute("set local role t_app")
        connection.execute("set local row_security = off")
        assert said(connection, "execute p").startswith("42501")
        connection.execute("set local row_security = on")
        assert said(connection, "execute p") == own


def test_a_context_ends_with_its_transaction_or_savepoint(scene: Scene) -> None:
    with scene.database.connect("t_app") as connection:
        for end in (connection.commit, connection.rollback):
            scene.enter(connection)
            assert said(connection, MESSAGES) != "[]"
            end()
            assert said(connection, MESSAGES) == "[]"
            end()
        scene.enter(connection)
        with pytest.raises(psycopg.errors.DivisionByZero), connection.transaction():
            scene.enter(connection, scene.foreign_firm)
            assert FOREIGN in said(connection, MESSAGES)
            connection.execute("select 1 / 0")
        assert FOREIGN not in said(connection, MESSAGES)
        # A savepoint that is released keeps it, as any SET LOCAL does.
        with connection.transaction():
            scene.enter(connection, scene.foreign_firm)
        assert FOREIGN in said(connection, MESSAGES)


def test_nothing_of_ours_is_told_on_a_channel(scene: Scene) -> None:
    text = scene.superuser.execute(
        "select count(*) from pg_proc as p join pg_namespace as n on n.oid = p.pronamespace"
        " where n.nspname in ('citeledger', 'citeledger_private')"
        " and p.prosrc ~* '(pg_notify|\\mnotify\\M|\\mlisten\\M|dblink|lo_)'"
    ).fetchone()
    assert text == (0,)
    with (
        scene.database.connect("t_reader", autocommit=True) as listener,
        scene.database.connect("t_app") as writer,
    ):
        for channel in ("citeledger", "citeledger_private", "messages", "documents", "ledger"):
            listener.execute(f"listen {channel}")
        scene.enter(writer)
        writer.execute("select citeledger.finalize_turn(%s)", (scene.own.finalized,))
        writer.execute("update citeledger.documents set title = title")
        writer.commit()
        # Our own signal comes after all that the writer might have sent.
        writer.execute("select pg_notify('citeledger', 'forged')")
        writer.commit()
        heard = [n.payload for n in listener.notifies(timeout=5, stop_after=1)]
        assert heard == ["forged"]
        # And a forged signal moves nothing: nobody of ours listens.
        assert said(scene.superuser, "select * from pg_listening_channels()") == "[]"


def test_large_objects_hold_nothing_of_ours(scene: Scene, insider: Connection) -> None:
    assert scene.superuser.execute("select count(*) from pg_largeobject_metadata").fetchone() == (
        0,
    )
    for statement, expected in {
        "table pg_catalog.pg_largeobject": "42501",
        "select lo_import('/etc/hostname')": "42501",
        "select lo_export(1, '/tmp/citeledger-stolen')": "42501",
        "select lo_get(1)": "42704",
        "select lo_unlink(1)": "42704",
    }.items():
        assert sqlstate(insider, statement) == expected, statement


def test_files_and_programs_of_the_server_are_out_of_reach(
    insider: Connection, spy: Connection
) -> None:
    for connection in (insider, spy):
        for statement in (
            "select pg_read_file('postgresql.conf')",
            "select pg_ls_dir('.')",
            "select pg_stat_file('postgresql.conf')",
            "select pg_read_binary_file('global/pg_control')",
            "select pg_switch_wal()",
            "select pg_reload_conf()",
            "select pg_terminate_backend(p.pid) from pg_stat_activity as p"
            " where p.usename = 'postgres'",
            "select pg_stat_reset()",
            "select pg_logical_slot_get_changes('x', null, null)",
            "select pg_create_logical_replication_slot('x', 'pgoutput')",
            "create publication p for table citeledger.messages",
            "create subscription s connection '' publication p",
            "load 'auto_explain'",
            "create extension plpython3u",
            "create language plpython3u",
            "create function pg_temp.f() returns int language c as 'libc', 'system'",
            "create function pg_temp.f(int) returns int language internal as 'int4abs'",
            "create function pg_temp.f() returns bool leakproof language sql as 'select true'",
            "create server x foreign data wrapper y",
        ):
            answer = sqlstate(connection, statement)
            assert answer in ("42501", "42704", "0A000", "58P01", "25001"), (statement, answer)


def test_the_catalogs_show_source_and_names_and_no_row(scene: Scene, spy: Connection) -> None:
    """PostgreSQL's catalogs are open. So no secret may be in a body, a comment or a default."""
    shown = said(
        spy,
        "select p.prosrc, obj_description(p.oid, 'pg_proc'), p.proconfig from pg_proc as p"
        " join pg_namespace as n on n.oid = p.pronamespace where n.nspname like 'citeledger%'",
    )
    shown += said(
        spy,
        "select pg_get_functiondef(p.oid) from pg_proc as p"
        " where p.pronamespace = 'citeledger'::regnamespace",
    )
    assert "require_permission" in shown
    for secret in (FOREIGN, WALLED, str(scene.foreign_firm), str(scene.firm_id)):
        assert secret not in shown


def test_the_information_schema_shows_what_one_may_use(scene: Scene) -> None:
    for login, tables, functions in (("t_none", 0, 0), ("t_reader", 0, 15), ("t_app", 20, 25)):
        with scene.database.connect(login) as connection:
            found = {
                view: connection.execute(
                    f"select count(*) from information_schema.{view}"
                    f" where {column} like 'citeledger%'"
                ).fetchall()[0][0]
                for view, column in (
                    ("tables", "table_schema"),
                    ("routines", "routine_schema"),
                    ("triggers", "trigger_schema"),
                    ("views", "table_schema"),
                )
            }
            assert found["tables"] == tables
            assert found["routines"] >= functions
            assert functions or not found["routines"]
            private = (
                "select routine_name from information_schema.routines"
                " where routine_schema = 'citeledger_private'"
            )
            names = {name for (name,) in connection.execute(private)}
            assert names <= {"is_behind_wall"}, "the policy's own function, which it may execute"
            assert said(connection, "select citeledger_private.is_behind_wall(null, null)")[:5] == (
                "42501"
            )
