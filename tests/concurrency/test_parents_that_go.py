"""A chat, matter, document, message or firm is deleted while one of its turns is finalized
(L06).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import psycopg
import pytest

from concurrency.test_sources_and_finalize import FINALIZE, INSERT, parametrized
from faults.turns import (
    assert_consistent,
    assert_no_stale_verdict,
    entries,
    failures,
    settle_pending,
    sources,
    verdict,
)
from support.races import Session
from support.world import World

Connection = psycopg.Connection[Any]
Opened = Callable[..., Session]

TABLES = (
    "messages",
    "message_citations",
    "message_caselaw_citations",
    "message_tool_sources",
    "citation_ledger_entry",
    "citation_ledger_entry_revision",
    "work_product_fiduciary_gate",
    "finalize_failure",
)

# What takes the turn with it, in a form that a role may use.
GOES = {
    "chat": (
        "t_admin",
        (
            "delete from citeledger.chats where id in"
            " (select chat_id from citeledger.messages where id = %s)"
        ),
    ),
    "message": ("t_admin", "delete from citeledger.messages where id = %s"),
    "firm": (
        "t_admin",
        "select citeledger.delete_firm(firm_id) from citeledger.messages where id = %s",
    ),
}
GOING = pytest.mark.parametrize(("role", "delete"), GOES.values(), ids=GOES)


@pytest.fixture
def turn(world: World) -> UUID:
    """Give an open turn of a matter, with a source of each kind and a cited document."""
    matter = world.project()
    identifier = world.turn(matter)
    world.citation(identifier, source_document_id=world.document(matter))
    world.caselaw(identifier)
    world.tool(identifier)
    return identifier


def left_of(su: Connection, firm_id: UUID) -> dict[str, int]:
    """Count what is left of a firm's turns."""
    found = {}
    for table in TABLES:
        row = su.execute(
            f"select count(*) from citeledger.{table} where firm_id = %s", (firm_id,)
        ).fetchone()
        assert row is not None
        if row[0]:
            found[table] = row[0]
    return found


@GOING
def test_a_turn_that_went_before_finalize_is_a_turn_without_a_parent(
    world: World, su: Connection, opened: Opened, turn: UUID, role: str, delete: str
) -> None:
    """Finalize waits for the delete and then finds nothing: it says so and writes nothing."""
    first, second = opened(role), opened()
    first.run(delete, (turn,))
    second.start(FINALIZE["finalize_turn"], (turn,))
    second.blocked()
    first.commit()
    assert second.result()[0][0] == {
        "message_id": str(turn),
        "finalized": False,
        "entries_written": 0,
        "gate": None,
        "failures": [],
    }
    assert second.value("select 1") == 1, "the transaction is alive"
    second.commit()
    assert left_of(su, world.firm_id) == {}


@GOING
@parametrized("finalize", FINALIZE)
def test_a_turn_that_goes_while_it_is_finalized_leaves_nothing_behind(
    world: World, su: Connection, opened: Opened, turn: UUID, role: str, delete: str, finalize: str
) -> None:
    """The delete waits for the finalize and takes with it what that wrote."""
    first, second = opened(), opened(role)
    first.run(finalize, (turn,))
    second.start(delete, (turn,))
    second.blocked()
    first.commit()
    second.result()
    second.commit()
    assert left_of(su, world.firm_id) == {}


@GOING
def test_a_delete_that_is_rolled_back_lets_finalize_go_on(
    world: World, su: Connection, opened: Opened, turn: UUID, role: str, delete: str
) -> None:
    first, second = opened(role), opened()
    first.run(delete, (turn,))
    second.start(FINALIZE["finalize_turn"], (turn,))
    second.blocked()
    first.rollback()
    assert second.result()[0][0]["failures"] == []
    second.commit()
    assert verdict(su, turn) == "fiduciary_grade"
    assert_consistent(su, world.firm_id)


@GOING
@parametrized("change", INSERT)
def test_a_source_for_a_turn_that_goes_is_an_ordinary_foreign_key_error(
    world: World, su: Connection, opened: Opened, turn: UUID, role: str, delete: str, change: str
) -> None:
    """Nothing is orphaned: whoever records into a turn that is gone hears it from the
    constraint.
    """
    first, second = opened(role), opened()
    first.run(delete, (turn,))
    second.start(change, (turn,))
    second.blocked()
    first.commit()
    assert isinstance(second.error(), psycopg.errors.ForeignKeyViolation)
    second.rollback()
    assert left_of(su, world.firm_id) == {}


@GOING
def test_a_late_source_that_came_first_goes_with_its_turn(
    world: World, su: Connection, opened: Opened, turn: UUID, role: str, delete: str
) -> None:
    done = opened()
    done.run(FINALIZE["finalize_turn"], (turn,))
    done.commit()
    first, second = opened(), opened(role)
    first.run(INSERT["citation"], (turn,))
    second.start(delete, (turn,))
    second.blocked()
    first.commit()
    second.result()
    second.commit()
    assert left_of(su, world.firm_id) == {}


def matter_of(su: Connection, turn: UUID) -> UUID:
    row = su.execute(
        "select c.project_id from citeledger.chats as c"
        " join citeledger.messages as m on m.chat_id = c.id where m.id = %s",
        (turn,),
    ).fetchone()
    assert row is not None
    assert isinstance(row[0], UUID)
    return row[0]


def test_a_matter_that_goes_while_its_turn_is_finalized_ends_in_order_or_in_the_log(
    world: World, su: Connection, opened: Opened, job: Connection, turn: UUID
) -> None:
    """The verdict refers to the matter: finalize waits for its delete, and then it is gone.

    Either finalize writes the verdict without the matter, or its step failed, is logged, and the
    job does it.
    """
    first, second = opened("t_admin"), opened()
    first.run("delete from citeledger.projects where id = %s", (matter_of(su, turn),))
    second.start(FINALIZE["finalize_turn"], (turn,))
    second.blocked()
    first.commit()
    report = second.result()[0][0]
    second.commit()
    assert report["finalized"]
    assert_no_stale_verdict(su, world.firm_id)
    if report["gate"] is None:
        assert report["failures"] == [{"stage": "gate", "sqlstate": "23503"}]
        assert settle_pending(job, world.firm_id) == 1
    assert entries(su, turn) == 3
    assert verdict(su, turn) == "fiduciary_grade"
    assert_consistent(su, world.firm_id)


def test_a_matter_that_goes_after_the_finalize_keeps_the_verdict(
    world: World, su: Connection, opened: Opened, turn: UUID
) -> None:
    first, second = opened(), opened("t_admin")
    matter = matter_of(su, turn)
    first.run(FINALIZE["finalize_turn"], (turn,))
    second.start("delete from citeledger.projects where id = %s", (matter,))
    second.blocked()
    first.commit()
    second.result()
    second.commit()
    row = su.execute(
        "select g.project_id, e.project_id from citeledger.work_product_fiduciary_gate as g"
        " join citeledger.citation_ledger_entry as e on e.message_id = g.message_id"
    ).fetchone()
    assert row == (None, matter), "the ledger keeps the matter at that time, the verdict does not"
    assert_consistent(su, world.firm_id)


# What makes a finalized turn worse, each for the one turn of the test.
LATE = {
    "a late judge": (
        "update citeledger.message_citations"
        " set verified = false, verification_method = 'failed' where message_id = %s"
    ),
    "a late source": (
        "insert into citeledger.message_citations (message_id, source_text, verified)"
        " values (%s, 'Rent is due.', false)"
    ),
}


@pytest.mark.parametrize("late", LATE.values(), ids=LATE)
def test_a_matter_that_goes_beside_a_late_change_leaves_no_stale_verdict(
    world: World, su: Connection, opened: Opened, job: Connection, turn: UUID, late: str
) -> None:
    """The delete moves the verdict that the change has just counted: it must not be passed by."""
    before, first, second = opened(), opened("t_admin"), opened()
    before.run(FINALIZE["finalize_turn"], (turn,))
    before.commit()
    first.run("delete from citeledger.projects where id = %s", (matter_of(su, turn),))
    second.start(late, (turn,))
    second.blocked()
    first.commit()
    second.result()
    second.commit()
    assert_no_stale_verdict(su, world.firm_id)
    if verdict(su, turn) is None:
        assert failures(su, turn) == [("gate", "23503")]
        assert settle_pending(job, world.firm_id) == 1
    assert verdict(su, turn) == "flagged"
    assert_consistent(su, world.firm_id)


@pytest.mark.parametrize("finalize_first", [True, False], ids=["finalize first", "delete first"])
def test_a_document_that_goes_touches_no_turn(
    world: World, su: Connection, opened: Opened, racing: Any, turn: UUID, finalize_first: bool
) -> None:
    """ON DELETE SET NULL updates the citation, not its verification: no waiting, no refresh."""
    owner, app = racing.session("postgres"), opened()
    delete = "delete from citeledger.documents where firm_id = %s"
    if finalize_first:
        app.run(FINALIZE["finalize_turn"], (turn,))
        owner.run(delete, (world.firm_id,))
    else:
        owner.run(delete, (world.firm_id,))
        app.run(FINALIZE["finalize_turn"], (turn,))
    owner.commit()
    app.commit()
    assert sources(su, turn) == entries(su, turn) == 3
    assert failures(su, turn) == []
    assert left_of(su, world.firm_id).get("citation_ledger_entry_revision") is None
    assert_consistent(su, world.firm_id)


def test_a_firm_that_goes_waits_for_its_writers_and_takes_all(
    world: World, su: Connection, opened: Opened, turn: UUID
) -> None:
    """A turn is being written in it: erasure waits, the writer finishes, then nothing is left."""
    writer, eraser = opened(), opened("t_admin")
    writer.run(INSERT["citation"], (turn,))
    eraser.start("select citeledger.delete_firm(%s)", (world.firm_id,))
    eraser.blocked()
    writer.run(FINALIZE["finalize_turn"], (turn,))
    writer.commit()
    eraser.result()
    eraser.commit()
    assert left_of(su, world.firm_id) == {}
    assert su.execute("select from citeledger.firms where id = %s", (world.firm_id,)).rowcount == 0
