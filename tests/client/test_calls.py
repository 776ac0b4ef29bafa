"""Every call, on a real database: what it returns, and that it matches the function in SQL."""

from __future__ import annotations

import dataclasses
import re
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg.types.json import set_json_loads

import citeledger
from citeledger import (
    CaselawSource,
    CiteLedger,
    DocumentSource,
    FinalizeReport,
    Gate,
    IntegrityProblem,
    NotFound,
    Passage,
    PermissionDenied,
    ToolSource,
    calls,
    rows,
)
from support.world import World

if TYPE_CHECKING:
    from conftest import Database

READ = ("matters:read",)


@pytest.fixture
def client(app: psycopg.Connection[Any]) -> CiteLedger:
    return CiteLedger(app)


def full_turn(world: World) -> tuple[UUID, UUID]:
    """Make a turn with one source of each kind; return the chat and the message."""
    project = world.project()
    chat = world.chat(project)
    message = world.message(chat)
    world.citation(
        message,
        source_document_id=world.document(project),
        source_page=7,
        source_block=2,
        source_offset_start=5,
        source_offset_end=9,
        source_text="100% of %s {x}",
        verification_confidence=Decimal("0.97"),
    )
    world.caselaw(message, "paraphrase_judge", partial=True)
    world.tool(message, subtitle="A page", external_ref="r-1")
    return chat, message


def test_finalize_turn(client: CiteLedger, world: World) -> None:
    chat, message = full_turn(world)
    with client.context(firm_id=world.firm_id):
        report = client.finalize_turn(message)
    assert isinstance(report, FinalizeReport)
    assert (report.message_id, report.finalized, report.entries_written) == (message, True, 3)
    assert report.failures == ()
    gate = report.gate
    assert isinstance(gate, Gate)
    assert (gate.message_id, gate.chat_id, gate.gate_status) == (message, chat, "supported_only")
    assert (gate.pass_count, gate.supported_count, gate.fail_count) == (1, 1, 0)
    assert (gate.total_assertions, gate.unrecognized_count) == (2, 0)
    assert gate.confidence == pytest.approx((0.97 + 0.9) / 2)
    assert isinstance(gate.project_id, UUID)
    assert gate.computed_at.utcoffset() is not None


def test_finalize_turn_of_what_is_no_turn(client: CiteLedger, world: World) -> None:
    question = world.message(world.chat(), role="user")
    with client.context(firm_id=world.firm_id):
        for unknown in (uuid4(), question):
            report = client.finalize_turn(unknown)
            assert report == FinalizeReport(unknown, False, 0, None, ())


def test_finalize_turn_after_the_chat_was_deleted(
    client: CiteLedger, world: World, su: psycopg.Connection[Any]
) -> None:
    chat, message = full_turn(world)
    su.execute("delete from citeledger.chats where id = %s", (chat,))
    with client.context(firm_id=world.firm_id):
        report = client.finalize_turn(str(message))
    assert report == FinalizeReport(message, False, 0, None, ())


def test_finalize_turns(client: CiteLedger, world: World) -> None:
    turns = [full_turn(world)[1] for _ in range(3)]
    with client.context(firm_id=world.firm_id):
        assert client.finalize_turns([]) == 0
        assert client.finalize_turns([turns[0], str(turns[1]), uuid4()]) == 2
        assert client.finalize_turns(t for t in turns) == 3


def test_finalize_pending(client: CiteLedger, world: World, app: psycopg.Connection[Any]) -> None:
    # Under another isolation level a turn is finalized without a verdict, and is pending.
    _, message = full_turn(world)
    app.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    with client.context(firm_id=world.firm_id):
        report = client.finalize_turn(message)
        assert report.finalized
        assert report.gate is None
        assert [f.stage for f in report.failures] == ["isolation"]
    app.commit()
    app.isolation_level = None
    with client.context(firm_id=world.firm_id):
        assert client.finalize_pending(limit=10) == 1
        assert client.finalize_pending() == 0


def test_assemble_and_gate(client: CiteLedger, world: World) -> None:
    _, message = full_turn(world)
    with client.context(firm_id=world.firm_id):
        assert client.assemble_ledger_entries(message) == 3
        assert client.assemble_ledger_entries(message) == 0
        assert client.assemble_ledger_entries(uuid4()) == 0
        gate = client.compute_and_record_gate(message)
        assert gate is not None
        assert client.compute_and_record_gate(uuid4()) is None
        assert client.compute_and_record_gate(message) == gate


def test_ledger_trace(client: CiteLedger, world: World) -> None:
    chat, message = full_turn(world)
    other = world.message(chat)
    world.citation(other, None)
    with client.context(firm_id=world.firm_id, permissions=READ):
        report = client.finalize_turn(message)
        client.finalize_turn(other)
        trace = client.ledger_trace(chat)
        one = client.ledger_trace(str(chat), message)
        empty = client.ledger_trace(world.chat())
    assert trace.chat_id == chat
    assert [e.message_id for e in trace.entries] == [message] * 3 + [other]
    assert {g.message_id: g.gate_status for g in trace.gates} == {
        message: "supported_only",
        other: "flagged",
    }
    assert one.entries == trace.entries[:3]
    assert one.gates == (report.gate,)
    assert (empty.entries, empty.gates) == ((), ())

    document, opinion, tool, unverified = trace.entries
    assert (document.source_kind, document.verification_status, document.tier) == (
        "kb_document",
        "exact_match",
        "pass",
    )
    assert document.confidence == pytest.approx(0.97)
    assert document.provider is None
    assert document.retrieved_at is None
    assert isinstance(document.source, DocumentSource)
    assert document.source.passages == (Passage("100% of %s {x}", 5, 9),)
    assert (document.source.page, document.source.block) == (7, 2)
    assert not document.source.withheld

    assert (opinion.source_kind, opinion.tier) == ("caselaw", "supported")
    assert opinion.provider == "courtlistener"
    assert isinstance(opinion.retrieved_at, datetime)
    assert isinstance(opinion.source, CaselawSource)
    assert (opinion.source.opinion_id, opinion.source.cluster_id) == (1001, 2001)
    assert opinion.source.partial

    assert (tool.source_kind, tool.tier, tool.confidence) == ("web_search", "provenance", None)
    assert tool.source == ToolSource(
        "web_search", "A result", "A page", "https://search.example/1", "r-1", "search"
    )
    assert (unverified.verification_status, unverified.tier) == ("unverified", "fail")
    assert all(e.treatment_id is None for e in trace.entries)


def test_a_tool_may_name_any_kind(client: CiteLedger, world: World) -> None:
    message = world.turn()
    world.tool(message, source_kind="caselaw")
    chat = world.connection.execute(
        "select chat_id from citeledger.messages where id = %s", (message,)
    ).fetchone()
    assert chat is not None
    with client.context(firm_id=world.firm_id, permissions=READ):
        client.finalize_turn(message)
        (entry,) = client.ledger_trace(chat[0]).entries
    assert isinstance(entry.source, ToolSource)


def test_a_privileged_document_is_withheld(client: CiteLedger, world: World) -> None:
    chat = world.chat()
    message = world.message(chat)
    world.citation(message, source_document_id=world.document(is_privileged=True))
    with client.context(firm_id=world.firm_id, permissions=READ):
        client.finalize_turn(message)
        (entry,) = client.ledger_trace(chat).entries
    assert isinstance(entry.source, DocumentSource)
    assert entry.source.passages is None
    assert entry.source.withheld


def test_what_a_trace_refuses(
    client: CiteLedger, world: World, app: psycopg.Connection[Any]
) -> None:
    chat, _ = full_turn(world)
    with (
        pytest.raises(PermissionDenied) as denied,
        client.context(firm_id=world.firm_id),
    ):
        client.ledger_trace(chat)
    assert denied.value.sqlstate == "42501"
    assert denied.value.detail
    assert denied.value.hint
    app.rollback()
    with (
        pytest.raises(NotFound) as missing,
        client.context(firm_id=world.firm_id, permissions=READ),
    ):
        client.ledger_trace(uuid4())
    assert missing.value.sqlstate == "P0002"
    app.rollback()


def test_check_integrity(client: CiteLedger, world: World, su: psycopg.Connection[Any]) -> None:
    _, message = full_turn(world)
    with client.context(firm_id=world.firm_id, permissions=READ):
        client.finalize_turn(message)
        assert client.check_integrity() == []
    client_connection = client._own
    assert client_connection is not None
    client_connection.commit()
    su.execute("alter table citeledger.citation_ledger_entry disable trigger all")
    su.execute("delete from citeledger.citation_ledger_entry where message_id = %s", (message,))
    with client.context(firm_id=world.firm_id, permissions=READ):
        problems = client.check_integrity()
    assert problems
    for problem in problems:
        assert isinstance(problem, IntegrityProblem)
        assert problem.problem
        assert problem.table_name
        assert problem.row_key


def test_version(client: CiteLedger) -> None:
    assert client.version() == citeledger.__version__
    assert client.version() in citeledger.SUPPORTED_SCHEMA


def test_rows_are_frozen_slotted_and_deeply_immutable(client: CiteLedger, world: World) -> None:
    chat, message = full_turn(world)
    with client.context(firm_id=world.firm_id, permissions=READ):
        client.finalize_turn(message)
        trace = client.ledger_trace(chat)
    assert hash(trace) == hash(dataclasses.replace(trace))
    with pytest.raises(dataclasses.FrozenInstanceError):
        trace.chat_id = uuid4()  # type: ignore[misc]
    for cls in vars(rows).values():
        if dataclasses.is_dataclass(cls) and isinstance(cls, type):
            assert cls.__dataclass_params__.frozen, cls  # type: ignore[attr-defined]
            assert "__slots__" in vars(cls), cls


def test_the_callers_loaders_and_row_factory_do_not_matter(db: Database, world: World) -> None:
    chat, message = full_turn(world)
    with db.connect("t_app", row_factory=dict_row, cursor_factory=psycopg.RawCursor) as connection:
        set_json_loads(lambda _: "unreadable", connection)
        connection.adapters.register_loader("uuid", psycopg.types.string.TextLoader)
        connection.execute("set time zone 'Asia/Kathmandu'")
        connection.execute("set datestyle to 'German'")
        client = CiteLedger(connection)
        with client.context(firm_id=world.firm_id, permissions=READ):
            report = client.finalize_turn(message)
            trace = client.ledger_trace(chat)
    assert report.gate is not None
    assert report.gate.computed_at.utcoffset() == timedelta(hours=5, minutes=45)
    assert trace.gates == (report.gate,)


# The contract with SQL


@pytest.mark.parametrize("call", calls.CALLS, ids=lambda c: c.name)
def test_a_call_matches_its_function(
    call: calls.Call[..., Any], su: psycopg.Connection[Any]
) -> None:
    found = su.execute(
        "select pg_catalog.pg_get_function_identity_arguments(p.oid)"
        " from pg_catalog.pg_proc as p"
        " where p.pronamespace = 'citeledger'::regnamespace and p.proname = %s",
        (call.name,),
    ).fetchall()
    assert len(found) == 1
    types = [a.split()[-1] for a in found[0][0].split(", ") if a]
    assert re.findall(r"%s::([a-z\[\]]+)", call.sql) == types
    assert call.sql.count("%s") == len(types)
    assert f"citeledger.{call.name}(" in call.sql


def test_every_call_has_a_method_of_its_name() -> None:
    for call in calls.CALLS:
        assert callable(getattr(CiteLedger, call.name))
        assert callable(getattr(citeledger.Bound, call.name))


def test_gate_has_the_columns_of_its_table(su: psycopg.Connection[Any]) -> None:
    columns = su.execute(
        "select a.attname from pg_catalog.pg_attribute as a"
        " where a.attrelid = 'citeledger.work_product_fiduciary_gate'::regclass"
        " and a.attnum > 0 and not a.attisdropped order by a.attnum"
    ).fetchall()
    assert [f.name for f in dataclasses.fields(Gate)] == [
        name for (name,) in columns if name != "firm_id"
    ]


def test_integrity_problem_has_the_columns_of_its_function(su: psycopg.Connection[Any]) -> None:
    cursor = su.execute("select * from citeledger.check_integrity() limit 0")
    assert cursor.description is not None
    names = [c.name for c in cursor.description]
    assert [f.name for f in dataclasses.fields(IntegrityProblem)] == names


def test_the_json_has_no_keys_that_the_rows_lack(world: World, su: psycopg.Connection[Any]) -> None:
    chat, message = full_turn(world)
    su.execute(
        "select pg_catalog.set_config('citeledger.firm_id', %s, false)", (str(world.firm_id),)
    )
    su.execute("select pg_catalog.set_config('citeledger.permissions', '{matters:read}', false)")
    report = su.execute("select citeledger.finalize_turn(%s)", (message,)).fetchone()
    trace = su.execute("select citeledger.ledger_trace(%s)", (chat,)).fetchone()
    assert report is not None
    assert trace is not None

    def names(cls: Any) -> set[str]:
        return {f.name for f in dataclasses.fields(cls)}

    assert set(report[0]) == names(FinalizeReport)
    assert set(report[0]["gate"]) == names(Gate)
    assert set(trace[0]) == names(citeledger.LedgerTrace)
    assert set(trace[0]["gates"][0]) == names(Gate)
    kinds = (DocumentSource, CaselawSource, ToolSource)
    for entry, kind in zip(trace[0]["entries"], kinds, strict=True):
        assert set(entry) == names(citeledger.LedgerEntry)
        # withheld is only there when it is true.
        assert set(entry["source"]) | {"withheld"} == names(kind) | {"withheld"}
