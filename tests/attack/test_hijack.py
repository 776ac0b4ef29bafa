"""Names that are not ours: what an attacker puts where a function of the owner might look.

======================================  ========================================================
attack                                  what must come of it
======================================  ========================================================
temporary tables named like all of      every function and trigger answers as before
ours, like our transition tables,
open to everybody
operators, functions and types of an    as before, and none of them ever runs as the owner
attacker's schema first in the path
the same with pg_temp first             as before
a login's own lasting search_path       as before
casts from an attacker's type           run as the attacker, before the function begins
a domain that runs code                 runs as the attacker
a lair that lasts over uninstall and    every function is pinned again, and open to nobody new
install
create or replace, as a rework does     the path stays pinned, the privileges stay
drop and create without a revoke        not open to PUBLIC: the default privileges are closed
======================================  ========================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from attack.battery import FUNCTIONS, WRITES, play
from attack.scene import Connection, Scene
from support.deploy import REPOSITORY, checked, deploy_with_psql
from support.server import DEPLOYER

LOGINS = ("t_reader", "t_app", "t_admin")
PINNED = "search_path=pg_catalog, pg_temp"

# All functions of ours, with what a hijack needs to know of them.
CATALOG = """
select
  p.oid::regprocedure::text, p.prosecdef, p.prokind,
  -- What a parsed body means was settled when the function was made: it looks no name up.
  coalesce(p.proconfig, case when p.prosqlbody is null then '{}' else array['bound'] end),
  pg_catalog.pg_get_userbyid(p.proowner),
  array(
    select coalesce(nullif(x.grantee, 0)::regrole::text, 'public') || ' ' || x.privilege_type
    from pg_catalog.aclexplode(coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner))) as x
    order by 1
  )
from pg_catalog.pg_proc as p
join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
where n.nspname in ('citeledger', 'citeledger_private')
order by 1
"""

# What our functions use without a schema, for pg_catalog is first in their path.
OPERATORS = (
    *(("=", t, t) for t in ("uuid", "text", "jsonb", "int4", "bool", "timestamptz")),
    *(("<>", t, t) for t in ("uuid", "text", "jsonb", "int4")),
    *((o, "int4", "int4") for o in ("<", ">", "<=", ">=", "+", "-")),
    *((o, "text", "text") for o in ("~", "!~", "||", "<", ">", "<=", ">=")),
    ("->", "jsonb", "text"),
    ("->>", "jsonb", "text"),
    ("?", "jsonb", "text"),
    ("?&", "jsonb", "text[]"),
    ("-", "jsonb", "text[]"),
    ("||", "jsonb", "jsonb"),
    ("||", "uuid[]", "uuid[]"),
)
ROUTINES = (
    "current_setting(text, bool)",
    "pg_has_role(name, name, text)",
    "strpos(text, text)",
    "substr(text, int4)",
    "lower(text)",
    "length(text)",
    "char_length(text)",
    "jsonb_typeof(jsonb)",
    "to_jsonb(anyelement)",
    "ltrim(text, text)",
    "btrim(text, text)",
    "left(text, int4)",
    "cardinality(anyarray)",
    "hashtextextended(text, int8)",
    "pg_advisory_xact_lock(int8)",
    "clock_timestamp()",
    "now()",
)
TYPES = ("text", "uuid", "jsonb", "integer", "boolean", "bigint")

# It shouts when it is called, and tells as whom.
SHOUT = "language plpgsql as $$ begin raise exception 'hijacked as %', current_user; end $$"


@pytest.fixture
def lair(scene: Scene) -> Iterator[Connection]:
    """Give a session of the app whose own schema shadows what our functions use."""
    with scene.database.connect("t_app") as connection:
        connection.execute("set search_path = lair_t_app, pg_catalog")
        for number, (name, left, right) in enumerate(OPERATORS):
            connection.execute(
                f"create function lair_t_app.op{number}(pg_catalog.{left}, pg_catalog.{right})"
                f" returns bool {SHOUT}"
            )
            connection.execute(
                f"create operator lair_t_app.{name} (function = lair_t_app.op{number},"
                f" leftarg = pg_catalog.{left}, rightarg = pg_catalog.{right})"
            )
        for routine in ROUTINES:
            result = "anyelement" if "any" in routine and "array" not in routine else "int4"
            connection.execute(f"create function lair_t_app.{routine} returns {result} {SHOUT}")
        for name in TYPES:
            connection.execute(
                f'create domain lair_t_app."{name}" as pg_catalog.int4'
                " check (lair_t_app.strpos('a', 'a') is null)"
            )
        for kind in ("function", "operator", "type"):
            connection.execute("select 1 as " + kind)
        connection.execute("grant usage on schema lair_t_app to public")
        connection.commit()
        try:
            yield connection
        finally:
            connection.rollback()
            connection.execute("drop schema lair_t_app cascade")
            connection.commit()
            scene.superuser.execute("create schema lair_t_app authorization t_app")


def shadows(scene: Scene, connection: Connection) -> list[str]:
    """Make an empty temporary table for every relation that our functions may name."""
    made = []
    for name, columns in scene.superuser.execute(
        "select c.relname, array_agg(format('%I %s', a.attname, format_type(a.atttypid, null))"
        " order by a.attnum)"
        " from pg_class as c join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0"
        " where c.relnamespace in ('citeledger'::regnamespace, 'citeledger_private'::regnamespace)"
        " and c.relkind in ('r', 'c') and not a.attisdropped"
        " and a.atttypid::regtype::text not like 'citeledger%' group by c.relname"
    ).fetchall():
        connection.execute(f'create temporary table "{name}" ({", ".join(columns)})')
        made.append(name)
    # The transition tables of the triggers, and what their statements call their parts.
    for name in ("old_rows", "new_rows", "due", "written", "turn", "pg_proc", "pg_roles"):
        connection.execute(
            f'create temporary table "{name}" (firm_id uuid, id uuid, message_id uuid)'
        )
        made.append(name)
    for name in made:
        connection.execute(f'grant all on pg_temp."{name}" to public')
    connection.commit()
    return made


@pytest.fixture(scope="module")
def undisturbed(scene: Scene) -> dict[str, dict[str, str]]:
    """Give what everything answers when nobody attacks."""
    found = {}
    for login in LOGINS:
        with scene.database.connect(login) as connection:
            found[login] = play(connection, scene, login)
    return found


def test_the_battery_calls_every_function_that_anybody_may_call(scene: Scene) -> None:
    public = {
        name
        for (name,) in scene.superuser.execute(
            "select distinct proname from pg_proc where pronamespace = 'citeledger'::regnamespace"
        )
    }
    assert public == set(FUNCTIONS)


def test_the_battery_runs_every_definer_function(
    scene: Scene, undisturbed: dict[str, dict[str, str]]
) -> None:
    """Counted by the server: what no probe reaches, no test of this module could see hijacked."""
    scene.superuser.execute(f"alter database {scene.database.name} set track_functions = 'all'")
    try:
        with scene.database.connect("t_admin") as connection:
            again = play(connection, scene, "t_admin")
            connection.execute("select pg_stat_force_next_flush()")
            connection.commit()
    finally:
        scene.superuser.execute(f"alter database {scene.database.name} reset track_functions")
    assert again == undisturbed["t_admin"]
    silent = scene.superuser.execute(
        "select p.oid::regprocedure::text from pg_proc as p"
        " left join pg_stat_user_functions as s on s.funcid = p.oid"
        " where p.pronamespace in"
        " ('citeledger'::regnamespace, 'citeledger_private'::regnamespace)"
        " and p.prosecdef and coalesce(s.calls, 0) = 0 order by 1"
    ).fetchall()
    assert [s for (s,) in silent] == []


def test_the_battery_is_not_refused_all_along(undisturbed: dict[str, dict[str, str]]) -> None:
    """A battery of refusals would stay the same whatever is hijacked."""
    refused = {n for n, said in undisturbed["t_admin"].items() if said.startswith("('")}
    assert refused == {
        "require_permission",
        "deep_link",
        "sources of a finalized turn deleted",
        "tool sources of a finalized turn deleted",
        "a finalized turn rewritten",
    }
    assert set(undisturbed["t_admin"]) == set(FUNCTIONS | WRITES)


@pytest.mark.parametrize("login", LOGINS)
def test_temporary_tables_named_like_ours_are_never_read(
    scene: Scene, undisturbed: dict[str, dict[str, str]], login: str
) -> None:
    with scene.database.connect(login) as connection:
        assert len(shadows(scene, connection)) > 25

        def first(connection: Connection) -> None:
            connection.execute("set local search_path = pg_temp, citeledger, pg_catalog")

        assert play(connection, scene, login) == undisturbed[login]
        assert play(connection, scene, login, first) == undisturbed[login]


def test_operators_functions_and_types_of_the_attackers_are_never_used(
    scene: Scene, lair: Connection, undisturbed: dict[str, dict[str, str]]
) -> None:
    """The lair works: the attacker's own statements run into it. Ours do not, in the same path."""

    def first(connection: Connection) -> None:
        connection.execute("set local search_path = lair_t_app, pg_temp, citeledger, pg_catalog")

    with lair.transaction(force_rollback=True):
        first(lair)
        for caught in ("select 'a'::pg_catalog.text ~ 'a'", "select lower('A')", "select 1::uuid"):
            with (
                pytest.raises(psycopg.errors.RaiseException, match="hijacked as t_app"),
                lair.transaction(),
            ):
                lair.execute(caught)
    assert play(lair, scene, "t_app", first) == undisturbed["t_app"]


def test_the_attackers_schema_is_of_no_use_to_the_admin_who_has_it_in_the_path(
    scene: Scene, lair: Connection, undisturbed: dict[str, dict[str, str]]
) -> None:
    """The better victim: whoever may do more, with a path that somebody has poisoned."""

    def first(connection: Connection) -> None:
        connection.execute("set local search_path = lair_t_app, citeledger, pg_catalog")

    with scene.database.connect("t_admin") as connection:
        assert play(connection, scene, "t_admin", first) == undisturbed["t_admin"]


def test_a_lasting_search_path_of_the_login_itself_changes_nothing(
    scene: Scene, lair: Connection, undisturbed: dict[str, dict[str, str]]
) -> None:
    where = f"alter role t_app in database {scene.database.name}"
    with lair.transaction():
        lair.execute(f"{where} set search_path = lair_t_app, pg_catalog")
    try:
        with scene.database.connect("t_app") as connection:
            assert connection.execute("show search_path").fetchone() == ("lair_t_app, pg_catalog",)
            assert play(connection, scene, "t_app") == undisturbed["t_app"]
    finally:
        with lair.transaction():
            lair.execute(f"{where} reset search_path")


def test_casts_and_domains_of_the_attacker_run_as_the_attacker(
    scene: Scene, insider: Connection
) -> None:
    """They are run for the argument, before the function begins; inside it there are none."""
    insider.execute(
        """
        create type lair_t_app.key as (value pg_catalog.text);
        create function lair_t_app.open(lair_t_app.key) returns pg_catalog.uuid
        language plpgsql as $$ begin
          raise notice 'cast as %', current_user; return ($1).value::pg_catalog.uuid;
        end $$;
        create cast (lair_t_app.key as pg_catalog.uuid)
          with function lair_t_app.open(lair_t_app.key) as implicit;
        create function lair_t_app.is_seen(pg_catalog.uuid) returns bool
        language plpgsql as $$ begin
          raise notice 'domain as %', current_user; return true;
        end $$;
        create domain lair_t_app.watched as pg_catalog.uuid check (lair_t_app.is_seen(value));
        """
    )
    heard: list[str] = []
    insider.add_notice_handler(lambda d: heard.append(d.message_primary or ""))
    for argument in ("row(%s)::lair_t_app.key", "%s::lair_t_app.watched"):
        found = insider.execute(
            f"select count(*) from citeledger.read_pages(%s, {argument})",
            (scene.records.matter, str(scene.records.record)),
        ).fetchone()
        assert found == (3,)
    assert set(heard) == {"cast as t_app", "domain as t_app"}


def functions_of(connection: Connection) -> dict[str, tuple[Any, ...]]:
    """Return what the catalog says of each function of ours."""
    return {row[0]: tuple(row[1:]) for row in connection.execute(sql.SQL(CATALOG)).fetchall()}


def assert_closed(functions: dict[str, tuple[Any, ...]]) -> None:
    """Every function is pinned, is the owner's, and lets nobody in who is not named."""
    assert len(functions) > 60
    assert sum(definer for definer, *_ in functions.values()) > 35
    for signature, (_, kind, config, owner, grants) in functions.items():
        assert kind == "f", signature
        assert PINNED in config or config == ["bound"], (
            f"{signature} looks names up as its caller does"
        )
        assert owner == "citeledger_owner", signature
        allowed = {g.split()[0] for g in grants}
        assert allowed <= {
            "citeledger_owner",
            "citeledger_reader",
            "citeledger_app",
            "citeledger_admin",
        }, f"{signature} is open to {allowed}"


def test_every_function_pins_its_path_and_is_open_to_the_named_alone(scene: Scene) -> None:
    assert_closed(functions_of(scene.superuser))


def test_all_of_it_again_after_uninstall_and_install(scene: Scene) -> None:
    """In a database where the attackers sit already: with a schema, and temporary tables."""
    before = functions_of(scene.superuser)
    server = scene.database.server
    file = str(REPOSITORY / "sql" / "uninstall.sql")
    with server.database() as name, server.connect("t_app", name) as squatter:
        with server.connect(dbname=name, autocommit=True) as superuser:
            superuser.execute("create schema lair_t_app authorization t_app")
        deploy_with_psql(server, name)
        squatter.execute("create table lair_t_app.projects (id uuid)")
        squatter.execute("create temporary table projects (id uuid)")
        squatter.commit()
        checked(server.psql("-q", "-1", "-f", file, user=DEPLOYER, dbname=name))
        deploy_with_psql(server, name)
        with server.connect(dbname=name) as superuser:
            again = functions_of(superuser)
    assert_closed(again)
    assert again == before


def definitions(connection: Connection) -> list[str]:
    """Return the statement that made each function that is there, as the install file has it.

    Of a function that was reworked it is the last one.
    """
    text = (REPOSITORY / "sql" / "citeledger.sql").read_text(encoding="utf-8")
    found = {
        statement.partition("function ")[2].partition("returns")[0]: statement
        for statement in re.findall(
            r"^(create (?:or replace )?function .*?\nas \$\$.*?^\$\$;)",
            text,
            re.MULTILINE | re.DOTALL,
        )
    }
    there = {signature.partition("(")[0] for signature in functions_of(connection)}
    kept = [s for head, s in found.items() if head.partition("(")[0] in there]
    assert len(kept) > 60
    return kept


def test_a_rework_in_place_brings_no_privilege_back(scene: Scene) -> None:
    """What ``create or replace`` does to each function: all of it new, but the privileges."""
    before = functions_of(scene.superuser)
    with scene.database.connect(DEPLOYER) as connection:
        connection.execute("set local role citeledger_owner")
        connection.execute("set local search_path = pg_catalog, pg_temp")
        for statement in definitions(scene.superuser):
            replaced = re.sub(r"\Acreate (or replace )?", "create or replace ", statement)
            connection.execute(replaced)
        # A setting that a later change gave it goes too, and is given again.
        text = (REPOSITORY / "sql" / "citeledger.sql").read_text(encoding="utf-8")
        for statement in re.findall(r"^alter function .* set jit = off;$", text, re.MULTILINE):
            connection.execute(statement)
        assert functions_of(connection) == before
        connection.rollback()


def test_a_rework_that_drops_and_forgets_to_revoke_opens_no_function_to_public(
    scene: Scene,
) -> None:
    """The default privileges of the owner are closed, so that forgetting closes and never opens."""
    with scene.database.connect(DEPLOYER) as connection:
        connection.execute("set local role citeledger_owner")
        connection.execute("set local search_path = pg_catalog, pg_temp")
        made = 0
        for statement in definitions(scene.superuser):
            twin = re.sub(
                r"\Acreate (?:or replace )?function (citeledger(?:_private)?)\.(\w+)",
                r"create function \1.twin_\2",
                statement,
            )
            connection.execute(twin)
            made += 1
        twins = {s: f for s, f in functions_of(connection).items() if ".twin_" in s}
        assert len(twins) == made
        for signature, (*_, grants) in twins.items():
            assert grants == ["citeledger_owner EXECUTE"], signature
        connection.rollback()
