"""A late source brings its turn up to date, whatever was missing before it came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import psycopg
import pytest

from faults.turns import assert_consistent, failures, verdict, warnings_of
from support.world import World, set_context

if TYPE_CHECKING:
    from collections.abc import Callable

Connection = psycopg.Connection[Any]


def finalized(world: World, app: Connection, turns: list[UUID]) -> None:
    set_context(app, world.firm_id)
    app.execute("select citeledger.finalize_turns(%s)", (turns,))
    app.commit()


def without_verdict(su: Connection, world: World, turn: UUID) -> None:
    su.execute("delete from citeledger.work_product_fiduciary_gate where message_id = %s", (turn,))


def without_anything(su: Connection, world: World, turn: UUID) -> None:
    without_verdict(su, world, turn)
    su.execute("delete from citeledger.citation_ledger_entry where message_id = %s", (turn,))


def stale_and_without_verdict(su: Connection, world: World, turn: UUID) -> None:
    """Its entries say better of a citation than the citation does, and nobody was told."""
    without_verdict(su, world, turn)
    su.execute("set session_replication_role = replica")
    su.execute(
        "update citeledger.message_citations set verification_method = 'paraphrase_judge'"
        " where message_id = %s",
        (turn,),
    )
    su.execute("reset session_replication_role")


def failed_before(su: Connection, world: World, turn: UUID) -> None:
    without_anything(su, world, turn)
    su.execute(
        "insert into citeledger.finalize_failure (firm_id, message_id, stage, sqlstate)"
        " values (%s, %s, 'assemble', '57P01')",
        (world.firm_id, turn),
    )


@pytest.mark.parametrize(
    "missing", [without_verdict, without_anything, stale_and_without_verdict, failed_before]
)
def test_what_was_missing_is_there_too(
    world: World,
    su: Connection,
    app: Connection,
    missing: Callable[[Connection, World, UUID], None],
) -> None:
    turns = [world.turn() for _ in range(2)]
    for turn in turns:
        for _ in range(3):
            world.citation(turn, "exact_match", verification_confidence=0.9)
    finalized(world, app, turns)
    touched, untouched = turns
    missing(su, world, touched)

    # Of both in one statement: one that lacks something, beside one that lacks nothing.
    set_context(app, world.firm_id)
    with warnings_of(app) as warnings:
        app.execute(
            "insert into citeledger.message_caselaw_citations"
            " (message_id, source_text, verified, verification_method, cluster_id, opinion_id)"
            " select m, 'Notice is due.', true, 'exact_match', 1, 1 from unnest(%s) as m",
            (turns,),
        )
    app.commit()

    judged = missing is stale_and_without_verdict
    assert verdict(su, touched) == ("supported_only" if judged else "fiduciary_grade")
    assert verdict(su, untouched) == "fiduciary_grade"
    assert failures(su, touched) == []
    assert [w.message for w in warnings] == []
    assert_consistent(su, world.firm_id)


def test_a_status_that_nobody_knows_is_warned_of_once(
    world: World, su: Connection, app: Connection
) -> None:
    """Only a table that lost its check can hold one."""
    su.execute(
        "alter table citeledger.message_citations drop constraint message_citations_method_is_known"
    )
    turns = [world.turn() for _ in range(2)]
    for turn in turns:
        world.citation(turn, "exact_match")
    finalized(world, app, turns)
    set_context(app, world.firm_id)
    with warnings_of(app) as warnings:
        app.execute(
            "insert into citeledger.message_citations"
            " (message_id, source_text, verified, verification_method)"
            " select m, 'Notice is due.', true, method"
            " from unnest(%s) as m cross join unnest(array['guessed', 'felt']) as method",
            (turns,),
        )
    app.commit()
    assert [verdict(su, turn) for turn in turns] == ["flagged"] * 2
    assert [w.message for w in warnings] == ["unrecognized verification status: felt, guessed"]
