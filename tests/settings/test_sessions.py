"""A whole turn, a cite and a list of references, in sessions that others have set up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from psycopg.types.json import Jsonb

from support.records import READ, Records
from support.world import World, set_context

if TYPE_CHECKING:
    from conftest import Database

LEVELS = ("repeatable read", "serializable")


def one(connection: psycopg.Connection[Any], query: str, *parameters: Any) -> Any:
    row = connection.execute(query, parameters).fetchone()
    assert row is not None
    return row[0]


def turn(connection: psycopg.Connection[Any], records: Records) -> Any:
    """Add a turn with a citation to the matter, as an application; return the message."""
    world = World(connection, records.firm_id)
    message = world.turn(records.matter)
    world.citation(message, source_document_id=records.record, source_page=1)
    world.tool(message)
    return message


def read_all(connection: psycopg.Connection[Any], records: Records, message: Any) -> Any:
    """Call what only reads; return the trace of the turn."""
    cited = one(connection, "select citeledger.cite(%s, %s)", records.matter, Jsonb(records.span()))
    assert (cited["verified"], cited["reason"]) == (True, None)
    pages = "select count(*) from citeledger.read_pages(%s, %s)"
    assert one(connection, pages, records.matter, records.record) == 3
    spans = "select count(*) from citeledger.suggest_spans(%s, %s)"
    assert one(connection, spans, records.matter, Jsonb(records.span())) == 1
    found = one(connection, "select citeledger.get_citations(%s)", records.record)
    assert found["document_id"] == str(records.record)
    chat = one(connection, "select chat_id from citeledger.messages where id = %s", message)
    return one(connection, "select citeledger.ledger_trace(%s, %s)", chat, message)


@pytest.mark.parametrize("path", ["", "pg_catalog", "pg_temp, public"])
def test_whatever_the_callers_search_path(
    db: Database, su: psycopg.Connection[Any], path: str
) -> None:
    records = Records.make(su)
    dsn = make_conninfo(db.dsn("t_admin"), options=f"-c search_path={path.replace(' ', '')}")
    with psycopg.connect(dsn) as caller:
        assert one(caller, "select current_setting('search_path')") == path.replace(" ", "")
        with caller.transaction():
            set_context(caller, records.firm_id, permissions=READ)
            message = turn(caller, records)
            report = one(caller, "select citeledger.finalize_turn(%s)", message)
            assert report["gate"]["gate_status"] == "fiduciary_grade"
            trace = read_all(caller, records, message)
            assert len(trace["entries"]) == 2
            cited = World(caller, records.firm_id).document(doi="10.1234/ABC")
            done = one(
                caller,
                "select citeledger.record_references(%s, %s)",
                records.record,
                ["https://doi.org/10.1234/abc"],
            )
            assert done["matched"] == 1
            walked = caller.execute(
                "select document_id, hop from citeledger.walk_citations(%s)", ([records.record],)
            ).fetchall()
            assert walked == [(records.record, 0), (cited, 1)]
            dry = one(caller, "select citeledger.resolve_references()")
            assert (dry["rows_written"], dry["rows_removed"]) == (0, 0)
            gone = one(caller, "select citeledger.corpus_delete(%s)", [cited])
            assert gone
        with caller.transaction():
            set_context(caller, records.firm_id, permissions=READ)
            assert caller.execute("select * from citeledger.check_integrity()").fetchall() == []


def test_with_everything_compiled(db: Database, su: psycopg.Connection[Any]) -> None:
    """Each expression becomes machine code. That is slow, so it is one turn."""
    if not one(su, "select pg_jit_available()"):
        pytest.skip(f"{db.server.kind}: this build has no JIT")
    records = Records.make(su)
    dsn = make_conninfo(
        db.dsn("t_app"),
        options="-c jit=on -c jit_above_cost=0 -c jit_inline_above_cost=0"
        " -c jit_optimize_above_cost=0",
    )
    with psycopg.connect(dsn) as caller:
        set_context(caller, records.firm_id, permissions=READ)
        message = turn(caller, records)
        report = one(caller, "select citeledger.finalize_turn(%s)", message)
        assert report["gate"]["gate_status"] == "fiduciary_grade"
        cite = "select citeledger.cite(%s, %s)"
        cited = one(caller, cite, records.matter, Jsonb(records.span()))
        assert (cited["verified"], cited["reason"]) == (True, None)


@pytest.fixture(params=LEVELS)
def level(db: Database, request: pytest.FixtureRequest) -> str:
    """Make an isolation level the default of the test's database."""
    chosen = str(request.param)
    with db.server.connect(autocommit=True) as superuser:
        superuser.execute(
            sql.SQL("alter database {} set default_transaction_isolation = {}").format(
                sql.Identifier(db.name), sql.Literal(chosen)
            )
        )
    return chosen


def test_a_default_isolation_that_is_not_read_committed(
    db: Database, su: psycopg.Connection[Any], level: str
) -> None:
    """Turns are kept, sealed, without a verdict, and say why; the job gives them theirs."""
    records = Records.make(su)
    with db.connect("t_app") as caller:
        assert one(caller, "show transaction_isolation") == level
        set_context(caller, records.firm_id, permissions=READ)
        message = turn(caller, records)
        report = one(caller, "select citeledger.finalize_turn(%s)", message)
        failures = [{"stage": "isolation", "sqlstate": "25000"}]
        assert (report["finalized"], report["gate"]) == (True, None)
        assert (report["entries_written"], report["failures"]) == (0, failures)
        trace = read_all(caller, records, message)
        assert (trace["entries"], trace["gates"]) == ([], [])
        caller.commit()

        # Not here either, however often it is tried, and without an error.
        set_context(caller, records.firm_id, permissions=READ)
        assert one(caller, "select citeledger.finalize_pending()") == 0
        caller.commit()

        caller.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        set_context(caller, records.firm_id, permissions=READ)
        assert one(caller, "select citeledger.finalize_pending()") == 1
        trace = read_all(caller, records, message)
        assert len(trace["entries"]) == 2
        assert [gate["gate_status"] for gate in trace["gates"]] == ["fiduciary_grade"]
        assert caller.execute("select * from citeledger.check_integrity()").fetchall() == []
        caller.commit()


def test_the_graph_is_not_written_under_such_a_default(
    db: Database, su: psycopg.Connection[Any], level: str
) -> None:
    """It says so, and writes nothing; a document without a DOI is no part of the graph yet."""
    records = Records.make(su)
    refused = (
        ("select citeledger.record_references(%s, array['10.1234/abc'])", (records.record,)),
        ("update citeledger.documents set doi = '10.1234/abc' where id = %s", (records.record,)),
    )
    with db.connect("t_app") as caller:
        for statement, parameters in refused:
            set_context(caller, records.firm_id, permissions=READ)
            with pytest.raises(psycopg.errors.InvalidTransactionState) as caught:
                caller.execute(statement, parameters)
            assert caught.value.diag.sqlstate == "25000"
            caller.rollback()
        set_context(caller, records.firm_id, permissions=READ)
        World(caller, records.firm_id).document(records.matter)
        caller.commit()
    found = su.execute(
        "select (select count(*) from citeledger.document_references),"
        " (select count(*) from citeledger.documents where doi is not null)"
    ).fetchone()
    assert found == (0, 0)
