"""Fixtures of the races: the app's sessions, and the rule that holds after every one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from faults.turns import assert_consistent
from support.races import Race, Session
from support.world import World, set_context

if TYPE_CHECKING:
    from conftest import Database

READ_COMMITTED = psycopg.IsolationLevel.READ_COMMITTED


@pytest.fixture
def opened(racing: Race, world: World) -> Callable[..., Session]:
    """Give a maker of sessions that are in the world's firm, by default the app's."""

    def make(user: str = "t_app", isolation: psycopg.IsolationLevel = READ_COMMITTED) -> Session:
        return racing.session(
            user,
            isolation=isolation,
            before=lambda connection: set_context(connection, world.firm_id),
        )

    return make


@pytest.fixture
def always_consistent(su: psycopg.Connection[Any], world: World) -> Iterator[None]:
    """After the test: every finalized turn has its entries and the verdict that its sources say."""
    yield
    assert_consistent(su, world.firm_id)


@pytest.fixture
def job(db: Database) -> Iterator[psycopg.Connection[Any]]:
    """Connect as the operator's job, which runs finalize_pending."""
    connection = db.connect("t_app")
    try:
        yield connection
    finally:
        connection.close()
