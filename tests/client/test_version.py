"""The client refuses a schema that it does not know, on first use, and tells what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from citeledger import CiteLedger, PermissionDenied, SchemaVersionError, __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Database
    from support.server import Server


@pytest.fixture
def other_version(db: Database, su: psycopg.Connection[Any]) -> Iterator[psycopg.Connection[Any]]:
    su.execute(
        "create or replace function citeledger.version() returns text language sql immutable"
        " as $$ select '9.9.9'::text $$"
    )
    with db.connect("t_app") as connection:
        yield connection


def test_an_unknown_version_is_refused(other_version: psycopg.Connection[Any]) -> None:
    client = CiteLedger(other_version)
    for _ in range(2):
        with pytest.raises(SchemaVersionError) as caught:
            client.finalize_turn(uuid4())
        assert "9.9.9" in (caught.value.detail or "")
        assert __version__ in (caught.value.detail or "")
    with pytest.raises(SchemaVersionError), client.context(firm_id=uuid4()):
        raise AssertionError
    # It only looked: the caller's transaction goes on.
    assert other_version.info.transaction_status == TransactionStatus.INTRANS
    assert client.version() == "9.9.9"


def test_a_database_without_citeledger(server: Server) -> None:
    with server.database() as name, server.connect("t_none", name) as connection:
        with pytest.raises(SchemaVersionError, match="not installed") as caught:
            CiteLedger(connection).finalize_turn(uuid4())
        assert "sqitch" in (caught.value.hint or "").lower()
        assert connection.info.transaction_status == TransactionStatus.INTRANS


def test_a_role_without_rights_is_told_so(stranger: psycopg.Connection[Any]) -> None:
    with pytest.raises(PermissionDenied):
        CiteLedger(stranger).finalize_turn(uuid4())


def test_it_is_asked_once(app: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    client = CiteLedger(app)
    asked = 0
    original = CiteLedger._check_version

    def counting(self: CiteLedger, connection: psycopg.Connection[Any]) -> None:
        nonlocal asked
        asked += 1
        original(self, connection)

    monkeypatch.setattr(CiteLedger, "_check_version", counting)
    for _ in range(3):
        client.finalize_turn(uuid4())
    assert asked == 1
