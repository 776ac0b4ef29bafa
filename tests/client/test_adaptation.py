"""Values that trip drivers: they arrive as they are, or the client refuses them by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psycopg
import pytest

from citeledger import CiteLedger, DocumentSource, InvalidArgument
from support.world import World, insert

if TYPE_CHECKING:
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
