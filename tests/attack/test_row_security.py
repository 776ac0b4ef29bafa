"""Reaching rows behind row security: by errors, by leaky functions, by every way to read or write.

======================================  ========================================================
attack                                  what must come of it
======================================  ========================================================
a cheap function in WHERE that tells    it is told the firm's own rows alone, whatever the plan
a cheap operator, a cast that fails     the same
division by zero, casts that fail       raised by the firm's own rows alone
by built-in means
COPY of a table, and of a query         the own rows; of what may not be selected, 42501
COPY into a table                       0A000: PostgreSQL has no COPY into row security
RETURNING, UPDATE and DELETE without    the own rows alone
WHERE, MERGE
rows for another firm, by INSERT,       42501, also where the context has no firm
UPDATE, MERGE and ON CONFLICT
system columns, TABLESAMPLE, a place    the own rows alone
in the file, a TOAST table
views and functions of the attacker's   they see what the attacker sees; they give nothing on
for somebody without a role
security definer functions of the       the same
attacker's
======================================  ========================================================
"""

from __future__ import annotations

import pytest

from attack.asking import said
from attack.scene import FOREIGN, WALLED, Connection, Scene

READABLE = (
    "chats",
    "chunks",
    "citation_ledger_entry",
    "citation_ledger_entry_revision",
    "document_citations",
    "document_pages",
    "document_references",
    "documents",
    "finalize_failure",
    "firms",
    "kg_entities",
    "kg_entity_mentions",
    "kg_relation_types",
    "kg_relationships",
    "message_caselaw_citations",
    "message_citations",
    "message_tool_sources",
    "messages",
    "projects",
    "work_product_fiduciary_gate",
)
CLOSED = ("document_page_blocks", "project_members")
PLANS = (
    "set local enable_seqscan = off",
    "set local enable_indexscan = off; set local enable_bitmapscan = off",
    "set local enable_hashjoin = off; set local enable_mergejoin = off",
)


@pytest.fixture
def leaky(insider: Connection) -> list[str]:
    """Give what the attacker's cheapest function was told: it costs nothing, and tells all."""
    heard: list[str] = []
    insider.add_notice_handler(lambda d: heard.append(d.message_primary or ""))
    insider.execute(
        """
        create function lair_t_app.tell(anyelement) returns bool language plpgsql
        cost 0.0000001 as $$ begin raise notice '%', $1; return true; end $$;
        create function lair_t_app.same(text, text) returns bool language plpgsql
        cost 0.0000001 as $$ begin raise notice '%', $1; return true; end $$;
        create operator lair_t_app.=== (
          function = lair_t_app.same, leftarg = text, rightarg = text
        );
        """
    )
    return heard


def test_the_attackers_are_what_they_say(scene: Scene) -> None:
    """A superuser, an owner or one exempt from row security would prove nothing here."""
    for login, roles in {
        "t_reader": {"citeledger_reader"},
        "t_app": {"citeledger_app", "citeledger_reader"},
    }.items():
        found = scene.superuser.execute(
            "select r.rolsuper, r.rolbypassrls, r.rolcreaterole, r.rolcreatedb, r.rolreplication,"
            " array(select m.rolname from pg_roles as m"
            "   where m.oid <> r.oid and pg_has_role(r.oid, m.oid, 'member')),"
            " (select count(*) from pg_class where relowner = r.oid)"
            " from pg_roles as r where r.rolname = %s",
            (login,),
        ).fetchone()
        assert found is not None
        assert found[:5] == (False,) * 5
        assert set(found[5]) == roles
        assert found[6] == 0


def test_the_tables_are_all_here(scene: Scene) -> None:
    assert set(READABLE) | set(CLOSED) == set(scene.tables)


@pytest.mark.parametrize("table", READABLE)
def test_a_leaky_function_is_told_no_other_firms_row(
    scene: Scene, insider: Connection, leaky: list[str], table: str
) -> None:
    """Every row, by every plan; what the function hears is what the attacker could select."""
    own = said(insider, f"select t from citeledger.{table} as t")
    for plan in PLANS:
        with insider.transaction(force_rollback=True):
            insider.execute(plan)
            insider.execute(f"select from citeledger.{table} as t where lair_t_app.tell(t)")
    assert leaky or own == "[]"
    for row in leaky:
        assert FOREIGN not in row
        assert str(scene.foreign_firm) not in row
        assert str(scene.records.walled) not in row or table != "projects"


def test_a_leaky_operator_and_a_leaky_join_hear_no_other_firms_row(
    insider: Connection, leaky: list[str]
) -> None:
    insider.execute("create temporary table guess as select 'x'::text as v")
    for plan in PLANS:
        with insider.transaction(force_rollback=True):
            insider.execute(plan)
            insider.execute(
                "select from citeledger.messages as m join guess as g"
                " on m.content operator(lair_t_app.===) g.v"
            )
            insider.execute(
                "select from citeledger.documents as d where d.title operator(lair_t_app.===) 'x'"
            )
    assert len(leaky) > 10
    assert not [row for row in leaky if FOREIGN in row]


def test_the_name_of_a_walled_matter_reaches_no_leaky_function(
    scene: Scene, insider: Connection, leaky: list[str]
) -> None:
    insider.execute("select from citeledger.projects as p where lair_t_app.tell(p.matter_number)")
    own = [n for (n,) in insider.execute("select matter_number from citeledger.projects")]
    assert sorted(leaky) == sorted(own)
    assert len(own) == 2


@pytest.mark.parametrize(
    "predicate",
    [
        f"1 / (case when t.content like '%{FOREIGN}%' then 0 else 1 end) = 1",
        f"(case when t.content like '%{FOREIGN}%' then 'x' else '1' end)::integer = 1",
        f"pg_input_is(t.content, '{FOREIGN}')",
        f"(case when t.content ~ '{FOREIGN}' then t.content else '1' end)::numeric = 1",
        f"(case when strpos(t.content, '{FOREIGN}') > 0 then t.content else '{{}}' end)::json"
        " is not null",
        f"sqrt(case when t.content >= '{FOREIGN}' then -1 else 1 end) = 1",
    ],
)
def test_a_predicate_that_fails_fails_on_no_other_firms_row(
    insider: Connection, predicate: str
) -> None:
    """An error is an answer: yes, there is such a row. It may speak of the own rows alone."""
    insider.execute(
        "create function lair_t_app.pg_input_is(text, text) returns bool language plpgsql"
        " cost 0.0000001 as $$ begin"
        " if strpos($1, $2) > 0 then raise division_by_zero; end if; return true; end $$"
    )
    insider.execute("set local search_path = pg_catalog, lair_t_app")
    predicate_on_own = predicate.replace(FOREIGN, "Answer")
    for plan in PLANS:
        with insider.transaction(force_rollback=True):
            insider.execute(plan)
            heard = said(
                insider, f"select count(*) from citeledger.messages as t where {predicate}"
            )
            # It would fail, if it were given the row.
            own = said(
                insider, f"select count(*) from citeledger.messages as t where {predicate_on_own}"
            )
        assert heard.startswith("[("), heard
        assert not own.startswith("[("), own


@pytest.mark.parametrize("table", READABLE)
def test_copy_to_gives_the_own_rows(scene: Scene, insider: Connection, table: str) -> None:
    for what in (f"citeledger.{table}", f"(table citeledger.{table})"):
        with insider.cursor().copy(f"copy {what} to stdout") as copy:
            copied = b"".join(bytes(part) for part in copy).decode()
        assert FOREIGN not in copied
        assert str(scene.foreign_firm) not in copied
        rows = insider.execute(f"select count(*) from citeledger.{table}").fetchone()
        assert rows == (copied.count("\n"),)


def test_copy_reaches_nothing_else(insider: Connection) -> None:
    insider.execute("create temporary table mine (line text)")
    for statement, sqlstate in {
        "copy citeledger.document_page_blocks to stdout": "42501",
        "copy citeledger.project_members to stdout": "42501",
        "copy citeledger.documents (id, title) from stdin": "0A000",
        "copy citeledger.citation_ledger_entry from stdin": "42501",
        "copy citeledger.messages to '/tmp/citeledger-stolen'": "42501",
        "copy citeledger.messages to program 'true'": "42501",
        "copy mine from '/etc/hostname'": "42501",
    }.items():
        assert said(insider, statement).startswith(sqlstate), statement


def test_a_spy_selects_no_table(spy: Connection, scene: Scene) -> None:
    """The reader has no table at all, and no sequence, by no way of reading."""
    for table in scene.tables:
        for statement in (
            f"select from citeledger.{table}",
            f"copy citeledger.{table} to stdout",
            f"explain select from citeledger.{table}",
            f"lock table citeledger.{table} in access share mode",
            f"create temporary table t as table citeledger.{table}",
            f"create temporary table t (like citeledger.{table})",
        ):
            assert said(spy, statement).startswith("42501"), statement


@pytest.mark.parametrize(
    "statement",
    [
        "update citeledger.messages set content = content returning *",
        "update citeledger.documents set title = title returning *",
        "update citeledger.message_citations set verified = verified returning *",
        "delete from citeledger.message_citations where not exists (select from"
        " citeledger.messages as m where m.id = message_id and m.finalized_at is not null)"
        " returning *",
        "merge into citeledger.documents as d using (select) as x on true"
        " when matched then update set title = d.title",
        "with m as (update citeledger.documents set title = title returning *) table m",
    ],
)
def test_writes_without_a_where_touch_and_return_the_own_rows(
    scene: Scene, insider: Connection, statement: str
) -> None:
    outcome = said(insider, statement)
    assert not outcome[:5].isdigit(), outcome
    assert FOREIGN not in outcome


@pytest.mark.parametrize(
    "statement",
    [
        "insert into citeledger.{t} ({c}) select {v} returning *",
        "insert into citeledger.{t} ({c}) select {v} on conflict do nothing",
        "merge into citeledger.{t} as t using (select 1) as x on false"
        " when not matched then insert ({c}) values ({v})",
    ],
)
@pytest.mark.parametrize(
    ("table", "columns", "values"),
    [
        ("projects", "matter_number, name", "'x', 'x'"),
        ("chats", "title", "'x'"),
        ("documents", "title", "'x'"),
        ("messages", "chat_id, role", "'{chat}'::uuid, 'user'"),
        ("message_citations", "message_id, source_text", "'{open}'::uuid, 'x'"),
        ("message_tool_sources", "message_id, source_kind, label", "'{open}'::uuid, 'x', 'x'"),
        ("kg_entities", "name, entity_type", "'x', 'x'"),
    ],
)
def test_no_row_is_written_for_another_firm(
    scene: Scene, insider: Connection, statement: str, table: str, columns: str, values: str
) -> None:
    """Refused by row security before any key is looked at: the same for a firm that is not."""
    outcomes = set()
    for firm in (str(scene.foreign_firm), "11111111-1111-4111-8111-111111111111"):
        given = f"'{firm}'::uuid, {values}".format(chat=scene.foreign.chat, open=scene.foreign.open)
        outcomes.add(said(insider, statement.format(t=table, c=f"firm_id, {columns}", v=given)))
    assert len(outcomes) == 1
    assert outcomes.pop().startswith("42501 new row violates row-level security policy")


def test_rows_are_moved_to_no_other_firm(scene: Scene, insider: Connection) -> None:
    for table in READABLE:
        column = "id" if table == "firms" else "firm_id"
        outcome = said(
            insider, f"update citeledger.{table} set {column} = %s", (scene.foreign_firm,)
        )
        assert outcome.startswith("42501 permission denied"), table


def test_without_a_firm_there_is_nothing_to_see_and_nothing_to_write(
    scene: Scene, insider: Connection
) -> None:
    insider.execute("select citeledger.set_context(null)")
    for table in READABLE:
        assert said(insider, f"select * from citeledger.{table}") == "[]"
    for statement in (
        "insert into citeledger.chats (title) values ('x')",
        f"insert into citeledger.chats (firm_id, title) values ('{scene.firm_id}', 'x')",
    ):
        assert said(insider, statement).split()[0] in ("42501", "23502")


def test_no_place_in_the_file_shows_another_firms_row(scene: Scene, insider: Connection) -> None:
    places = scene.superuser.execute(
        "select ctid::text from citeledger.messages where firm_id = %s", (scene.foreign_firm,)
    ).fetchall()
    assert places
    for (place,) in places:
        for query in (
            f"select * from citeledger.messages where ctid = '{place}'",
            f"select * from citeledger.messages where ctid = any(array['{place}'::tid])",
            f"select * from citeledger.messages where ctid >= '{place}' and ctid <= '{place}'",
            f"update citeledger.messages set content = 'x' where ctid = '{place}' returning *",
            f"select * from citeledger.messages where ctid = '{place}' for update",
        ):
            assert said(insider, query) == "[]", query
    sampled = said(insider, "select * from citeledger.messages tablesample system (100)")
    assert FOREIGN not in sampled
    assert str(scene.own.open) in sampled
    toast = scene.superuser.execute(
        "select reltoastrelid::regclass::text from pg_class"
        " where oid = 'citeledger.document_page_blocks'::regclass"
    ).fetchone()
    assert toast is not None
    assert said(insider, f"select * from {toast[0]}").startswith("42501")


def test_views_and_functions_of_the_attackers_give_nothing_on(
    scene: Scene, insider: Connection
) -> None:
    """Who is lent the attacker's rights gets no more than the attacker, and not even that."""
    insider.execute(
        """
        create view lair_t_app.lent as select * from citeledger.messages;
        create view lair_t_app.matters as select * from citeledger.projects;
        create function lair_t_app.lend() returns setof text language sql security definer as
        'select m.content from citeledger.messages as m';
        grant usage on schema lair_t_app to public;
        grant select on lair_t_app.lent, lair_t_app.matters to public;
        """
    )
    insider.commit()
    try:
        for login in ("t_none", "t_reader", "t_app"):
            with scene.database.connect(login) as connection:
                connection.execute(
                    "select set_config('citeledger.firm_id', %s, true)", (str(scene.firm_id),)
                )
                outcomes = [
                    said(connection, query)
                    for query in (
                        "select content from lair_t_app.lent",
                        "select * from lair_t_app.lend()",
                        "select matter_number from lair_t_app.matters",
                    )
                ]
                for outcome in outcomes:
                    assert FOREIGN not in outcome
                assert str(scene.records.walled) not in outcomes[2]
                if login == "t_none":
                    # A view checks the functions of a policy as its caller.
                    assert outcomes[0].startswith("42501")
        # The attacker's definer function is the attacker, for whoever it is: within the firm.
        scene.enter(insider)
        assert WALLED in said(insider, "select * from lair_t_app.lend()")
    finally:
        insider.execute(
            "drop view lair_t_app.lent, lair_t_app.matters; drop function lair_t_app.lend;"
            "revoke usage on schema lair_t_app from public"
        )
        insider.commit()
