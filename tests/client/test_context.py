"""The context of a block: whose transaction it is, and what is left afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from citeledger import CiteLedger, InvalidArgument, PermissionDenied, WrongState
from support.world import World, set_context

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Database

READ = ("matters:read",)
Context = tuple[UUID | None, UUID | None, bool]
NOTHING: Context = (None, None, False)


def context_of(connection: psycopg.Connection[Any]) -> Context:
    """Ask the database who it acts for."""
    row = connection.execute(
        "select citeledger.current_firm_id(), citeledger.current_user_id(),"
        " citeledger.has_permission('matters:read')"
    ).fetchone()
    assert row is not None
    return row[0], row[1], row[2]


def status(connection: psycopg.Connection[Any]) -> TransactionStatus:
    return connection.info.transaction_status


def finalized(su: psycopg.Connection[Any], message: UUID) -> bool:
    row = su.execute(
        "select finalized_at is not null from citeledger.messages where id = %s", (message,)
    ).fetchone()
    assert row is not None
    return bool(row[0])


@pytest.fixture
def autocommit(db: Database) -> Iterator[psycopg.Connection[Any]]:
    with db.connect("t_app", autocommit=True) as connection:
        yield connection


class TestConnectionWithTransactions:
    """An ordinary connection: the caller commits."""

    def test_an_idle_connection_begins_and_is_left_to_the_caller(
        self, app: psycopg.Connection[Any], su: psycopg.Connection[Any], world: World
    ) -> None:
        message, user = world.turn(), uuid4()
        client = CiteLedger(app)
        with client.context(firm_id=world.firm_id, user_id=user, permissions=READ) as bound:
            assert context_of(app) == (world.firm_id, user, True)
            assert bound.connection is app
            bound.finalize_turn(message)
        assert status(app) == TransactionStatus.INTRANS
        assert not finalized(su, message)
        assert context_of(app) == NOTHING
        app.commit()
        assert finalized(su, message)

    def test_a_rollback_of_the_caller_takes_everything(
        self, app: psycopg.Connection[Any], su: psycopg.Connection[Any], world: World
    ) -> None:
        message = world.turn()
        with CiteLedger(app).context(firm_id=world.firm_id) as bound:
            bound.finalize_turn(message)
        app.rollback()
        assert not finalized(su, message)
        assert context_of(app) == NOTHING

    def test_the_callers_context_comes_back(
        self, app: psycopg.Connection[Any], world: World
    ) -> None:
        user = uuid4()
        set_context(app, world.firm_id, user)
        other = uuid4()
        with CiteLedger(app).context(firm_id=other):
            assert context_of(app) == (other, None, False)
        assert context_of(app) == (world.firm_id, user, True)

    def test_the_context_of_the_session_comes_back(
        self, app: psycopg.Connection[Any], world: World
    ) -> None:
        # Some applications set it for the session, by themselves.
        app.execute(
            "select pg_catalog.set_config('citeledger.firm_id', %s, false)", (str(world.firm_id),)
        )
        app.commit()
        with CiteLedger(app).context(firm_id=uuid4()):
            pass
        assert context_of(app)[0] == world.firm_id
        app.commit()
        assert context_of(app)[0] == world.firm_id

    def test_a_malformed_context_comes_back_as_it_was(self, app: psycopg.Connection[Any]) -> None:
        app.execute("set local citeledger.firm_id = 'x''; drop table y'")
        with CiteLedger(app).context(firm_id=uuid4()):
            pass
        row = app.execute("show citeledger.firm_id").fetchone()
        assert row == ("x'; drop table y",)

    def test_blocks_nest(self, app: psycopg.Connection[Any]) -> None:
        client = CiteLedger(app)
        first, second = uuid4(), uuid4()
        with client.context(firm_id=first, permissions=READ):
            with client.context(firm_id=second):
                assert context_of(app) == (second, None, False)
            assert context_of(app) == (first, None, True)
        assert context_of(app) == NOTHING

    def test_an_error_of_the_caller_restores_too(self, app: psycopg.Connection[Any]) -> None:
        with pytest.raises(ZeroDivisionError), CiteLedger(app).context(firm_id=uuid4()):
            _ = 1 / 0
        assert status(app) == TransactionStatus.INTRANS
        assert context_of(app) == NOTHING

    def test_an_error_of_the_database_passes_and_the_caller_rolls_back(
        self, app: psycopg.Connection[Any], world: World
    ) -> None:
        client = CiteLedger(app)
        with pytest.raises(PermissionDenied), client.context(firm_id=world.firm_id) as bound:
            bound.ledger_trace(uuid4())
        assert status(app) == TransactionStatus.INERROR
        app.rollback()
        assert context_of(app) == NOTHING

    def test_a_savepoint_of_the_caller_saves_the_transaction(
        self, app: psycopg.Connection[Any], su: psycopg.Connection[Any], world: World
    ) -> None:
        message = world.turn()
        client = CiteLedger(app)
        with client.context(firm_id=world.firm_id) as bound:
            with pytest.raises(PermissionDenied), app.transaction():
                bound.ledger_trace(uuid4())
            bound.finalize_turn(message)
        app.commit()
        assert finalized(su, message)

    def test_a_savepoint_around_the_block_gives_the_context_back(
        self, app: psycopg.Connection[Any], world: World
    ) -> None:
        client = CiteLedger(app)
        set_context(app, world.firm_id)
        with (
            pytest.raises(PermissionDenied),
            app.transaction(),
            client.context(firm_id=uuid4()) as bound,
        ):
            bound.ledger_trace(uuid4())
        assert context_of(app)[0] == world.firm_id

    def test_a_commit_inside_the_block_ends_the_context(
        self, app: psycopg.Connection[Any], world: World
    ) -> None:
        set_context(app, world.firm_id)
        with CiteLedger(app).context(firm_id=uuid4()):
            app.commit()
            assert context_of(app) == NOTHING
        # The context before belonged to the transaction that ended, so it must not come back.
        assert context_of(app) == NOTHING

    def test_sql_of_the_caller_keeps_its_own_errors(
        self, app: psycopg.Connection[Any], world: World
    ) -> None:
        with (
            pytest.raises(psycopg.errors.DivisionByZero),
            CiteLedger(app).context(firm_id=world.firm_id) as bound,
        ):
            bound.connection.execute("select 1 / 0")

    def test_a_block_that_ended_is_refused(
        self, app: psycopg.Connection[Any], world: World
    ) -> None:
        with CiteLedger(app).context(firm_id=world.firm_id) as bound:
            pass
        with pytest.raises(WrongState):
            bound.finalize_turn(uuid4())
        with pytest.raises(WrongState):
            _ = bound.connection


class TestAutocommit:
    """A connection in autocommit mode: the block is a transaction, unless there is one."""

    def test_the_block_is_a_transaction(
        self, autocommit: psycopg.Connection[Any], su: psycopg.Connection[Any], world: World
    ) -> None:
        message = world.turn()
        with CiteLedger(autocommit).context(firm_id=world.firm_id) as bound:
            assert status(autocommit) == TransactionStatus.INTRANS
            bound.finalize_turn(message)
            assert not finalized(su, message)
        assert status(autocommit) == TransactionStatus.IDLE
        assert finalized(su, message)
        assert context_of(autocommit) == NOTHING

    def test_an_error_rolls_it_back(
        self, autocommit: psycopg.Connection[Any], su: psycopg.Connection[Any], world: World
    ) -> None:
        message = world.turn()
        with (
            pytest.raises(ZeroDivisionError),
            CiteLedger(autocommit).context(firm_id=world.firm_id) as bound,
        ):
            bound.finalize_turn(message)
            _ = 1 / 0
        assert status(autocommit) == TransactionStatus.IDLE
        assert not finalized(su, message)

    def test_a_transaction_of_the_caller_is_joined(
        self, autocommit: psycopg.Connection[Any], su: psycopg.Connection[Any], world: World
    ) -> None:
        message = world.turn()
        client = CiteLedger(autocommit)
        with autocommit.transaction():
            with client.context(firm_id=world.firm_id):
                client.finalize_turn(message)
            assert context_of(autocommit) == NOTHING
            assert not finalized(su, message)
        assert finalized(su, message)

    def test_blocks_nest_in_one_transaction(
        self, autocommit: psycopg.Connection[Any], world: World
    ) -> None:
        client = CiteLedger(autocommit)
        other = uuid4()
        with client.context(firm_id=world.firm_id):
            with client.context(firm_id=other):
                assert context_of(autocommit)[0] == other
            assert context_of(autocommit)[0] == world.firm_id
        assert context_of(autocommit) == NOTHING

    def test_without_a_block_there_is_no_context(
        self, autocommit: psycopg.Connection[Any], su: psycopg.Connection[Any], world: World
    ) -> None:
        message = world.turn()
        assert not CiteLedger(autocommit).finalize_turn(message).finalized
        assert not finalized(su, message)


class TestWhoMaySetIt:
    """What the database refuses of a context."""

    def test_claims_are_not_overruled(self, app: psycopg.Connection[Any], world: World) -> None:
        claims = f'{{"firm_id": "{world.firm_id}"}}'
        app.execute("select pg_catalog.set_config('request.jwt.claims', %s, true)", (claims,))
        with (
            pytest.raises(PermissionDenied, match="claims"),
            CiteLedger(app).context(firm_id=uuid4()),
        ):
            raise AssertionError

    def test_a_permission_is_a_name(self, autocommit: psycopg.Connection[Any]) -> None:
        client = CiteLedger(autocommit)
        with (
            pytest.raises(InvalidArgument) as caught,
            client.context(firm_id=uuid4(), permissions=["a', 'b"]),
        ):
            raise AssertionError
        assert caught.value.sqlstate == "22023"
        assert isinstance(caught.value.__cause__, psycopg.Error)
        assert context_of(autocommit) == NOTHING

    def test_a_stranger_may_not(self, stranger: psycopg.Connection[Any]) -> None:
        with pytest.raises(PermissionDenied), CiteLedger(stranger).context(firm_id=uuid4()):
            raise AssertionError


def test_statements_are_not_prepared_unless_asked_for(
    db: Database, world: World, su: psycopg.Connection[Any]
) -> None:
    def prepared(connection: psycopg.Connection[Any]) -> int:
        row = connection.execute(
            "select count(*) from pg_catalog.pg_prepared_statements where statement like %s",
            ("%citeledger.finalize_turn%",),
            prepare=False,
        ).fetchone()
        assert row is not None
        return int(row[0])

    with db.connect("t_app", autocommit=True, prepare_threshold=0) as connection:
        client = CiteLedger(connection)
        for _ in range(10):
            client.finalize_turn(uuid4())
        assert prepared(connection) == 0
    with db.connect("t_app", autocommit=True, prepare_threshold=0) as connection:
        client = CiteLedger(connection, prepare_threshold=5)
        client.finalize_turn(uuid4())
        assert prepared(connection) == 0
        for _ in range(5):
            client.finalize_turn(uuid4())
        assert prepared(connection) == 1
        # The caller's own setting is the caller's.
        assert connection.prepare_threshold == 0
