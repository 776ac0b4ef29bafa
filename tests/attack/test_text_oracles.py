"""Text oracles: every function that touches page text, asked for what is not for the caller.

======================================  ========================================================
attack                                  what must come of it
======================================  ========================================================
cite, cite_many, suggest_spans,         one P0002, byte for byte, whatever is not there: unknown,
read_pages, cite_ledger_entry asked     another firm's, another matter's, deleted, privileged,
for a text that is not for the caller   work product, walled; and whatever quote is tried
the same with a malformed span          one 22023, before anything is looked for
read_pages with a page that is there    no difference
ledger_trace of another's chat          one P0002; a cited text that is hidden is withheld
get_citations, walks and the stage      a hidden document is neither named nor walked through
resolve_span and recheck_document       known: the app may try quotes against its own firm's
                                        pages; another firm's answer as a document of nobody
deep_link                               42501 for everybody
a quote that is a pattern, has another  verifies nowhere but where it stands, byte for byte
collation or normal form
guessing a text letter by letter        not by cite; by resolve_span in the own firm: documented
======================================  ========================================================
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from attack.asking import said
from attack.battery import entries_of, whole
from attack.scene import FOREIGN, WALLED, Connection, Scene
from support.records import PERSON, QUOTE

Asked = Callable[[Scene, UUID, UUID, str], tuple[Any, ...]]

ORACLES: dict[str, tuple[str, Asked]] = {
    "cite": (
        "select citeledger.cite(%s, %s)",
        lambda s, m, d, q: (m, json.dumps(s.records.span(document=d, quote=q))),
    ),
    "cite, without offsets": (
        "select citeledger.cite(%s, %s)",
        lambda s, m, d, q: (
            m,
            json.dumps(
                s.records.span(document=d, quote=q, char_start=..., char_end=..., block_index=...)
            ),
        ),
    ),
    "suggest_spans": (
        "select * from citeledger.suggest_spans(%s, %s)",
        lambda s, m, d, q: (m, json.dumps(s.records.span(document=d, quote=q))),
    ),
    "read_pages": (
        "select * from citeledger.read_pages(%s, %s, %s)",
        lambda _, m, d, q: (m, d, len(q)),
    ),
    "read_pages, of every page": (
        "select * from citeledger.read_pages(%s, %s)",
        lambda _s, m, d, _q: (m, d),
    ),
}
QUOTES = (QUOTE, f"Text {WALLED}", f"Text {FOREIGN}", "%" * 10_000)


def hidden(scene: Scene) -> dict[str, tuple[UUID, UUID]]:
    """Return all that is not there for a caller without a person, as matter and document."""
    return scene.records.not_there | {
        "with a text of its own, behind the wall": (scene.records.walled, scene.graph["hidden"]),
        "of no matter": (scene.records.matter, scene.graph["a"]),
        "another firm's, with a text of its own": (scene.foreign.matter, scene.graph["secret"]),
        "another firm's, asked for in one's own matter": (
            scene.records.matter,
            scene.graph["secret"],
        ),
        "one's own, asked for in another firm's matter": (
            scene.foreign.matter,
            scene.records.record,
        ),
    }


def answer(connection: Connection, statement: str, arguments: Any) -> Any:
    """Return the rows of a query, or all that its error says."""
    try:
        with connection.transaction(force_rollback=True):
            return connection.execute(statement, arguments).fetchall()
    except psycopg.Error as error:
        return whole(error)


@pytest.mark.parametrize("login", ["t_reader", "t_app"])
@pytest.mark.parametrize("name", ORACLES)
def test_whatever_is_not_there_gives_one_error_whatever_quote_is_tried(
    scene: Scene, login: str, name: str
) -> None:
    statement, arguments = ORACLES[name]
    with scene.database.connect(login) as connection:
        scene.enter(connection)
        answers = {
            answer(connection, statement, arguments(scene, matter, document, quote))
            for matter, document in hidden(scene).values()
            for quote in QUOTES
        }
        there = answer(
            connection,
            statement,
            arguments(scene, scene.records.matter, scene.records.record, QUOTE),
        )
    assert len(answers) == 1, answers
    (only,) = answers
    assert only[0] == "P0002"
    assert isinstance(there, list)


@pytest.mark.parametrize("login", ["t_reader", "t_app"])
def test_cite_many_gives_one_error_for_each_item_and_for_each_matter(
    scene: Scene, login: str
) -> None:
    with scene.database.connect(login) as connection:
        scene.enter(connection)
        statement = "select citeledger.cite_many(%s, %s)"
        items = [
            scene.records.span(document=document, quote=quote)
            for _, document in hidden(scene).values()
            for quote in QUOTES
            if document != scene.records.record
        ]
        ((found,),) = answer(connection, statement, (scene.records.matter, json.dumps(items)))
        assert len(found) == len(items)
        assert {json.dumps(item) for item in found} == {
            json.dumps({"error": {"message": "record not found", "sqlstate": "P0002"}})
        }
        answers = {
            answer(connection, statement, (matter, spans))
            for matter in (scene.records.walled, scene.foreign.matter, uuid4())
            for spans in ("[]", json.dumps(items))
        }
    assert len(answers) == 1, answers


def test_a_malformed_span_is_told_before_anything_is_looked_for(scene: Scene, spy: Any) -> None:
    for changes in (
        {"quote": ""},
        {"page_number": 0},
        {"char_end": 0},
        {"block_index": "1"},
        {FOREIGN: 1},
    ):
        # The first of a session says in its context that an expression was planned.
        answers = {
            answer(
                spy,
                "select citeledger.cite(%s, %s)",
                (matter, json.dumps(scene.records.span(document=document) | changes)),
            )[:4]
            for matter, document in (
                *hidden(scene).values(),
                (scene.records.matter, scene.records.record),
            )
        }
        assert len(answers) == 1, answers
        assert answers.pop()[0] == "22023"


def test_an_entry_of_the_ledger_that_is_not_for_the_caller_is_one_error(
    scene: Scene, spy: Connection
) -> None:
    not_citations = [
        e
        for (e,) in scene.superuser.execute(
            "select id from citeledger.citation_ledger_entry"
            " where message_id = %s and message_citation_id is null",
            (scene.own.finalized,),
        )
    ]
    answers = {
        answer(spy, "select citeledger.cite_ledger_entry(%s)", (entry,))
        for entry in (
            *entries_of(scene, scene.walled.finalized),
            *entries_of(scene, scene.foreign.finalized),
            *not_citations,
            uuid4(),
        )
    }
    assert len(answers) == 1, answers
    assert answers.pop()[0] == "P0002"
    (own,) = entries_of(scene, scene.own.finalized)
    assert isinstance(answer(spy, "select citeledger.cite_ledger_entry(%s)", (own,)), list)


def test_a_chat_that_is_not_for_the_caller_is_one_error(scene: Scene, spy: Connection) -> None:
    statement = "select citeledger.ledger_trace(%s, %s)"
    answers = {
        answer(spy, statement, (chat, message))
        for chat in (scene.walled.chat, scene.foreign.chat, uuid4())
        for message in (scene.walled.finalized, scene.foreign.finalized, uuid4(), None)
    }
    assert len(answers) == 1, answers
    assert answers.pop()[0] == "P0002"
    # In one's own chat, a message of another chat is no message.
    for message in (scene.walled.finalized, scene.foreign.finalized, uuid4()):
        ((trace,),) = answer(spy, statement, (scene.own.chat, message))
        assert trace == {"chat_id": str(scene.own.chat), "entries": [], "gates": []}


def test_a_trace_withholds_the_words_of_a_document_that_is_hidden(
    scene: Scene, insider: Connection, spy: Connection
) -> None:
    """A chat of no matter that quotes a walled, a privileged and a withdrawn document."""
    insider.execute("insert into citeledger.chats (id, title) values (%s, 'x')", (uuid4(),))
    (chat,) = insider.execute(
        "select id from citeledger.chats where project_id is null"
    ).fetchone() or (None,)
    (message,) = insider.execute(
        "insert into citeledger.messages (chat_id, role) values (%s, 'assistant') returning id",
        (chat,),
    ).fetchone() or (None,)
    for name in ("privileged", "deleted", "in a walled matter"):
        insider.execute(
            "insert into citeledger.message_citations"
            " (message_id, source_document_id, source_page, source_text) values (%s, %s, 1, %s)",
            (message, scene.records.not_there[name][1], f"{WALLED} {name}"),
        )
    insider.execute("select citeledger.finalize_turn(%s)", (message,))
    ((trace,),) = answer(insider, "select citeledger.ledger_trace(%s)", (chat,))
    assert len(trace["entries"]) == 3
    assert all(e["source"]["withheld"] for e in trace["entries"])
    assert WALLED not in json.dumps(trace)
    scene.enter(insider, person=PERSON)
    ((trace,),) = answer(insider, "select citeledger.ledger_trace(%s)", (chat,))
    assert json.dumps(trace).count(WALLED) == 1, "the member sees what the wall alone hid"


def test_the_graph_neither_names_a_hidden_document_nor_walks_through_it(
    scene: Scene, spy: Connection
) -> None:
    everything = [
        answer(spy, "select citeledger.get_citations(%s)", (scene.graph[n],)) for n in "abc"
    ]
    everything += [
        answer(
            spy,
            "select * from citeledger.walk_citations(%s::uuid[], 9)",
            ([scene.graph[n] for n in ("a", "hidden", "secret")],),
        ),
        answer(
            spy,
            "select * from citeledger.graph_stage(%s::text[], 9, true)",
            (["rent", f"buried {WALLED}", f"buried {FOREIGN}"],),
        ),
    ]
    text = repr(everything)
    for name in ("hidden", "dark", "buried", "secret"):
        assert str(scene.graph[name]) not in text
    assert f"File {WALLED}" not in text
    assert str(scene.graph["b"]) in text
    assert str(scene.graph["open"]) in text
    answers = {
        answer(spy, "select citeledger.get_citations(%s)", (document,))
        for document in (scene.graph["hidden"], scene.graph["secret"], uuid4())
    }
    assert len(answers) == 1, answers


def test_a_reference_to_a_hidden_document_looks_like_one_to_none(
    scene: Scene, spy: Connection
) -> None:
    ((found,),) = answer(spy, "select citeledger.get_citations(%s)", (scene.graph["a"],))
    by_doi = {r["doi"]: r for r in found["references"]}
    assert by_doi["10.5555/walled"] == {
        "document_id": None,
        "title": None,
        "doi": "10.5555/walled",
        "source": "crossref",
        "resolved": False,
    }
    assert by_doi["10.5555/b"]["resolved"]


@pytest.mark.parametrize(
    "statement",
    [
        "select citeledger.resolve_span(%s)",
        "select * from citeledger.recheck_document(%s)",
        "select citeledger.replace_document_pages(%s, '[]')",
        "select citeledger.record_references(%s, '{}')",
    ],
)
def test_what_asks_for_no_matter_answers_for_another_firm_as_for_nobody(
    scene: Scene, insider: Connection, statement: str
) -> None:
    def arguments(document: UUID) -> tuple[Any, ...]:
        if "resolve_span" in statement:
            return (json.dumps(scene.records.span(document=document, quote=f"Text {FOREIGN}")),)
        return (document,)

    answers = {
        repr(answer(insider, statement, arguments(document)))
        for document in (scene.graph["secret"], uuid4())
    }
    assert len(answers) == 1, answers


def test_the_app_may_try_quotes_in_its_own_firm_and_the_reader_may_not(
    scene: Scene, insider: Connection, spy: Connection
) -> None:
    """The documented boundary: it learns yes or no, from any page, never a text or a link."""
    right, wrong = (
        json.dumps({"document_id": str(scene.graph["hidden"]), "page_number": 1, "quote": q})
        for q in (WALLED, "zqother")
    )
    assert answer(insider, "select citeledger.resolve_span(%s)::text", (right,)) == [("(t,)",)]
    assert answer(insider, "select citeledger.resolve_span(%s)::text", (wrong,)) == [
        ("(f,quote_absent)",)
    ]
    for statement in (
        "select citeledger.resolve_span(null)",
        "select * from citeledger.recheck_document(null)",
    ):
        assert said(spy, statement).startswith("42501")


def test_nobody_makes_a_link(scene: Scene, insider: Connection, spy: Connection) -> None:
    with scene.database.connect("t_admin") as admin:
        scene.enter(admin)
        for connection in (insider, spy, admin):
            link = said(connection, "select citeledger.deep_link('M', gen_random_uuid(), 1)")
            assert link.startswith("42501")
        for connection in (insider, spy):
            for name in ("resolve_spans", "holds_record", "visible_matter_number"):
                inner = said(connection, f"select citeledger_private.{name}(null, null)")
                assert inner.startswith("42501 permission denied for schema")


@pytest.mark.parametrize(
    "quote",
    [
        "%",
        "_" * len(QUOTE),
        ".*",
        "\\",
        "ninety",
        QUOTE.upper(),
        QUOTE.replace("'", "\u2019"),
        QUOTE.replace("e", "e\u0301", 1),
        unicodedata.normalize("NFD", QUOTE) + "\u200b",
        "' or true --",
        "$1",
        "\x01" * len(QUOTE),
    ],
)
def test_a_quote_that_is_not_the_bytes_on_the_page_verifies_at_no_place(
    scene: Scene, spy: Connection, quote: str
) -> None:
    span = scene.records.span(quote=quote)
    ((found,),) = answer(
        spy, "select citeledger.cite(%s, %s)", (scene.records.matter, json.dumps(span))
    )
    assert found["verified"] is False
    assert found["reason"] == "text_mismatch"
    assert found["deep_link"] is None
