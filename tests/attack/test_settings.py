"""Games with settings: what a session may set, and what that changes.

======================================  ========================================================
attack                                  what must come of it
======================================  ========================================================
settings of style, of plans and of      every function answers as before
parsing, one after the other
row_security off                        42501 for whoever reads a table; nothing is shown
session_replication_role, and others    42501
of the superuser
set role and set session authorization  42501 for every role that was not granted
set role none, reset, discard all       no more rights than before
a forged citeledger.firm_id             the documented boundary: it is what set_context does,
                                        for a role that may; for another role nothing
forged settings beside claims           the firm's own source counts, permissions are not mixed
malformed settings                      no context, never an open door
settings that last for the login        of ours refused; built-in ones change no answer
a function that sets while a statement  triggers work for the rows' firm, or refuse
runs
read-only and other isolation levels    nothing written, or no verdict, as documented
timeouts that strike in the middle      the whole statement is undone
======================================  ========================================================
"""

from __future__ import annotations

import json

import psycopg
import pytest

from attack.asking import said, sqlstate
from attack.battery import play
from attack.scene import FOREIGN, WALLED, Connection, Scene
from support.records import PERSON

# All of a group at once; where one of them changes an answer, the difference says in what.
HARMLESS = {
    "of parsing": (
        "standard_conforming_strings = off",
        "backslash_quote = on",
        "escape_string_warning = off",
        "array_nulls = off",
        "transform_null_equals = on",
        "xmloption = 'document'",
        "check_function_bodies = off",
        "search_path = ''",
    ),
    "of style": (
        "bytea_output = 'escape'",
        "datestyle = 'German, DMY'",
        "intervalstyle = 'sql_standard'",
        "timezone = 'Pacific/Apia'",
        "lc_monetary = 'C'",
        "lc_numeric = 'C'",
        "lc_time = 'C'",
        "default_text_search_config = 'pg_catalog.simple'",
        "client_min_messages = 'debug5'",
        "debug_print_plan = on",
        "application_name = 'citeledger_owner'",
    ),
    "of transactions": (
        "default_transaction_isolation = 'serializable'",
        "default_transaction_read_only = on",
        "synchronous_commit = off",
        "role = none",
        "default_toast_compression = 'pglz'",
        "commit_siblings = 0",
        "vacuum_freeze_min_age = 0",
        "search_path = pg_temp, public",
    ),
    "of plans, always made anew": (
        # Else the price of a plan that was ruled out has each of them compiled.
        "jit = off",
        "plan_cache_mode = 'force_custom_plan'",
        "enable_seqscan = off",
        "enable_nestloop = off",
        "geqo_threshold = 2",
        "work_mem = '64kB'",
        "constraint_exclusion = on",
    ),
    "of plans, always kept": (
        "jit = off",
        "plan_cache_mode = 'force_generic_plan'",
        "enable_indexscan = off",
        "enable_bitmapscan = off",
        "enable_hashjoin = off",
        "enable_sort = off",
        "from_collapse_limit = 1",
        "cursor_tuple_fraction = 1",
    ),
    "of parallel plans": (
        "parallel_setup_cost = 0",
        "parallel_tuple_cost = 0",
        "min_parallel_table_scan_size = 0",
        "min_parallel_index_scan_size = 0",
    ),
}
SUPERUSERS = (
    "session_replication_role = 'replica'",
    "session_preload_libraries = 'x'",
    "max_stack_depth = '100kB'",
    "track_functions = 'all'",
    "log_statement = 'none'",
    "log_min_messages = 'panic'",
    "lc_messages = 'C'",
    "zero_damaged_pages = on",
    "ignore_system_indexes = off",
    "allow_system_table_mods = on",
    "deadlock_timeout = 1",
    "temp_file_limit = 0",
    "wal_level = 'minimal'",
    "dynamic_library_path = '/tmp'",
    "session_authorization = 'postgres'",
    "role = 'citeledger_owner'",
    "role = 'citeledger_admin'",
    "role = 'postgres'",
    "role = 'pg_read_all_data'",
)


@pytest.fixture(scope="module")
def undisturbed(scene: Scene) -> dict[str, str]:
    """Give what everything answers the app when nobody attacks."""
    with scene.database.connect("t_app") as connection:
        return play(connection, scene, "t_app")


@pytest.mark.parametrize("group", HARMLESS)
def test_no_setting_changes_what_a_function_answers(
    scene: Scene, undisturbed: dict[str, str], group: str
) -> None:
    def first(connection: Connection) -> None:
        for setting in HARMLESS[group]:
            connection.execute(f"set local {setting}")

    with scene.database.connect("t_app") as connection:
        assert play(connection, scene, "t_app", first) == undisturbed


def test_quoted_identifiers_do_not_make_a_sound_table_a_violation(
    scene: Scene, spy: Connection
) -> None:
    spy.execute("set local quote_all_identifiers = on")
    assert said(spy, "select * from citeledger.metadata_only_violations()") == "[]"


def test_a_setting_of_numbers_changes_what_is_printed_and_not_what_is_stored(
    scene: Scene, undisturbed: dict[str, str]
) -> None:
    """The server writes numbers into text and JSON as the session asks; the verdict is no text."""
    with scene.database.connect("t_app") as connection:
        found = play(
            connection, scene, "t_app", lambda c: c.execute("set local extra_float_digits = -15")
        )
        assert {n for n in found if found[n] != undisturbed[n]} <= {
            "compute_and_record_gate",
            "finalize_turn",
            "ledger_trace",
        }
        stored = []
        for digits in (1, -15):
            with connection.transaction(force_rollback=True):
                scene.enter(connection)
                connection.execute(f"set local extra_float_digits = {digits}")
                connection.execute("select citeledger.finalize_turn(%s)", (scene.own.open,))
                connection.execute("set local extra_float_digits = 3")
                stored.append(
                    connection.execute(
                        "select g.confidence from citeledger.work_product_fiduciary_gate as g"
                        " where g.message_id = %s",
                        (scene.own.open,),
                    ).fetchone()
                )
        assert stored[0] == stored[1]


@pytest.mark.parametrize("login", ["t_reader", "t_app"])
@pytest.mark.parametrize("setting", SUPERUSERS)
def test_what_only_a_superuser_may_set_is_refused(scene: Scene, login: str, setting: str) -> None:
    with scene.database.connect(login) as connection:
        for how in ("set", "set local", "alter role current_user set"):
            if how.startswith("alter") and setting.startswith(("role", "session_auth")):
                continue
            answer = sqlstate(connection, f"{how} {setting}")
            if setting.startswith(("wal_level", "ignore_system_indexes")):
                assert answer in ("55P02", "42501")  # not while the server, or the session, runs
            else:
                assert answer == "42501", (how, answer)


def test_row_security_off_shows_nothing_and_lets_nothing_through(
    scene: Scene, insider: Connection
) -> None:
    """It asks for an error instead of a filter, and our functions get that error as well."""
    insider.execute("set local row_security = off")
    for statement in (
        "table citeledger.messages",
        "select count(*) from citeledger.projects",
        "copy citeledger.documents to stdout",
        "update citeledger.documents set title = 'x'",
        "insert into citeledger.chats (title) values ('x') returning *",
        f"select citeledger.ledger_trace('{scene.own.chat}')",
        f"select citeledger.finalize_turn('{scene.own.open}')",
        f"select * from citeledger.read_pages('{scene.records.matter}', '{scene.records.record}')",
    ):
        assert said(insider, statement).startswith("42501 query would be affected by row-level")


@pytest.mark.parametrize("login", ["t_reader", "t_app"])
def test_no_role_is_taken_that_was_not_given(scene: Scene, login: str) -> None:
    given = {"t_reader": {"citeledger_reader"}, "t_app": {"citeledger_reader", "citeledger_app"}}
    roles = [r for (r,) in scene.superuser.execute("select rolname from pg_roles").fetchall()]
    with scene.database.connect(login) as connection:
        for role in set(roles) - {login}:
            answer = sqlstate(connection, f'set role "{role}"')
            assert (answer is None) == (role in given[login]), (role, answer)
            assert sqlstate(connection, f'set session authorization "{role}"') == "42501"
            outside = f'create function pg_temp.f() returns int language sql set role = "{role}"'
            if role not in given[login]:
                assert said(connection, f"{outside} as 'select 1'").startswith("42501"), role
        for back in ("set role none", "reset role", "reset session authorization", "reset all"):
            assert sqlstate(connection, back) is None
            connection.execute(back)
            assert connection.execute("select current_user, session_user").fetchone() == (
                login,
                login,
            )


def test_a_role_that_was_given_up_still_sees_the_wall(scene: Scene, insider: Connection) -> None:
    for role in ("citeledger_app", "t_app"):
        insider.execute(f"set local role {role}")
        assert WALLED not in said(insider, "table citeledger.projects")
        assert sqlstate(insider, "delete from citeledger.message_tool_sources") == "55000"


def test_a_forged_firm_is_the_documented_boundary_and_not_more(scene: Scene) -> None:
    """The app may be any firm: that is what its role is trusted with. A plain ``set`` outlives the
    transaction, set_context does not. A role of nothing gets nothing by it.
    """
    forge = "select set_config('citeledger.firm_id', %s, %s),"
    forge += " set_config('citeledger.permissions', '{matters:read}', %s)"
    theirs = str(scene.foreign_firm)
    with scene.database.connect("t_app", autocommit=True) as connection:
        connection.execute(forge, (theirs, False, False))
        assert FOREIGN in said(connection, "table citeledger.messages")
        assert str(scene.own.open) not in said(connection, "table citeledger.messages")
        connection.execute("discard all")
        assert said(connection, "table citeledger.messages") == "[]"
        with connection.transaction():
            scene.enter(connection, scene.foreign_firm)
            assert FOREIGN in said(connection, "table citeledger.messages")
        assert said(connection, "table citeledger.messages") == "[]"
    with scene.database.connect("t_reader", autocommit=True) as connection:
        connection.execute(forge, (theirs, False, False))
        trace = f"select citeledger.ledger_trace('{scene.foreign.chat}')"
        assert FOREIGN in said(connection, trace)
        assert said(connection, "table citeledger.messages").startswith("42501")
        assert said(connection, f"select citeledger.ledger_trace('{scene.own.chat}')").startswith(
            "P0002"
        )
    with scene.database.connect("t_none", autocommit=True) as connection:
        connection.execute(forge, (theirs, False, False))
        for statement in (trace, "table citeledger.messages", "select citeledger.version()"):
            assert said(connection, statement).startswith("42501")


def test_a_forged_person_passes_the_wall_and_a_forged_firm_does_not(scene: Scene) -> None:
    """Who the person is, the caller says: the boundary again. Nobody is no member."""
    with scene.database.connect("t_app") as connection:
        scene.enter(connection, person=PERSON)
        walled = f"select citeledger.ledger_trace('{scene.walled.chat}')"
        assert WALLED in said(connection, walled)
        for person in ("", "00000000-0000-0000-0000-000000000000", f"{{{PERSON}}}", "' or true --"):
            connection.execute("select set_config('citeledger.user_id', %s, true)", (person,))
            assert said(connection, walled).startswith("P0002")


@pytest.mark.parametrize(
    "firm",
    [
        " ",
        "*",
        "%",
        "null",
        "00000000-0000-0000-0000-000000000000",
        "' or true --",
        "{own}\n",
        " {own}",
        "{{{own}}}",
        "{own},{foreign}",
        "urn:uuid:{own}",
    ],
)
def test_a_malformed_firm_is_no_context(scene: Scene, firm: str) -> None:
    with scene.database.connect("t_app") as connection:
        connection.execute(
            "select set_config('citeledger.firm_id', %s, true),"
            " set_config('citeledger.permissions', '{matters:read}', true),"
            " set_config('request.jwt.claims', %s, true)",
            (
                firm.format(own=scene.firm_id, foreign=scene.foreign_firm),
                json.dumps({"firm_id": str(scene.firm_id), "permissions": ["matters:read"]}),
            ),
        )
        assert said(connection, "table citeledger.messages") == "[]"
        assert said(connection, "table citeledger.firms") == "[]"
        assert sqlstate(connection, "select * from citeledger.check_integrity()") in (
            "42501",
            None,
        )
        assert said(connection, f"select citeledger.ledger_trace('{scene.own.chat}')")[:5] in (
            "42501",
            "P0002",
        )


@pytest.mark.parametrize(
    "permissions",
    [
        "matters:read",
        "{*}",
        "{matters}",
        "{MATTERS:READ}",
        '{"matters:read}',
        "{{matters:read}}",
        "{matters:read",
        "matters:read}",
        "{ matters:read }",
        "[0:0]={matters:read}",
        '{"matters:read" }',
        '["matters:read"]',
        "{matters:read}\n",
        "{NULL}",
    ],
)
def test_malformed_permissions_grant_nothing(scene: Scene, permissions: str) -> None:
    with scene.database.connect("t_reader") as connection:
        connection.execute(
            "select set_config('citeledger.firm_id', %s, true),"
            " set_config('citeledger.permissions', %s, true)",
            (str(scene.firm_id), permissions),
        )
        assert said(connection, f"select citeledger.ledger_trace('{scene.own.chat}')").startswith(
            "42501"
        )


def test_claims_and_settings_are_never_mixed(scene: Scene, spy: Connection) -> None:
    """A caller with claims cannot add a permission, a person or a firm by what it may set."""
    claims = {"firm_id": str(scene.firm_id), "sub": str(PERSON), "permissions": []}
    spy.execute(
        "select set_config('request.jwt.claims', %s, true),"
        " set_config('citeledger.firm_id', '', true),"
        " set_config('citeledger.permissions', '{matters:read}', true),"
        " set_config('citeledger.user_id', %s, true)",
        (json.dumps(claims), str(PERSON)),
    )
    trace = f"select citeledger.ledger_trace('{scene.own.chat}')"
    assert said(spy, trace).startswith("42501")
    assert said(
        spy, "select citeledger.set_context(%s, null, '{matters:read}')", (scene.foreign_firm,)
    ).startswith("42501 the context comes from request.jwt.claims")
    spy.execute(
        "select set_config('request.jwt.claims', %s, true)",
        (json.dumps(claims | {"permissions": ["matters:read"], "sub": None}),),
    )
    assert said(spy, trace).startswith("[(")
    assert said(spy, f"select citeledger.ledger_trace('{scene.walled.chat}')").startswith("P0002")


@pytest.mark.parametrize(
    "claims",
    [
        '{"firm_id": ["%s"]}',
        '{"firm_id": {"a": "%s"}}',
        '["firm_id", "%s"]',
        '"%s"',
        '{"FIRM_ID": "%s"}',
        '{"firm_id": "%s", "firm_id": null}',
        "7",
        "null",
        "{}",
    ],
)
def test_claims_of_another_shape_are_no_context(scene: Scene, claims: str) -> None:
    with scene.database.connect("t_app") as connection:
        connection.execute(
            "select set_config('request.jwt.claims', %s, true)",
            (claims.replace("%s", str(scene.firm_id)),),
        )
        assert said(connection, "table citeledger.messages") == "[]"
        assert said(connection, "select citeledger.has_permission('matters:read')") == "[(False,)]"
    with scene.database.connect("t_app") as connection:
        connection.execute("select set_config('request.jwt.claims', '{', true)")
        assert said(connection, "table citeledger.messages").startswith("22P02")


def test_a_lasting_context_cannot_be_planted_in_a_role_or_database(
    scene: Scene, insider: Connection
) -> None:
    """It would outlive every pool and greet each new session of the login."""
    for where in (
        "alter role current_user",
        f"alter role current_user in database {scene.database.name}",
        "alter role citeledger_app",
        f"alter database {scene.database.name}",
    ):
        for setting in ("citeledger.firm_id", "citeledger.permissions", "request.jwt.claims"):
            assert sqlstate(insider, f"{where} set {setting} = 'x'") == "42501", where


def test_settings_that_last_for_the_login_make_it_fail_and_never_leak(scene: Scene) -> None:
    """A login may bend its own defaults; a DBA sees them in pg_db_role_setting and resets them."""
    where = f"alter role t_app in database {scene.database.name}"
    try:
        with scene.database.connect("t_app", autocommit=True) as connection:
            for setting in (
                "row_security = off",
                "default_transaction_isolation = 'repeatable read'",
                "search_path = pg_temp, public",
            ):
                connection.execute(f"{where} set {setting}")
        with scene.database.connect("t_app") as connection:
            scene.enter(connection)
            assert said(connection, "table citeledger.messages").startswith("42501")
            connection.execute("set local row_security = on")
            report = said(connection, f"select citeledger.finalize_turn('{scene.own.open}')")
            assert "'gate': None" in report
            assert "'stage': 'isolation'" in report
    finally:
        scene.superuser.execute(f"{where} reset all")


MEDDLE = """
create function lair_t_app.meddle(setting text, said text) returns text language plpgsql as $$
begin
  perform set_config(setting, said, true);
  return 'meddled';
end
$$
"""


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("citeledger.firm_id", "{foreign}"),
        ("citeledger.firm_id", ""),
        ("citeledger.firm_id", "x"),
        ("citeledger.permissions", "{{}}"),
        ("request.jwt.claims", "{{"),
        ("search_path", "pg_temp"),
        ("standard_conforming_strings", "off"),
        ("row_security", "off"),
        ("transaction_read_only", "on"),
        ("lock_timeout", "1"),
        ("statement_timeout", "1"),
    ],
)
def test_a_function_that_sets_while_a_source_is_inserted_changes_no_verdict(
    scene: Scene, insider: Connection, setting: str, value: str
) -> None:
    """The trigger runs after the meddling. It finishes for the row's firm, or all is undone."""
    insider.execute(MEDDLE)
    value = value.format(foreign=scene.foreign_firm)
    answer = said(
        insider,
        "insert into citeledger.message_citations (firm_id, message_id, source_text)"
        " values (%s, %s, lair_t_app.meddle(%s, %s))",
        (scene.firm_id, scene.own.finalized, setting, value),
    )
    refused = {
        "row_security": "42501",
        "transaction_read_only": "25006",
        "citeledger.firm_id": "42501",
        "request.jwt.claims": None,
    }
    if answer != "'INSERT 0 1'":
        assert answer[:5] == refused.get(setting), answer
        return
    with insider.transaction(force_rollback=True):
        insider.execute(
            "insert into citeledger.message_citations (firm_id, message_id, source_text)"
            " values (%s, %s, lair_t_app.meddle(%s, %s))",
            (scene.firm_id, scene.own.finalized, setting, value),
        )
        insider.execute(
            "reset search_path; reset statement_timeout; set local request.jwt.claims = ''"
        )
        scene.enter(insider)
        assert insider.execute(
            "select g.gate_status, g.fail_count, (select count(*) from"
            " citeledger.citation_ledger_entry as e where e.message_id = g.message_id)"
            " from citeledger.work_product_fiduciary_gate as g where g.message_id = %s",
            (scene.own.finalized,),
        ).fetchone() == ("flagged", 1, 4)
        assert said(insider, "select * from citeledger.check_integrity()") == "[]"


def test_in_a_read_only_transaction_nothing_is_written(scene: Scene, insider: Connection) -> None:
    insider.execute("set transaction read only")
    for statement in (
        f"select citeledger.finalize_turn('{scene.own.open}')",
        f"select citeledger.finalize_turn('{scene.own.finalized}')",
        f"select citeledger.compute_and_record_gate('{scene.own.finalized}')",
        "select citeledger.finalize_pending()",
        "update citeledger.message_citations set verified = false",
    ):
        assert sqlstate(insider, statement) == "25006", statement


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_above_read_committed_no_verdict_is_had_that_could_be_stale(
    scene: Scene, insider: Connection, level: str
) -> None:
    insider.rollback()
    insider.execute(f"set transaction isolation level {level}")
    scene.enter(insider)
    with insider.transaction(force_rollback=True):
        report = said(insider, f"select citeledger.finalize_turn('{scene.own.open}')")
        assert "'gate': None" in report
        insider.execute("update citeledger.message_citations set verified = false")
        assert said(
            insider,
            f"select 1 from citeledger.work_product_fiduciary_gate"
            f" where message_id = '{scene.own.finalized}'",
        ) == ("[]")
    assert sqlstate(
        insider, f"select citeledger.record_references('{scene.graph['a']}', '{{10.1/a}}')"
    ) == ("25000")


@pytest.mark.parametrize("timeout", ["statement_timeout", "transaction_timeout"])
def test_a_timeout_in_the_middle_undoes_the_whole_statement(scene: Scene, timeout: str) -> None:
    """No guard of ours catches it: an attacker cannot cut the ledger off and keep the source."""
    if timeout == "transaction_timeout" and scene.database.server.major < 17:
        timeout = "idle_in_transaction_session_timeout"
    struck = 0
    for milliseconds in (1, 2, 3, 5, 8):
        with scene.database.connect("t_app") as connection:
            try:
                scene.enter(connection)
                connection.execute(f"set local {timeout} = {milliseconds}")
                connection.execute(
                    "insert into citeledger.message_citations (message_id, source_text)"
                    " select %s, 'x' from generate_series(1, 3000)",
                    (scene.own.finalized,),
                )
                connection.rollback()
            except psycopg.Error as error:
                assert error.sqlstate in ("57014", "25P04", "25P03", None)  # noqa: PT017
                struck += 1
                connection.close()
    assert struck or timeout.startswith("idle")
    assert scene.held() == scene.before
