"""The wall holds whichever way cite goes: by the policies, or by name where they do not hold.

Inside the cascade of a foreign key PostgreSQL lets the owner of a table pass row security, and a
plan that was made there is kept for the session.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import psycopg
import pytest

from support.cascade import SETUP, inside
from support.records import PERSON, Records
from support.world import set_context


def directly(connection: psycopg.Connection[Any], statement: str) -> str:
    try:
        with connection.transaction():
            row = connection.execute(statement.encode()).fetchone()
    except psycopg.Error as error:
        return error.sqlstate or ""
    assert row is not None
    return json.dumps(row[0])


@pytest.fixture
def records(su: psycopg.Connection[Any]) -> Records:
    return Records.make(su)


@pytest.fixture
def behind(su: psycopg.Connection[Any], records: Records) -> UUID:
    """Give the record of the walled matter that has the page of the others."""
    row = su.execute(
        "select d.id from citeledger.documents as d where d.firm_id = %s and d.project_id = %s",
        (records.firm_id, records.walled),
    ).fetchone()
    assert row is not None
    found = row[0]
    assert isinstance(found, UUID)
    return found


@pytest.mark.parametrize(
    "ways",
    [(inside, directly), (directly, inside), (inside, inside), (directly, directly)],
    ids=lambda ways: " then ".join(way.__name__ for way in ways),
)
@pytest.mark.parametrize("function", ["cite", "cite_many"])
def test_the_wall_holds_inside_a_cascade_and_after_it(
    app: psycopg.Connection[Any],
    records: Records,
    behind: UUID,
    function: str,
    ways: tuple[Callable[[psycopg.Connection[Any], str], str], ...],
) -> None:
    def statement(matter: UUID, document: UUID) -> str:
        span = json.dumps(records.span(document))
        span = f"[{span}]" if function == "cite_many" else span
        return f"select citeledger.{function}('{matter}', '{span.replace(chr(39), chr(39) * 2)}')"

    own, walled = statement(records.matter, records.record), statement(records.walled, behind)
    app.execute(SETUP)
    for way in ways:
        # Plans are made for who may see both matters, and used by who may see one.
        set_context(app, records.firm_id, user_id=PERSON)
        for _ in range(2):
            assert '"verified": true' in way(app, own)
            assert '"verified": true' in way(app, walled)
        set_context(app, records.firm_id)
        assert '"verified": true' in way(app, own)
        assert way(app, walled).startswith("P0002")
        set_context(app, records.world.firm_id, permissions=())
        assert way(app, own).startswith("42501")
