"""Values that trip drivers: they arrive as they are, or the client refuses them by name."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from citeledger import (
    AsyncCiteLedger,
    CiteLedger,
    DocumentSource,
    InvalidArgument,
    SourceSpan,
    calls,
)
from support.loops import async_test
from support.world import World, insert

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Database

QUOTES = [
    "100% of %s {x}",
    "%(name)s and $1",
    'O\'Brien said "no"; drop table x; --',
    "back\\slash \\u0000 \\x00",
    "line\nbreak\ttab",
    "e\u0301 is not \u00e9",
    "𝔘nicode \U0001f4dc",
    "\u202eright to left",
]


@pytest.mark.parametrize("quote", QUOTES)
def test_a_quote_comes_back_as_it_went_in(db: Database, world: World, quote: str) -> None:
    chat = world.chat()
    message = world.message(chat)
    world.citation(message, source_text=quote)
    with db.connect("t_app") as connection:
        client = CiteLedger(connection)
        with client.context(firm_id=world.firm_id, permissions=["matters:read"]):
            client.finalize_turn(message)
            (entry,) = client.ledger_trace(chat).entries
    assert isinstance(entry.source, DocumentSource)
    assert entry.source.passages is not None
    assert entry.source.passages[0].text == quote


def test_an_identity_is_never_part_of_the_statement(app: psycopg.Connection[Any]) -> None:
    client = CiteLedger(app)
    with (
        pytest.raises(InvalidArgument),
        client.context(firm_id="'; select pg_sleep(9); --"),
    ):
        raise AssertionError
    with (
        pytest.raises(InvalidArgument) as caught,
        client.context(firm_id=uuid4(), permissions=["x'; set role postgres; --"]),
    ):
        raise AssertionError
    assert caught.value.sqlstate == "22023"


def test_no_user_and_no_permissions(app: psycopg.Connection[Any], world: World) -> None:
    with CiteLedger(app).context(firm_id=world.firm_id, user_id=None, permissions=()) as bound:
        row = bound.connection.execute(
            "select citeledger.current_user_id(), citeledger.has_permission('matters:read')"
        ).fetchone()
    assert row == (None, False)


def test_a_nul_is_refused_and_the_turn_still_stands(
    app: psycopg.Connection[Any], world: World
) -> None:
    """An application that checks its text keeps the turn, and records the source as unverified."""
    from citeledger.arguments import text_argument

    message = world.turn()
    client = CiteLedger(app)
    with client.context(firm_id=world.firm_id) as bound:
        for text in ("Total due", "Total\0 due"):
            try:
                quote, method = text_argument("source_text", text), "exact_match"
            except InvalidArgument:
                quote, method = "(the quote holds a NUL character)", "failed"
            insert(
                bound.connection,
                "message_citations",
                message_id=message,
                source_text=quote,
                verified=method != "failed",
                verification_method=method,
            )
        report = bound.finalize_turn(message)
    assert report.entries_written == 2
    assert report.gate is not None
    assert (report.gate.pass_count, report.gate.fail_count) == (1, 1)


UNSTORABLE = {"NUL": ("Total\0 due", "NUL"), "lone surrogate": ("Total \ud83d", "surrogate")}

# Every argument that takes text, with a call that has it there, and how the refusal names it.
TEXTS: dict[str, Callable[[str], tuple[str, tuple[Any, ...]]]] = {
    "name": lambda t: ("create_firm", (t,)),
    "permission": lambda t: ("has_permission", (t,)),
    "status": lambda t: ("verification_tier", (t,)),
    "doi": lambda t: ("normalize_doi", (t,)),
    "dois[1]": lambda t: ("record_references", (uuid4(), ["10.1/x", t])),
    "source": lambda t: ("record_references", (uuid4(), [], t)),
    "work.reference[0].DOI": lambda t: (
        "record_crossref_work",
        (uuid4(), {"reference": [{"DOI": t}]}),
    ),
    "direction": lambda t: ("walk_citations", ([], 1, t)),
    "entity_names[0]": lambda t: ("graph_stage", ([t],)),
    "scope.sources[0]": lambda t: ("graph_stage", ([], 1, False, {"sources": [t]})),
    "quote": lambda t: ("cite", (uuid4(), {"quote": t})),
    "spans[1].quote": lambda t: ("cite_many", (uuid4(), [{}, SourceSpan(uuid4(), 1, t)])),
    "pages[0].blocks[1]": lambda t: (
        "replace_document_pages",
        (uuid4(), [{"page_number": 1, "blocks": ["fine", t]}]),
    ),
}


@pytest.mark.parametrize("kind", UNSTORABLE)
@pytest.mark.parametrize("field", TEXTS)
def test_text_that_no_database_stores_is_refused_by_name(
    app: psycopg.Connection[Any], field: str, kind: str
) -> None:
    text, word = UNSTORABLE[kind]
    name, arguments = TEXTS[field](text)
    with pytest.raises(InvalidArgument, match=re.escape(field)) as caught:
        getattr(CiteLedger(app), name)(*arguments)
    assert caught.value.sqlstate is None
    assert word in (caught.value.detail or "")
    assert "Total" not in str(caught.value)
    # No SQL was sent, not even to begin a transaction.
    assert app.info.transaction_status == TransactionStatus.IDLE


def test_every_text_argument_was_tried() -> None:
    tried = {make("")[0] for make in TEXTS.values()}
    for call in calls.CALLS:
        if re.search(r"%s::(text|text\[\]|jsonb)", call.sql):
            same = {"resolve_span", "suggest_spans"}  # They check a span as cite does.
            assert call.name in tried | same, call.name


@async_test
async def test_the_asynchronous_client_refuses_the_same(db: Database) -> None:
    async with await psycopg.AsyncConnection.connect(db.dsn("t_app")) as connection:
        client = AsyncCiteLedger(connection)
        for text, _ in UNSTORABLE.values():
            for field, make in TEXTS.items():
                name, arguments = make(text)
                with pytest.raises(InvalidArgument, match=re.escape(field)):
                    await getattr(client, name)(*arguments)
            with pytest.raises(InvalidArgument, match=re.escape("permissions[0]")):
                async with client.context(firm_id=uuid4(), permissions=[text]):
                    raise AssertionError
        assert connection.info.transaction_status == TransactionStatus.IDLE


def test_a_refusal_in_the_middle_of_a_turn_loses_nothing_of_it(
    app: psycopg.Connection[Any], world: World
) -> None:
    message, document = world.turn(), world.document(world.project())
    world.citation(message)
    client = CiteLedger(app)
    with client.context(firm_id=world.firm_id):
        client.record_references(document, ["10.1234/a"])
        with pytest.raises(InvalidArgument):
            client.record_references(document, ["10.1234/b", "10.1234/\0"])
        # The transaction goes on, with what was done in it.
        assert client.finalize_turn(message).entries_written == 1
    app.commit()
    with client.context(firm_id=world.firm_id, permissions=["matters:read"]):
        assert [r.doi for r in client.get_citations(document).references] == ["10.1234/a"]


@pytest.mark.parametrize("text", QUOTES)
def test_text_in_every_kind_of_argument(
    admin: psycopg.Connection[Any], world: World, text: str
) -> None:
    client = CiteLedger(admin)
    firm = client.create_firm(text)
    admin.commit()
    names = world.connection.execute("select name from citeledger.firms where id = %s", (firm,))
    assert names.fetchone() == (text,)
    document = world.document(world.project())
    with client.context(firm_id=world.firm_id, permissions=["matters:read"]):
        assert client.has_permission(text) is False
        assert client.verification_tier(text) is None
        assert client.graph_stage([text]) == []
        assert client.record_references(document, [text]).unusable == 1
        client.replace_document_pages(document, [{"page_number": 1, "blocks": [text]}])
        (project,) = admin.execute("select id from citeledger.projects").fetchall()
        (block,) = client.read_pages(project[0], str(document))
        assert block.content == text
        assert client.cite(project[0], SourceSpan(document, 1, text, 0, 0, len(text))).verified


def test_ids_lists_and_none(app: psycopg.Connection[Any], world: World) -> None:
    project = world.project()
    document, chat = world.document(project), world.chat(project)
    client = CiteLedger(app)
    with client.context(
        firm_id=str(world.firm_id), user_id=None, permissions=["matters:read"]
    ) as bound:
        assert bound.ledger_trace(str(chat), None) == bound.ledger_trace(chat)
        assert bound.finalize_turns([]) == 0
        assert bound.finalize_turns(()) == 0
        assert bound.walk_citations(iter([])) == []
        assert bound.cite_many(project, []) == []
        assert bound.record_references(document, []).references_found == 0
        assert bound.record_references(document, [None]).unusable == 1
        assert bound.record_crossref_work(document, {"reference": []}).references_found == 0
        assert bound.record_crossref_work(document, {}).references_found == 0
        assert bound.replace_document_pages(str(document), []) == 0
        assert bound.read_pages(project, document, None) == []
        assert bound.graph_stage([]) == []
        assert bound.normalize_doi(None) is None
        assert bound.verification_tier(None) is None
        # An id inside of JSON, in a plain mapping.
        scope = {"exclude_document_ids": [uuid4(), str(uuid4())], "sources": []}
        assert bound.graph_stage(["x"], scope=scope) == []
        assert bound.record_crossref_work(document, {"id": uuid4()}).references_found == 0
        span = {"document_id": document, "page_number": 1, "quote": "100% of %s {x}"}
        assert bound.cite(str(project), span).reason == "no_pages"


@pytest.mark.parametrize(
    "value",
    [datetime.now(UTC), Decimal("0.5"), b"x", object(), float("nan"), {1: 2}, {"a": {1, b"x"}}],
    ids=lambda v: type(v).__name__,
)
def test_what_json_cannot_say_is_refused_by_name(
    app: psycopg.Connection[Any], value: object
) -> None:
    with pytest.raises(InvalidArgument, match="work"):
        CiteLedger(app).record_crossref_work(uuid4(), {"metadata": value})
    assert app.info.transaction_status == TransactionStatus.IDLE


def test_numbers_and_times_come_back_typed(app: psycopg.Connection[Any], world: World) -> None:
    message = world.turn()
    world.citation(message, verification_confidence=Decimal("0.25"))
    client = CiteLedger(app)
    with client.context(firm_id=world.firm_id):
        gate = client.finalize_turn(message).gate
    assert gate is not None
    assert isinstance(gate.confidence, float)
    assert gate.confidence == 0.25
    assert gate.computed_at.tzinfo is not None
