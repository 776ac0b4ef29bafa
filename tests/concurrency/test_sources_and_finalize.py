"""Sources that come, change and go while their turn is being finalized, under read committed.

Whatever the order: no committed source of a finalized turn is without its entry, and the verdict is
what the committed sources say (the fixture always_consistent counts them itself, and asks
check_integrity).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from faults.turns import (
    assert_consistent,
    assert_no_stale_verdict,
    entries,
    failures,
    first_done,
    is_finalized,
    settle_pending,
    sources,
    verdict,
)
from support.races import Session
from support.world import World, insert

Connection = psycopg.Connection[Any]
Opened = Callable[..., Session]

FINALIZE = {
    "finalize_turn": "select citeledger.finalize_turn(%s)",
    "finalize_turns": "select citeledger.finalize_turns(array[%s])",
    "update": "update citeledger.messages set finalized_at = now() where id = %s",
}
INSERT = {
    "citation": "insert into citeledger.message_citations (message_id, source_text)"
    " values (%s, 'a quote')",
    "caselaw": "insert into citeledger.message_caselaw_citations"
    " (message_id, opinion_id, cluster_id, source_text) values (%s, 1, 2, 'a quote')",
    "tool": "insert into citeledger.message_tool_sources (message_id, source_kind, label)"
    " values (%s, 'web_search', 'a page')",
}
DOWNGRADE = {
    "citation": "update citeledger.message_citations set verified = false where message_id = %s",
    "caselaw": "update citeledger.message_caselaw_citations set verified = false"
    " where message_id = %s",
}
DELETE = {
    "citation": "delete from citeledger.message_citations where message_id = %s",
    "caselaw": "delete from citeledger.message_caselaw_citations where message_id = %s",
    "tool": "delete from citeledger.message_tool_sources where message_id = %s",
}


def parametrized(name: str, statements: dict[str, str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(name, statements.values(), ids=statements)


@pytest.fixture
def turn(world: World) -> UUID:
    """Give an open turn with one source of each kind, all verified."""
    identifier = world.turn(world.project())
    world.citation(identifier)
    world.caselaw(identifier)
    world.tool(identifier)
    return identifier


@parametrized("finalize", FINALIZE)
@parametrized("change", INSERT | {f"{k} downgraded": v for k, v in DOWNGRADE.items()})
@pytest.mark.usefixtures("always_consistent")
def test_a_change_that_came_first_is_in_the_verdict(
    su: Connection, opened: Opened, turn: UUID, change: str, finalize: str
) -> None:
    """Finalize waits for the session that changed a source, and then sees what it committed."""
    first, second = opened(), opened()
    first.run(change, (turn,))
    second.start(finalize, (turn,))
    second.blocked()
    first.commit()
    second.result()
    second.commit()
    assert entries(su, turn) == sources(su, turn)
    if "tool" not in change:
        assert verdict(su, turn) == "flagged"


@parametrized("finalize", FINALIZE)
@parametrized("change", INSERT | {f"{k} downgraded": v for k, v in DOWNGRADE.items()})
@pytest.mark.usefixtures("always_consistent")
def test_a_change_that_was_rolled_back_is_not_in_the_verdict(
    su: Connection, opened: Opened, turn: UUID, change: str, finalize: str
) -> None:
    first, second = opened(), opened()
    first.run(change, (turn,))
    second.start(finalize, (turn,))
    second.blocked()
    first.rollback()
    second.result()
    second.commit()
    assert entries(su, turn) == sources(su, turn) == 3
    assert verdict(su, turn) == "fiduciary_grade"


@parametrized("finalize", FINALIZE)
@parametrized("change", INSERT | {f"{k} downgraded": v for k, v in DOWNGRADE.items()})
@pytest.mark.usefixtures("always_consistent")
def test_a_change_that_came_second_brings_the_verdict_after_it(
    su: Connection, opened: Opened, turn: UUID, change: str, finalize: str
) -> None:
    """The trigger waits for the finalize, sees that the turn is finalized, and follows."""
    first, second = opened(), opened()
    first.run(finalize, (turn,))
    second.start(change, (turn,))
    second.blocked()
    first.commit()
    second.result()
    second.commit()
    assert entries(su, turn) == sources(su, turn)
    if "tool" not in change:
        assert verdict(su, turn) == "flagged"


@parametrized("change", INSERT | {f"{k} downgraded": v for k, v in DOWNGRADE.items()})
@pytest.mark.usefixtures("always_consistent")
def test_a_change_after_a_finalize_that_was_rolled_back_is_of_an_open_turn(
    su: Connection, opened: Opened, turn: UUID, change: str
) -> None:
    first, second = opened(), opened()
    first.run(FINALIZE["finalize_turn"], (turn,))
    second.start(change, (turn,))
    second.blocked()
    first.rollback()
    second.result()
    second.commit()
    assert not is_finalized(su, turn)
    assert verdict(su, turn) is None
    assert entries(su, turn) == 0


@parametrized("finalize", FINALIZE)
@parametrized("delete", DELETE)
@pytest.mark.usefixtures("always_consistent")
def test_a_delete_that_came_first_is_not_in_the_ledger(
    su: Connection, opened: Opened, turn: UUID, delete: str, finalize: str
) -> None:
    first, second = opened(), opened()
    first.run(delete, (turn,))
    second.start(finalize, (turn,))
    second.blocked()
    first.commit()
    second.result()
    second.commit()
    assert entries(su, turn) == sources(su, turn) == 2


@parametrized("finalize", FINALIZE)
@parametrized("delete", DELETE)
@pytest.mark.usefixtures("always_consistent")
def test_a_delete_that_came_second_is_refused_by_the_seal(
    su: Connection, opened: Opened, turn: UUID, delete: str, finalize: str
) -> None:
    """It waited while the turn was sealed: it must see the seal, not the open turn of its start.

    Where the finalize needs the very rows that the delete already holds, the server breaks the tie
    (see the narrow window below); here the finalize had its entries first.
    """
    first, second = opened(), opened()
    first.run(finalize, (turn,))
    second.start(delete, (turn,))
    second.blocked()
    first.commit()
    error = second.error()
    assert isinstance(error, psycopg.errors.ObjectNotInPrerequisiteState)
    second.rollback()
    assert sources(su, turn) == 3


@parametrized("delete", DELETE)
@pytest.mark.usefixtures("always_consistent")
def test_a_delete_by_the_owner_of_a_sealed_turns_source_brings_the_verdict_after_it(
    su: Connection, opened: Opened, racing: Any, turn: UUID, world: World, delete: str
) -> None:
    """Whoever may break the seal still cannot leave a stale verdict, whichever comes first."""
    world.citation(turn, None, source_text="failed")
    first, second = opened(), racing.session("postgres")
    first.run(FINALIZE["finalize_turn"], (turn,))
    second.start(delete, (turn,))
    second.blocked()
    first.commit()
    second.result()
    second.commit()
    assert entries(su, turn) == sources(su, turn)


@parametrized("delete", DELETE)
def test_the_narrow_window_of_a_delete_ends_in_order_or_in_the_log(
    world: World,
    su: Connection,
    opened: Opened,
    job: Connection,
    turn: UUID,
    delete: str,
) -> None:
    """The delete holds the row and waits for the message, whose holder finalize wants the row.

    One of the two must give way, and the server chooses which. If it is the delete, it fails with
    40P01 and can be run again; if it is finalize's step, the turn has no verdict and a logged
    failure. Neither leaves a verdict that its sources contradict.
    """
    first, second = opened(), opened()
    first.run("select from citeledger.messages where id = %s for no key update", (turn,))
    second.start(delete, (turn,))
    second.blocked()
    report = first.value(FINALIZE["finalize_turn"], (turn,))
    first.commit()
    error = second.error()
    assert isinstance(
        error, psycopg.errors.DeadlockDetected | psycopg.errors.ObjectNotInPrerequisiteState
    )
    second.rollback()
    assert sources(su, turn) == 3
    assert_no_stale_verdict(su, world.firm_id)
    if isinstance(error, psycopg.errors.DeadlockDetected):
        assert report["failures"] == []
        assert verdict(su, turn) == "fiduciary_grade"
    else:
        assert report["failures"] == [{"stage": "assemble", "sqlstate": "40P01"}]
        assert verdict(su, turn) is None
        assert settle_pending(job, world.firm_id) == 1
    assert_consistent(su, world.firm_id)


@pytest.mark.usefixtures("always_consistent")
def test_two_finalizers_write_one_ledger_and_one_verdict(
    su: Connection, opened: Opened, turn: UUID
) -> None:
    """The second waits, finds the turn done, and changes nothing."""
    first, second = opened(), opened()
    done = first.value(FINALIZE["finalize_turn"], (turn,))
    second.start(FINALIZE["finalize_turn"], (turn,))
    second.blocked()
    first.commit()
    again = second.result()[0][0]
    second.commit()
    assert done["entries_written"] == 3
    assert again["entries_written"] == 0
    assert again["gate"] == done["gate"], "an unchanged verdict is not rewritten"
    assert entries(su, turn) == 3


@parametrized("change", INSERT)
@pytest.mark.usefixtures("always_consistent")
def test_two_sessions_that_both_insert_and_both_finalize_do_not_deadlock(
    su: Connection, opened: Opened, turn: UUID, change: str
) -> None:
    """Both refer to the message by foreign keys before either locks it: FOR UPDATE would
    deadlock.
    """
    first, second = opened(), opened()
    first.run(change, (turn,))
    second.start(change, (turn,))
    second.blocked()
    first.run(FINALIZE["finalize_turn"], (turn,))
    first.commit()
    second.result()
    assert second.value(FINALIZE["finalize_turn"], (turn,))["failures"] == []
    second.commit()
    assert entries(su, turn) == sources(su, turn) == 5


@parametrized("change", INSERT | {f"{k} downgraded": v for k, v in DOWNGRADE.items()})
@pytest.mark.parametrize("verdict_first", [True, False], ids=["verdict first", "change first"])
@pytest.mark.usefixtures("always_consistent")
def test_a_verdict_without_a_finalize_is_followed_as_well(
    su: Connection, opened: Opened, turn: UUID, change: str, verdict_first: bool
) -> None:
    """compute_and_record_gate on an open turn makes a verdict that late sources must not
    contradict.
    """
    gate = "select citeledger.assemble_ledger_entries(%s), citeledger.compute_and_record_gate(%s)"
    first, second = opened(), opened()
    if verdict_first:
        first.run(gate, (turn, turn))
        second.start(change, (turn,))
    else:
        first.run(change, (turn,))
        second.start(gate, (turn, turn))
    second.blocked()
    first.commit()
    second.result()
    second.commit()
    assert not is_finalized(su, turn)
    assert entries(su, turn) == sources(su, turn)
    if "tool" not in change:
        assert verdict(su, turn) == "flagged"


@parametrized("delete", DELETE)
@pytest.mark.usefixtures("always_consistent")
def test_a_delete_from_an_open_turn_with_a_verdict_is_followed(
    world: World, su: Connection, opened: Opened, turn: UUID, delete: str
) -> None:
    """Not sealed yet, so the app may delete; the verdict of the rest must be the one that stays."""
    world.citation(turn, None)
    first, second = opened(), opened()
    first.run("select citeledger.assemble_ledger_entries(%s)", (turn,))
    first.run("select citeledger.compute_and_record_gate(%s)", (turn,))
    second.start(delete, (turn,))
    second.blocked()
    first.commit()
    second.result()
    second.commit()
    assert entries(su, turn) == sources(su, turn)


@pytest.mark.usefixtures("always_consistent")
def test_sources_of_two_turns_in_opposite_order_do_not_deadlock(
    world: World, su: Connection, opened: Opened
) -> None:
    """Each statement locks its turns in id order, however its rows are ordered."""
    low, high = sorted(world.turn() for _ in range(2))
    both = (
        "insert into citeledger.message_citations (message_id, source_text)"
        " values (%s, 'a quote'), (%s, 'a quote')"
    )
    third, first, second = opened(), opened(), opened()
    # While a third session holds the low turn, the other two queue for it and hold nothing else.
    third.run("select from citeledger.messages where id = %s for no key update", (low,))
    first.start(both, (low, high))
    first.blocked()
    second.start(both, (high, low))
    second.blocked()
    third.rollback()
    # Whichever gets the low turn first waits for no other.
    winner, loser = first_done(first, second)
    winner.result()
    winner.run("select citeledger.finalize_turns(%s)", ([high, low],))
    winner.commit()
    loser.result()
    loser.run("select citeledger.finalize_turns(%s)", ([low, high],))
    loser.commit()
    assert [sources(su, t) for t in (low, high)] == [2, 2]


MANY = {
    f"{kind} of {table}": statement.replace("message_id = %s", "message_id = any(%s)")
    for kind, statements in (("downgrade", DOWNGRADE), ("delete", DELETE))
    for table, statement in statements.items()
} | {
    "insert of citation": "insert into citeledger.message_citations (message_id, source_text)"
    " select t, 'a quote' from unnest(%s::uuid[]) as t",
    "insert of caselaw": "insert into citeledger.message_caselaw_citations"
    " (message_id, opinion_id, cluster_id, source_text)"
    " select t, 1, 2, 'a quote' from unnest(%s::uuid[]) as t",
    "insert of tool": "insert into citeledger.message_tool_sources"
    " (message_id, source_kind, label)"
    " select t, 'web_search', 'a page' from unnest(%s::uuid[]) as t",
    "finalize_turns": "select citeledger.finalize_turns(%s)",
}


@pytest.mark.parametrize("reverse", [True, False], ids=["high first", "low first"])
@parametrized("statement", MANY)
@pytest.mark.usefixtures("always_consistent")
def test_whoever_locks_many_turns_locks_the_lowest_first(
    world: World, su: Connection, opened: Opened, statement: str, reverse: bool
) -> None:
    """While the lowest is another's, none of the rest is locked: so no two can wait in a ring.

    The rows lie in the table in both orders, so that it is no accident of how they are read.
    """
    turns = sorted((uuid4() for _ in range(6)), reverse=reverse)
    for turn in turns:
        world.message(world.chat(), id=turn)
        world.citation(turn)
        world.caselaw(turn)
        world.tool(turn)
    lowest, *rest = sorted(turns)
    holder, session = opened(), opened()
    holder.run("select from citeledger.messages where id = %s for no key update", (lowest,))
    session.start(statement, (turns,))
    session.blocked()
    holder.run(
        "select from citeledger.messages where id = any(%s) for no key update nowait", (rest,)
    )
    holder.rollback()
    session.result()
    session.commit()


@pytest.mark.usefixtures("always_consistent")
def test_two_late_sources_at_once_are_both_in_the_verdict(
    su: Connection, opened: Opened, turn: UUID, world: World
) -> None:
    """A finalized turn: each trigger refreshes only its own source, in a snapshot of its own."""
    done = opened()
    done.run(FINALIZE["finalize_turn"], (turn,))
    done.commit()
    first, second = opened(), opened()
    first.run(INSERT["citation"], (turn,))
    second.start(INSERT["caselaw"], (turn,))
    second.blocked()
    first.commit()
    second.result()
    second.commit()
    row = su.execute(
        "select pass_count, fail_count from citeledger.work_product_fiduciary_gate"
    ).fetchone()
    assert row == (2, 2)


@pytest.mark.usefixtures("always_consistent")
def test_an_upgrade_and_a_downgrade_at_once_end_as_the_sources_do(
    su: Connection, opened: Opened, turn: UUID
) -> None:
    """A late judge and an editor work on two citations of one sealed turn."""
    done = opened()
    done.run(FINALIZE["finalize_turn"], (turn,))
    done.commit()
    first, second = opened(), opened()
    first.run(DOWNGRADE["citation"], (turn,))
    second.start(
        "update citeledger.message_caselaw_citations"
        " set verification_method = 'paraphrase_judge', verification_confidence = 0.5"
        " where message_id = %s",
        (turn,),
    )
    second.blocked()
    first.commit()
    second.result()
    second.commit()
    assert verdict(su, turn) == "flagged"


@pytest.mark.usefixtures("always_consistent")
def test_a_finalize_and_the_job_share_the_work(
    world: World, su: Connection, opened: Opened, job: Connection
) -> None:
    """finalize_pending skips what another session has, and two jobs never wait for each other."""
    su.execute("alter table citeledger.messages disable trigger messages_finalize_inserted")
    turns = sorted(world.turn(finalized_at="2026-01-01") for _ in range(6))
    su.execute("alter table citeledger.messages enable trigger messages_finalize_inserted")
    one = opened()
    one.run(FINALIZE["finalize_turn"], (turns[0],))
    two = opened()
    assert two.value("select citeledger.finalize_pending(2)") == 2
    assert settle_pending(job, world.firm_id) == 3
    one.commit()
    two.commit()
    assert settle_pending(job, world.firm_id) == 0
    assert [verdict(su, t) for t in turns] == ["fiduciary_grade"] * 6
    assert [failures(su, t) for t in turns] == [[]] * 6


def test_the_oracle_of_these_tests_sees_what_is_wrong(
    world: World, su: Connection, turn: UUID
) -> None:
    """A check that cannot fail proves nothing: forge each kind of wrong and look."""
    su.execute("update citeledger.messages set finalized_at = now() where id = %s", (turn,))
    assert_consistent(su, world.firm_id)
    forged = [
        "update citeledger.work_product_fiduciary_gate set pass_count = 3, total_assertions = 3",
        "update citeledger.work_product_fiduciary_gate set confidence = 0.1",
        "delete from citeledger.citation_ledger_entry where message_tool_source_id is not null",
        "delete from citeledger.work_product_fiduciary_gate",
        (
            "update citeledger.citation_ledger_entry set verification_status = 'tolerant_match'"
            " where message_citation_id is not null"
        ),
    ]
    for statement in forged:
        with pytest.raises(AssertionError), su.transaction(force_rollback=True):
            su.execute(statement)
            assert_consistent(su, world.firm_id)
    insert(
        su, "finalize_failure", firm_id=world.firm_id, message_id=turn, stage="x", sqlstate="XX000"
    )
    with pytest.raises(AssertionError):
        assert_consistent(su, world.firm_id)
