"""Retrying: only a whole transaction, only for what the database asks to have run again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool

from citeledger import Bound, CiteLedger, InvalidArgument, NotFound, WrongState
from support.races import Race
from support.world import World

if TYPE_CHECKING:
    from conftest import Database


class Flaky:
    """Work that fails with a SQLSTATE a number of times, and then gives its attempt."""

    def __init__(self, sqlstate: str, failures: int) -> None:
        self.sqlstate = sqlstate
        self.failures = failures
        self.attempts = 0

    def __call__(self, bound: Bound) -> int:
        self.attempts += 1
        if self.attempts <= self.failures:
            bound.connection.execute(
                "do $$ begin raise exception 'again' using errcode = '"
                + self.sqlstate
                + "'; end $$"
            )
        return self.attempts


@pytest.mark.parametrize("sqlstate", ["40001", "40P01"])
def test_it_runs_again(app: psycopg.Connection[Any], sqlstate: str) -> None:
    assert CiteLedger(app).retry(Flaky(sqlstate, 2), attempts=3) == 3
    assert app.info.transaction_status == TransactionStatus.IDLE


def test_it_gives_up(app: psycopg.Connection[Any]) -> None:
    work = Flaky("40001", 9)
    with pytest.raises(psycopg.errors.SerializationFailure):
        CiteLedger(app).retry(work, attempts=3)
    assert work.attempts == 3


@pytest.mark.parametrize("sqlstate", ["57014", "P0002", "23505"])
def test_it_does_not_run_again_for_anything_else(
    app: psycopg.Connection[Any], sqlstate: str
) -> None:
    work = Flaky(sqlstate, 1)
    with pytest.raises(psycopg.Error):
        CiteLedger(app).retry(work)
    assert work.attempts == 1


def test_an_error_of_citeledger_passes(app: psycopg.Connection[Any], world: World) -> None:
    client = CiteLedger(app)

    def work(bound: Bound) -> None:
        with client.context(firm_id=world.firm_id, permissions=["matters:read"]):
            client.ledger_trace(uuid4())

    with pytest.raises(NotFound):
        client.retry(work)
    assert app.info.transaction_status == TransactionStatus.IDLE


@pytest.mark.parametrize("attempts", [0, -1, True, "3"])
def test_no_number_of_attempts(app: psycopg.Connection[Any], attempts: Any) -> None:
    with pytest.raises(InvalidArgument, match="attempts"):
        CiteLedger(app).retry(lambda _: None, attempts=attempts)


def test_it_refuses_inside_a_transaction(app: psycopg.Connection[Any]) -> None:
    client = CiteLedger(app)
    app.execute("select 1")
    work = Flaky("40001", 0)
    with pytest.raises(WrongState):
        client.retry(work)
    app.rollback()
    with client.context(firm_id=uuid4()), pytest.raises(WrongState):
        client.retry(work)
    assert work.attempts == 0


def test_over_a_pool(db: Database, world: World) -> None:
    with ConnectionPool(db.dsn("t_app"), min_size=1, max_size=1, open=True) as pool:
        client = CiteLedger(pool)
        message = world.turn()

        def work(bound: Bound) -> bool:
            with client.context(firm_id=world.firm_id) as inner:
                assert inner.connection is bound.connection
                return client.finalize_turn(message).finalized

        assert client.retry(work)
        assert client.retry(Flaky("40P01", 1)) == 2
        with client.context(firm_id=world.firm_id), pytest.raises(WrongState):
            client.retry(work)


def test_a_real_serialization_failure(
    app: psycopg.Connection[Any], racing: Race, world: World
) -> None:
    """Another session changes the row between the two statements of the first attempt."""
    message = world.turn()
    other = racing.session("postgres")
    app.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    client = CiteLedger(app)
    attempts = 0

    def work(bound: Bound) -> None:
        nonlocal attempts
        attempts += 1
        with client.context(firm_id=world.firm_id):
            bound.connection.execute("select from citeledger.messages where id = %s", (message,))
            if attempts == 1:
                other.run("update citeledger.messages set content = 'x' where id = %s", (message,))
                other.commit()
            bound.connection.execute(
                "update citeledger.messages set content = 'y' where id = %s", (message,)
            )

    client.retry(work)
    assert attempts == 2
