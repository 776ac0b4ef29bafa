"""Asking the planner: estimates, plans, statistics and counters know every firm's rows.

======================================  ========================================================
attack                                  what must come of it
======================================  ========================================================
pg_stats, pg_statistic, extended        nothing of a table with row security
statistics
estimates for words of other firms      no column that holds content has statistics to tell by
estimates for opinions that other       they have none either
firms cite
estimates for firm ids                  known: they tell that a firm is there, and how large it
                                        is; halving an interval finds its id
rows removed by a filter, buffers       totals over all firms, alike whatever is asked for
counters and sizes of tables            totals over all firms: documented
EXPLAIN of a function of ours           no plan of what it does inside
buffers of cite and its kin             as many for another firm's ids as for ids of nobody
time of the same                        no more than noise
======================================  ========================================================
"""

from __future__ import annotations

import json
import re
import statistics
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from attack.asking import said
from attack.scene import FOREIGN, MANY, Connection, Scene

# What may have statistics: keys, times, flags, counts, and labels of our own vocabulary.
WITHOUT_CONTENT = {
    "authority of the schema": {
        "document_kind",
        "gate_status",
        "role",
        "sqlstate",
        "stage",
        "verification_method",
        "verification_status",
        "source_kind",
    },
    "labels and names that an application chooses": {
        "entity_type",
        "provider",
        "relation_type",
        "source",
    },
    "places and counts": {
        "block_index",
        "chunk_index",
        "page_number",
        "position",
        "source_block",
        "source_page",
        "source_offset_start",
        "source_offset_end",
        "fail_count",
        "pass_count",
        "supported_count",
        "total_assertions",
        "unrecognized_count",
    },
}


def rows_expected(connection: Connection, query: str, arguments: Any = None) -> float:
    """Return how many rows the planner expects below what it may never run."""
    with connection.transaction(force_rollback=True):
        connection.execute("set local enable_bitmapscan = off")
        row = connection.execute(f"explain (format json) {query}", arguments).fetchone()
    assert row is not None
    plan = row[0][0]["Plan"]
    while plan["Node Type"] == "Result":
        plan = plan["Plans"][-1]
    return float(plan["Plan Rows"])


def test_statistics_of_our_tables_are_shown_to_nobody(insider: Connection, spy: Connection) -> None:
    for connection in (insider, spy):
        for view in ("pg_stats", "pg_stats_ext", "pg_stats_ext_exprs"):
            where = "where schemaname = 'citeledger'"
            assert said(connection, f"select * from pg_catalog.{view} {where}") == "[]"
        for table in ("pg_statistic", "pg_statistic_ext_data"):
            assert said(connection, f"table pg_catalog.{table}").startswith("42501")


def test_no_column_that_holds_content_has_statistics(scene: Scene) -> None:
    """An equality that leaks nothing itself is still estimated by the values of all firms."""
    found = {
        column
        for (column,) in scene.superuser.execute(
            "select distinct a.attname from pg_attribute as a"
            " join pg_class as c on c.oid = a.attrelid and c.relkind = 'r'"
            " where c.relnamespace = 'citeledger'::regnamespace and a.attnum > 0"
            " and coalesce(a.attstattarget, -1) <> 0 and a.atttypid <> all(%s::regtype[])",
            (["uuid", "timestamptz", "boolean", "double precision", "numeric"],),
        )
    }
    allowed = set().union(*WITHOUT_CONTENT.values())
    assert found <= allowed
    expressions = scene.superuser.execute(
        "select a.attrelid::regclass::text from pg_attribute as a"
        " join pg_index as i on i.indexrelid = a.attrelid"
        " join pg_class as c on c.oid = i.indrelid"
        " where c.relnamespace = 'citeledger'::regnamespace and i.indkey[a.attnum - 1] = 0"
        " and coalesce(a.attstattarget, -1) <> 0"
    ).fetchall()
    assert expressions == []


@pytest.mark.parametrize(
    ("table", "column", "theirs"),
    [
        ("messages", "content", f"Answer 1 {FOREIGN}"),
        ("documents", "title", f"File {FOREIGN}"),
        ("documents", "doi_key", "10.5555/foreign"),
        ("message_caselaw_citations", "source_text", FOREIGN),
        ("message_tool_sources", "label", f"Found {FOREIGN}"),
        ("kg_entities", "lower(name)", f"buried {FOREIGN}"),
        ("kg_entities", "name", f"Buried {FOREIGN}"),
        ("chunks", "content", f"A chunk {FOREIGN}"),
        ("projects", "matter_number", "M-1"),
    ],
)
def test_an_estimate_is_the_same_for_a_word_of_another_firm_and_for_none(
    insider: Connection, table: str, column: str, theirs: str
) -> None:
    query = f"select * from citeledger.{table} where {column} = %s"
    assert rows_expected(insider, query, (theirs,)) == rows_expected(insider, query, ("zzz",))


@pytest.mark.parametrize(("column", "theirs"), [("opinion_id", 424242), ("cluster_id", 434343)])
def test_an_estimate_is_the_same_for_an_opinion_that_another_firm_cites_and_for_none(
    insider: Connection, column: str, theirs: int
) -> None:
    query = f"select * from citeledger.message_caselaw_citations where {column} = %s"
    expected = [rows_expected(insider, query, (value,)) for value in (theirs, 515151)]
    assert expected[0] == expected[1]


def test_estimates_tell_the_size_of_a_firm_and_even_its_id(
    scene: Scene, insider: Connection
) -> None:
    """The boundary, exactly: to an application's role other firms' ids are no secret.

    It may set any of them, and the planner helps it to find one that fills much of a table. So a
    firm's id must not be what keeps a firm apart, and no end user may send SQL.
    """
    query = "select 1 from citeledger.message_caselaw_citations where firm_id between %s and %s"

    def expected(low: int, high: int) -> float:
        return rows_expected(insider, query, (UUID(int=low), UUID(int=high)))

    low, high = 0, 2**128 - 1
    while low < high:
        middle = (low + high) // 2
        if expected(low, middle) >= expected(middle + 1, high):
            high = middle
        else:
            low = middle + 1
    assert UUID(int=low) == scene.foreign_firm
    assert expected(low, low) > MANY / 10


def test_a_spy_has_no_plan_of_any_table(spy: Connection, scene: Scene) -> None:
    for table in scene.tables:
        for how in ("explain", "explain analyze"):
            assert said(spy, f"{how} select 1 from citeledger.{table}").startswith("42501")


def test_an_executed_plan_counts_rows_over_all_firms_and_tells_no_value(
    scene: Scene, insider: Connection
) -> None:
    """The total of a table is no secret, here or in pg_class. Which row was whose is."""
    removed = []
    for content in (f"Answer 1 {FOREIGN}", "no such answer"):
        with insider.transaction(force_rollback=True):
            insider.execute("set local enable_indexscan = off; set local enable_bitmapscan = off")
            plan = "\n".join(
                line
                for (line,) in insider.execute(
                    "explain (analyze, buffers, costs off, timing off, summary off)"
                    " select 1 from citeledger.messages where content = %s",
                    (content,),
                )
            )
        assert FOREIGN not in plan.replace(content, "")
        removed.append(re.findall(r"Removed by Filter: (\d+)", plan))
    assert removed[0] == removed[1] == [str(scene.before["messages"][0])]


def test_an_executed_plan_reads_as_much_for_a_matter_number_of_another_firm_as_for_none(
    scene: Scene, insider: Connection
) -> None:
    """The wall is asked for each row. It must not be asked for those that only the number meets."""
    theirs = scene.superuser.execute(
        "select matter_number from citeledger.projects"
        " where firm_id = %s and matter_number like 'M-%%'",
        (scene.foreign_firm,),
    ).fetchall()[0][0]
    for plan in (
        "set local enable_indexscan = off; set local enable_bitmapscan = off",
        "set local enable_seqscan = off",
    ):
        read = []
        for number in (theirs, "no such number", theirs, "no such number"):
            with insider.transaction(force_rollback=True):
                insider.execute(plan)
                read.append(
                    _buffers(
                        insider,
                        "select 1 from citeledger.projects where matter_number = %s",
                        (number,),
                    )
                )
        assert read[2] == read[3], plan


def _buffers(connection: Connection, query: str, arguments: Any) -> int:
    row = connection.execute(
        f"explain (analyze, buffers, format json) {query}",
        arguments,
    ).fetchone()
    assert row is not None
    plan = row[0][0]["Plan"]
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])


ASKED: dict[str, tuple[str, Callable[[Scene, UUID, UUID], tuple[Any, ...]]]] = {
    "cite": (
        "select citeledger.cite(%s, %s)",
        lambda s, m, d: (m, json.dumps(s.records.span(document=d))),
    ),
    "cite_many": (
        "select citeledger.cite_many(%s, %s)",
        lambda s, m, d: (m, json.dumps([s.records.span(document=d)])),
    ),
    "read_pages": (
        "select * from citeledger.read_pages(%s, %s)",
        lambda _, m, d: (m, d),
    ),
    "suggest_spans": (
        "select * from citeledger.suggest_spans(%s, %s)",
        lambda s, m, d: (m, json.dumps(s.records.span(document=d))),
    ),
    "ledger_trace": (
        "select citeledger.ledger_trace(%s)",
        lambda _s, m, _d: (m,),
    ),
    "get_citations": (
        "select citeledger.get_citations(%s)",
        lambda _s, _m, d: (d,),
    ),
    "recheck_document": (
        "select * from citeledger.recheck_document(%s)",
        lambda _s, _m, d: (d,),
    ),
    "resolve_span": (
        "select citeledger.resolve_span(%s)",
        lambda s, _, d: (json.dumps(s.records.span(document=d)),),
    ),
    "walk_citations": (
        "select * from citeledger.walk_citations(array[%s]::uuid[])",
        lambda _s, _m, d: (d,),
    ),
}
# An error ends EXPLAIN without a plan: it is caught by a function of the attacker's, inside it.
CATCH = """
create function lair_t_app.caught(statement text) returns text language plpgsql as $$
begin
  execute statement;
  return 'answered';
exception
  when others then
    return sqlstate;
end
$$
"""


@pytest.mark.parametrize("name", ASKED)
def test_as_many_buffers_are_read_for_another_firms_ids_as_for_ids_of_nobody(
    scene: Scene, insider: Connection, name: str
) -> None:
    """A count of pages is what time is made of, and it does not flicker."""
    statement, arguments = ASKED[name]
    insider.execute(CATCH)
    read: dict[str, list[int]] = {"foreign": [], "random": []}
    matter = scene.foreign.chat if name == "ledger_trace" else scene.foreign.matter
    for _ in range(4):
        for kind, ids in (
            ("foreign", (matter, scene.graph["secret"])),
            ("random", (uuid4(), uuid4())),
        ):
            quoted = statement.replace("%s", "%L")
            literal = insider.execute(
                "select format(%s, variadic %s::text[])",
                (quoted, [str(a) for a in arguments(scene, *ids)]),
            ).fetchone()
            assert literal is not None
            read[kind].append(_buffers(insider, "select lair_t_app.caught(%s)", (literal[0],)))
    # The first ones fill caches; then it is the same, each time.
    assert read["foreign"][2:] == read["random"][2:], read


def test_time_tells_another_firms_ids_from_ids_of_nobody_no_better_than_chance(
    scene: Scene, insider: Connection
) -> None:
    """In alternation, by medians, with a wide margin: a gross difference would be a bug."""
    statement, arguments = ASKED["cite"]
    insider.execute(CATCH)
    took: dict[bool, list[float]] = {True: [], False: []}
    for number in range(300):
        foreign = number % 2 == 0
        ids = (scene.foreign.matter, scene.graph["secret"]) if foreign else (uuid4(), uuid4())
        start = time.perf_counter()
        said(insider, statement, arguments(scene, *ids))
        took[foreign].append(time.perf_counter() - start)
    ratio = statistics.median(took[True][50:]) / statistics.median(took[False][50:])
    assert 0.6 < ratio < 1.6, ratio


def test_explain_shows_no_plan_of_what_a_function_does(scene: Scene, spy: Connection) -> None:
    rows = spy.execute(
        "explain (analyze, verbose, costs off, timing off, summary off, buffers off)"
        " select * from citeledger.read_pages(%s, %s)",
        (scene.records.matter, scene.records.record),
    ).fetchall()
    plan = "\n".join(line for (line,) in rows)
    assert "Function Scan on citeledger.read_pages" in plan
    assert "document_page_blocks" not in plan


def test_counters_and_sizes_are_totals_over_all_firms(scene: Scene, spy: Connection) -> None:
    """PostgreSQL shows them to everybody: how many rows a table has, not whose."""
    (count,) = scene.superuser.execute("select count(*) from citeledger.messages").fetchone() or (
        0,
    )
    assert spy.execute(
        "select reltuples::integer from pg_class where oid = 'citeledger.messages'::regclass"
    ).fetchone() == (count,)
    for query in (
        "select n_live_tup from pg_stat_all_tables where schemaname = 'citeledger'",
        "select pg_relation_size('citeledger.messages')",
    ):
        assert said(spy, query).startswith("[(")


def test_what_other_logins_run_is_not_shown(scene: Scene, spy: Connection) -> None:
    with scene.database.connect("t_app") as connection:
        scene.enter(connection, scene.foreign_firm)
        connection.execute(f"select '{FOREIGN}' as said")
        shown = said(
            spy,
            "select query from pg_stat_activity where pid = %s",
            (connection.info.backend_pid,),
        )
    assert shown == "[('<insufficient privilege>',)]"
