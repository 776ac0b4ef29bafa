"""Inputs without end: an answer or a clear SQLSTATE, never a backend that is gone.

======================================  ========================================================
attack                                  what must come of it
======================================  ========================================================
a quote, key, text, name or setting of  an answer, or the error of a short one; the text is not
10 MB                                   repeated
JSON nested 5,000 deep                  the error of a value of that type
JSON nested 100,000 deep                54001, from the server's own reader
numbers of 10^5 digits and beyond       22023, never rounded and never cast
a million ids, names or permissions     an answer
the longest DOI, and a DOI built to     an answer, in less than a second
be slow
a function that calls itself            54001
a time that no calendar has             a trace that can still be read
pages without end                       an answer
======================================  ========================================================

After each of them the same session answers.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from attack.asking import said, sqlstate
from attack.scene import Connection, Scene
from citeledger import CiteLedger

BIG = "x" * 10_000_000
DEEP = 5_000
DEEPER = 100_000


def nested(depth: int) -> dict[str, str]:
    """Return JSON texts that are nested in every place that is read."""
    lists, objects = "[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth
    return {
        "list": lists,
        "object": objects,
        "blocks": f'[{{"page_number": 1, "blocks": {lists}}}]',
        "reference": f'{{"reference": [{{"DOI": {lists}}}]}}',
        "message": f'{{"message": {objects}}}',
        "sources": f'{{"sources": {lists}}}',
        "claims": f'{{"firm_id": {lists}, "permissions": {objects}}}',
    }


@pytest.fixture(autouse=True)
def still_there(insider: Connection) -> Any:
    """After the attack the same backend answers."""
    pid = insider.info.backend_pid
    yield
    assert insider.execute("select pg_backend_pid()").fetchone() == (pid,)


SpanOf = Callable[[Scene], dict[str, Any]]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda s: s.records.span(quote=BIG, char_start=..., char_end=...), "quote_absent"),
        (lambda s: s.records.span(quote="\U000e0001" * 250_000), "22023"),
        (lambda s: s.records.span() | {BIG: 1}, "22023"),
        (lambda s: s.records.span(document_id=BIG), "22023"),
        (lambda s: s.records.span(page_number=BIG), "22023"),
    ],
    ids=["quote", "invisible quote", "key", "document", "page"],
)
def test_a_span_of_ten_megabytes(
    scene: Scene, insider: Connection, change: SpanOf, expected: str
) -> None:
    text = json.dumps(change(scene))
    answer = said(
        insider, "select citeledger.cite(%s, %s) ->> 'reason'", (scene.records.matter, text)
    )
    assert expected in answer
    assert len(answer) < 1_000, "the error repeats what it was given"


def test_one_of_many_spans_of_ten_megabytes(scene: Scene, insider: Connection) -> None:
    items = [scene.records.span(quote=BIG), {BIG[:1000]: 1}, scene.records.span()]
    answer = said(
        insider,
        "select coalesce(i -> 'error' ->> 'sqlstate', i ->> 'reason')"
        " from jsonb_array_elements(citeledger.cite_many(%s, %s)) as i",
        (scene.records.matter, json.dumps(items)),
    )
    assert answer == "[('text_mismatch',), ('22023',), (None,)]"


@pytest.mark.parametrize(
    ("statement", "argument", "expected"),
    [
        ("select citeledger.cite(%s, %s)", "list", "22023"),
        ("select citeledger.cite(%s, %s)", "object", "22023"),
        ("select citeledger.cite_many(%s, %s)", "object", "22023"),
        ("select citeledger.cite_many(%s, %s)", "list", None),
        ("select citeledger.replace_document_pages(%s, %s)", "blocks", "22023"),
        ("select citeledger.replace_document_pages(%s, %s)", "object", "22023"),
        ("select citeledger.record_crossref_work(%s, %s)", "reference", None),
        ("select citeledger.record_crossref_work(%s, %s)", "message", None),
        ("select * from citeledger.graph_stage(array[%s]::text[], 1, true, %s)", "object", "22023"),
        (
            "select * from citeledger.graph_stage(array[%s]::text[], 1, true, %s)",
            "sources",
            "22023",
        ),
    ],
)
def test_nested_json(
    scene: Scene, insider: Connection, statement: str, argument: str, expected: str | None
) -> None:
    asks_a_matter = "citeledger.cite" in statement
    target = scene.records.matter if asks_a_matter else scene.records.record
    deep = sqlstate(insider, statement, (target, nested(DEEP)[argument]))
    assert deep == expected
    assert sqlstate(insider, statement, (target, nested(DEEPER)[argument])) == "54001"


def test_nested_claims(insider: Connection) -> None:
    for depth, expected in ((DEEP, None), (DEEPER, "54001")):
        with insider.transaction(force_rollback=True):
            insider.execute(
                "select set_config('citeledger.firm_id', '', true),"
                " set_config('request.jwt.claims', %s, true)",
                (nested(depth)["claims"],),
            )
            assert sqlstate(insider, "select citeledger.has_permission('a')") == expected
            assert sqlstate(insider, "table citeledger.messages") == expected


@pytest.mark.parametrize(
    "number", ["1e131071", "1e-16383", "1" + "0" * 100_000, "0." + "0" * 16_000 + "1", "-0", "1.5"]
)
def test_numbers_beyond_all_measure(scene: Scene, insider: Connection, number: str) -> None:
    text = json.dumps(scene.records.span())
    for key in ("page_number", "block_index", "char_start"):
        value = json.loads(text)[key]
        changed = text.replace(f'"{key}": {value}', f'"{key}": {number}')
        answer = said(insider, "select citeledger.cite(%s, %s)", (scene.records.matter, changed))
        assert answer.startswith("22023") or number == "-0"
        assert len(answer) < 1_000


MILLION = "(select array_agg(%s) from generate_series(1, 1000000) as g)"
TENTH = MILLION.replace("1000000", "100000")
SAME = "'11111111-1111-4111-8111-111111111111'::uuid"


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        # Of ids that differ a tenth of that: more is answered too, but takes its time.
        (f"select citeledger.finalize_turns({TENTH % 'gen_random_uuid()'})", "[(0,)]"),
        (f"select count(*) from citeledger.walk_citations({MILLION % SAME})", "[(0,)]"),
        (
            f"select count(*) from citeledger.walk_citations({TENTH % 'gen_random_uuid()'})",
            "[(0,)]",
        ),
        (f"select count(*) from citeledger.graph_stage({MILLION % 'g::text'})", "[(0,)]"),
        (
            "select citeledger.record_references((select id from citeledger.documents where"
            f" doi_key = '10.5555/c'), {TENTH % 'null::text'}) ->> 'unusable'",
            "[('100000',)]",
        ),
        (
            "select citeledger.set_context(citeledger.current_firm_id(), null,"
            " (select array_agg('p' || g) from generate_series(1, 100000) as g)),"
            " citeledger.has_permission('p99999')",
            "[('', True)]",
        ),
        (
            "select citeledger.set_context(citeledger.current_firm_id(), null,"
            " array_fill(null::text, array[1000000]))",
            "22023",
        ),
        ("select citeledger.finalize_turns(array_fill(gen_random_uuid(), array[9, 9, 9]))", "[(0"),
        ("select citeledger.finalize_pending(2147483647)", "[(0,)]"),
    ],
)
def test_a_million_of_them(insider: Connection, statement: str, expected: str) -> None:
    assert said(insider, statement).startswith(expected)


@pytest.mark.parametrize(
    "statement",
    [
        "select citeledger.has_permission(repeat('a', 10000000))",
        "select citeledger.verification_tier(repeat('a', 10000000))",
        "select citeledger.normalize_doi(repeat('10.1/%%41&amp;', 1000000))",
        "select length(set_config('citeledger.permissions', '{' || repeat('a,', 5000000) || 'a}',"
        " true)), citeledger.has_permission('b')",
        "select length(set_config('citeledger.firm_id', repeat('a', 10000000), true)),"
        " citeledger.current_firm_id()",
        "insert into citeledger.projects (matter_number, name) values (repeat('x', 10000000), 'x')",
        "insert into citeledger.kg_entities (name, entity_type) values"
        " (repeat('x', 10000000), 'x')",
        "insert into citeledger.kg_relation_types (relation_type) values (repeat('x', 10000000))",
        "insert into citeledger.documents (title, doi) values ('x', '10.1/' ||"
        " (select string_agg(md5(g::text), '') from generate_series(1, 63) as g))",
        "insert into citeledger.documents (title, doi) values ('x', '10.1/' ||"
        " (select string_agg(md5(g::text), '') from generate_series(1, 300000) as g))",
        "select citeledger.replace_document_pages((select id from citeledger.documents where"
        " doi_key = '10.5555/c'), jsonb_build_array(jsonb_build_object('page_number', 1, 'blocks',"
        " jsonb_build_array(repeat('x', 10000000)))))",
        "insert into citeledger.message_citations (message_id, source_text) select m.id,"
        " repeat('x', 10000000) from citeledger.messages as m",
    ],
)
def test_ten_megabytes_of_text(insider: Connection, statement: str) -> None:
    answer = said(insider, statement.replace("%%", "%"))
    assert not answer[:5].isdigit() or answer.startswith("23514"), answer[:200]
    assert len(answer) < 1_000


def test_a_permission_of_ten_megabytes_is_not_repeated(insider: Connection) -> None:
    answer = said(insider, "select citeledger.require_permission(repeat('a', 10000000))")
    assert answer.startswith("42501")
    assert len(answer) < 1_000


@pytest.mark.parametrize(
    "doi",
    [
        "'https://doi.org/10.1/' || repeat('%41', 2700)",
        "'https://doi.org/10.1/' || repeat('%', 8000)",
        "'10.1/' || repeat('(', 4000) || repeat(')', 4000)",
        "'10.1/' || repeat('&amp;', 1600) || 'amp;'",
        "'10.1/&' || repeat('amp;', 2000) || 'lt;'",
        "repeat('doi:', 2000) || '10.1/a'",
        "repeat('https://doi.org/', 500) || '10.1/a'",
        "'10.' || repeat('1.', 4000) || '1/a'",
        "repeat(chr(12288), 2700) || '10.1/a'",
    ],
)
def test_a_doi_built_to_be_slow_is_not(insider: Connection, doi: str) -> None:
    start = time.perf_counter()
    answer = said(insider, f"select length(citeledger.normalize_doi({doi}))")
    assert time.perf_counter() - start < 1
    assert answer.startswith("[(")


def test_recursion_without_end_is_the_servers_clear_error(insider: Connection) -> None:
    """A trigger of the attacker's that calls us, that calls it: the stack has a limit."""
    insider.execute(
        """
        create temporary table loop (id uuid);
        create function pg_temp.again() returns trigger language plpgsql as $$ begin
          insert into loop values (citeledger.current_firm_id()); return new;
        end $$;
        create trigger again before insert on loop for each row execute function pg_temp.again();
        """
    )
    assert sqlstate(insider, "insert into loop values (null)") == "54001"


@pytest.mark.parametrize("moment", ["infinity", "-infinity", "20000-01-01", "0001-01-01 BC"])
@pytest.mark.parametrize(
    ("table", "columns", "values"),
    [
        ("message_citations", "source_text", "'x'"),
        ("message_caselaw_citations", "opinion_id, cluster_id, source_text", "1, 1, 'x'"),
        ("message_tool_sources", "source_kind, label", "'web', 'x'"),
    ],
)
def test_a_time_beyond_all_measure_does_not_close_a_chat_to_the_client(
    scene: Scene, insider: Connection, table: str, columns: str, values: str, moment: str
) -> None:
    """The app may say when a source was recorded; then everybody's trace must still be read."""
    answer = said(
        insider,
        f"insert into citeledger.{table} (message_id, created_at, {columns})"
        f" values (%s, %s, {values})",
        (scene.own.finalized, moment),
    )
    assert answer.startswith("23514")
    with insider.transaction(force_rollback=True):
        assert CiteLedger(insider).ledger_trace(scene.own.chat).entries
