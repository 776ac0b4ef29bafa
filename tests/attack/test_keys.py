"""What keys tell: a unique key knows of rows that nobody may see, and so does a foreign key.

======================================  ========================================================
attack                                  what must come of it
======================================  ========================================================
a unique key asked for another firm's   nothing: every key begins with the firm
matter number, DOI, concept, id
a unique key asked for a walled matter  23505: that is documented; but no row in the error
number of the own firm
ON CONFLICT as a quieter question       the same and no more; no update behind the wall
a foreign key asked for another firm's  23503, as for an id that does not exist, byte for byte
id, in every table that has one
a foreign key asked with the id of a    the own firm's rows are known to be there: documented
walled matter
an own table that references ours       42501: no role may reference our tables
======================================  ========================================================
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID, uuid4

import pytest

from attack.asking import said
from attack.scene import FOREIGN, Connection, Scene

# Each with places for the ids of a parent; by the table, what it inserts.
REFERENCES: dict[str, tuple[str, Callable[[Scene], UUID]]] = {
    "chats to a matter": (
        "insert into citeledger.chats (project_id) values (%s)",
        lambda s: s.foreign.matter,
    ),
    "documents to a matter": (
        "insert into citeledger.documents (project_id, title) values (%s, 'x')",
        lambda s: s.foreign.matter,
    ),
    "documents moved to a matter": (
        "update citeledger.documents set project_id = %s",
        lambda s: s.foreign.matter,
    ),
    "messages to a chat": (
        "insert into citeledger.messages (chat_id, role) values (%s, 'user')",
        lambda s: s.foreign.chat,
    ),
    "citations to a turn": (
        "insert into citeledger.message_citations (message_id, source_text) values (%s, 'x')",
        lambda s: s.foreign.open,
    ),
    "citations to a document": (
        "insert into citeledger.message_citations (message_id, source_document_id, source_text)"
        " select m.id, %s, 'x' from citeledger.messages as m where m.finalized_at is null limit 1",
        lambda s: s.graph["secret"],
    ),
    "opinions to a turn": (
        "insert into citeledger.message_caselaw_citations"
        " (message_id, opinion_id, cluster_id, source_text) values (%s, 1, 1, 'x')",
        lambda s: s.foreign.open,
    ),
    "tool sources to a turn": (
        "insert into citeledger.message_tool_sources (message_id, source_kind, label)"
        " values (%s, 'x', 'x')",
        lambda s: s.foreign.open,
    ),
    "chunks to a document": (
        "insert into citeledger.chunks (document_id, chunk_index, content) values (%s, 9, 'x')",
        lambda s: s.graph["secret"],
    ),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_a_foreign_key_answers_alike_for_another_firms_id_and_for_none(
    scene: Scene, insider: Connection, name: str
) -> None:
    statement, there = REFERENCES[name]
    answers = {
        said(insider, statement, (identifier,)).replace(str(identifier), "<id>")
        for identifier in (there(scene), uuid4())
    }
    assert len(answers) == 1, answers
    answer = answers.pop()
    assert answer.startswith("23503"), answer
    assert FOREIGN not in answer


def other_numbers(scene: Scene) -> dict[str, str]:
    """Return the matter numbers of another firm, and of a walled matter of one's own."""
    return {
        kind: scene.superuser.execute(
            "select matter_number from citeledger.projects where id = %s", (identifier,)
        ).fetchall()[0][0]
        for kind, identifier in (
            ("foreign", scene.foreign.matter),
            ("walled", scene.records.walled),
            ("own", scene.records.matter),
        )
    }


def test_a_matter_number_of_another_firm_is_free(scene: Scene, insider: Connection) -> None:
    insert = "insert into citeledger.projects (matter_number, name) values (%s, 'x')"
    foreign = scene.foreign_records.world.project(matter_number="only theirs")
    try:
        assert said(insider, insert, ("only theirs",)) == "'INSERT 0 1'"
        assert said(insider, f"{insert} on conflict do nothing", ("only theirs",)) == "'INSERT 0 1'"
    finally:
        scene.superuser.execute("delete from citeledger.projects where id = %s", (foreign,))


def test_a_matter_number_behind_a_wall_is_known_to_be_in_use_and_nothing_else_is(
    scene: Scene, insider: Connection
) -> None:
    """The documented oracle, exactly: used or not. Neither row nor name, and not which wall."""
    insert = "insert into citeledger.projects (matter_number, name) values (%s, 'x')"
    numbers = other_numbers(scene)
    walled, own = (said(insider, insert, (numbers[kind],)) for kind in ("walled", "own"))
    assert walled == own
    assert walled.startswith("23505")
    assert numbers["walled"] not in walled
    assert said(insider, f"{insert} on conflict do nothing", (numbers["walled"],)) == "'INSERT 0 0'"
    for quiet in (
        " on conflict (firm_id, matter_number) do update set name = 'seized'",
        " on conflict (firm_id, matter_number) do update set id = excluded.id returning *",
    ):
        assert said(insider, insert + quiet, (numbers["walled"],)).startswith("42501")


@pytest.mark.parametrize(
    "statement",
    [
        "insert into citeledger.messages (id, chat_id, role) values (%s, '{chat}', 'user')"
        " on conflict {target} do update set content = 'seized' returning content",
        "insert into citeledger.message_citations (id, message_id, source_text)"
        " values (%s, '{open}', 'x') on conflict {target} do update set verified = false"
        " returning source_text",
        "insert into citeledger.documents (id, title) values (%s, 'x')"
        " on conflict {target} do update set title = 'seized' returning source",
    ],
)
def test_the_id_of_another_firms_row_is_free_and_its_row_is_not_updated(
    scene: Scene, insider: Connection, statement: str
) -> None:
    """``do update`` on a key of the firm: it inserts one's own row and meets nobody else's."""
    taken = {
        "messages": scene.foreign.open,
        "message_citations": scene.foreign.open_citation,
        "documents": scene.graph["secret"],
    }
    (identifier,) = (i for t, i in taken.items() if f"citeledger.{t} " in statement)
    answers = {
        said(
            insider,
            statement.format(chat=scene.own.chat, open=scene.own.open, target="(firm_id, id)"),
            (key,),
        )
        for key in (identifier, uuid4())
    }
    assert len(answers) == 1
    assert FOREIGN not in answers.pop()


def test_a_concept_and_a_place_in_the_own_firm_are_all_that_a_key_knows(
    scene: Scene, insider: Connection
) -> None:
    assert said(
        insider,
        "insert into citeledger.kg_entities (name, entity_type) values (%s, 'x')",
        (f"Buried {FOREIGN}",),
    ) == ("'INSERT 0 1'")
    own = said(
        insider, "insert into citeledger.kg_entities (name, entity_type) values ('RENT', 'x')"
    )
    assert own.startswith("23505")
    assert own.endswith("None"), "the error shows a row"


def test_the_wall_does_not_keep_a_foreign_key_from_knowing_an_id(
    scene: Scene, insider: Connection
) -> None:
    """Documented: within the firm an id, which cannot be guessed, is known to be there."""
    insert = "insert into citeledger.chats (project_id) values (%s)"
    assert said(insider, insert, (scene.records.walled,)) == "'INSERT 0 1'"
    assert said(insider, insert, (uuid4(),)).startswith("23503")


@pytest.mark.parametrize("login", ["t_reader", "t_app"])
def test_no_table_of_the_attackers_references_ours(scene: Scene, login: str) -> None:
    """A foreign key of one's own would hold rows of ours fast, and ask for their existence."""
    with scene.database.connect(login) as connection:
        for table in scene.tables:
            for made in ("create temporary table hook", f"create table lair_{login}.hook"):
                answer = said(
                    connection, f"{made} (firm_id uuid, id uuid references citeledger.{table})"
                )
                assert answer[:5] in ("42501", "42P16"), (table, answer)
        connection.rollback()


def test_a_key_of_a_firm_that_nobody_has_is_not_a_question_either(
    scene: Scene, insider: Connection
) -> None:
    """For a firm that is not there, nothing can be written and nothing is seen."""
    firm: UUID = uuid4()
    insider.execute("select citeledger.set_context(%s)", (firm,))
    assert said(insider, "insert into citeledger.chats (title) values ('x')").startswith("23503")
    assert said(insider, "select * from citeledger.firms") == "[]"
