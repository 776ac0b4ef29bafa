"""What the verify scripts call says which lines are missing, and which should not be there."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest


@pytest.fixture
def owner(su: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    su.execute("set role citeledger_owner")
    return su


def lines(owner: psycopg.Connection[Any]) -> list[str]:
    rows = owner.execute(
        "select citeledger_private.describe_function('citeledger.version()')"
    ).fetchall()
    return [row[0] for row in rows]


def verify(owner: psycopg.Connection[Any], expected: list[str]) -> None:
    owner.execute(
        "select citeledger_private.verify_function('citeledger.version()', %s)",
        ("\n".join(expected),),
    )


def test_a_function_as_it_was_deployed_passes(owner: psycopg.Connection[Any]) -> None:
    verify(owner, lines(owner))


def test_a_line_that_is_missing_is_named(owner: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) as caught:
        verify(owner, [*lines(owner), "security sealed"])
    assert caught.value.diag.message_detail == "Missing: security sealed"


def test_a_line_too_many_is_named(owner: psycopg.Connection[Any]) -> None:
    expected = lines(owner)
    gone = expected.pop()
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) as caught:
        verify(owner, expected)
    assert caught.value.diag.message_detail == f"Unexpected: {gone}"


def test_another_column_is_allowed_but_no_other_grant(owner: psycopg.Connection[Any]) -> None:
    """A later change may add to a table; nothing may open another door."""
    expected = "\n".join(
        row[0]
        for row in owner.execute(
            "select citeledger_private.describe_relation('citeledger.chats')"
        ).fetchall()
    )

    def verify_relation() -> None:
        owner.execute(
            "select citeledger_private.verify_relation('citeledger.chats', %s)", (expected,)
        )

    verify_relation()
    owner.execute("alter table citeledger.chats add column added integer")
    owner.execute("comment on column citeledger.chats.added is 'Added.'")
    verify_relation()
    owner.execute("grant select on citeledger.chats to public")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="chats"):
        verify_relation()
