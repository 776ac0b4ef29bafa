"""The database is away, too busy, or another one: 503, and as soon as it is back, answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import ConnectionPool

from citeledger.http import create_app
from support.door import Answer, Door, principal, running
from support.records import Records

if TYPE_CHECKING:
    from conftest import Database

UNAVAILABLE = {
    "type": "about:blank",
    "title": "Service Unavailable",
    "status": 503,
    "detail": "The database cannot be reached. Try again later.",
}


def assert_unavailable(door: Door) -> None:
    started = time.monotonic()
    answer = door.cite()
    assert time.monotonic() - started < 12
    assert answer.status == 503
    assert answer.headers["retry-after"] == "5"
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.json == UNAVAILABLE


def test_no_server(dsn: str, records: Records) -> None:
    nowhere = make_conninfo(dsn, host="127.0.0.1", port=1, connect_timeout=2)
    with running(create_app(nowhere, principal=principal()), records) as door:
        assert_unavailable(door)
        # What needs no database is answered without it.
        assert door.cite(bearer="nobody").status == 401
        assert door.cite(matter="nowhere").status == 404
        assert door.cite(raw=b" " * 70_000).status == 413


def test_no_such_database(dsn: str, records: Records) -> None:
    missing = make_conninfo(dsn, dbname="no_such_database")
    with running(create_app(missing, principal=principal()), records) as door:
        assert_unavailable(door)


def test_it_comes_back(deployed: Database, dsn: str, records: Records) -> None:
    """The door may start before the database does, and needs no help when that is there."""
    name = "comes_later"
    later = make_conninfo(dsn, dbname=name)
    with running(create_app(later, principal=principal()), records) as door:
        assert_unavailable(door)
        deployed.server.create_database(name, template=deployed.name)
        try:
            deadline = time.monotonic() + 20
            while (status := door.cite().status) == 503 and time.monotonic() < deadline:
                time.sleep(0.1)
            # It answers: the matter is not in that database.
            assert status == 404
        finally:
            deployed.server.drop_database(name)


def test_too_many_at_once(dsn: str, records: Records) -> None:
    with (
        ConnectionPool(dsn, min_size=1, max_size=1, timeout=5, max_waiting=2, open=True) as pool,
        running(create_app(pool, principal=principal()), records) as door,
        ThreadPoolExecutor(12) as people,
    ):
        assert door.cite().status == 200
        with pool.connection():
            asked = [people.submit(door.cite) for _ in range(10)]
            # Two wait for their turn; the others are told at once.
            deadline = time.monotonic() + 4
            while sum(a.done() for a in asked) < 8:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            assert door.cite(bearer="nobody").status == 401
        statuses = sorted(a.result().status for a in asked)
    assert statuses == [200] * 2 + [503] * 8


def test_a_database_without_citeledger(dsn: str, records: Records) -> None:
    empty = make_conninfo(dsn, dbname="postgres")
    with running(create_app(empty, principal=principal()), records) as door:
        assert_unavailable(door)


def test_a_pool_that_is_closed_or_full(dsn: str, records: Records) -> None:
    with ConnectionPool(dsn, min_size=1, max_size=1, timeout=0.2, open=True) as pool:
        with running(create_app(pool, principal=principal()), records) as door:
            assert door.cite().status == 200
            with pool.connection():
                assert_unavailable(door)
            assert door.cite().status == 200
        # The pool is the caller's: the door leaves it open.
        assert not pool.closed
    with running(create_app(pool, principal=principal()), records) as door:
        assert_unavailable(door)


def test_a_statement_that_takes_too_long(deployed: Database, dsn: str, records: Records) -> None:
    hurried = make_conninfo(dsn, options="-c statement_timeout=200ms")
    name = str(conninfo_to_dict(dsn)["dbname"])
    with (
        running(create_app(hurried, principal=principal()), records) as door,
        deployed.server.connect(dbname=name) as superuser,
    ):
        assert door.cite().status == 200
        superuser.execute("lock table citeledger.projects in access exclusive mode")
        assert_unavailable(door)
        superuser.rollback()
        assert door.cite().status == 200


def test_connections_that_were_cut(deployed: Database, door: Door, dsn: str) -> None:
    assert door.cite().status == 200
    with deployed.server.connect(autocommit=True) as superuser:
        cut = superuser.execute(
            "select pg_catalog.pg_terminate_backend(a.pid)"
            " from pg_catalog.pg_stat_activity as a where a.datname = %s",
            (conninfo_to_dict(dsn)["dbname"],),
        ).fetchall()
    assert cut
    assert door.cite().status == 200


def test_a_connection_is_left_without_a_context(dsn: str, records: Records) -> None:
    with (
        ConnectionPool(dsn, min_size=1, max_size=1, open=True) as pool,
        running(create_app(pool, principal=principal()), records) as door,
    ):
        asked: list[tuple[int, Callable[[], Answer]]] = [
            (200, door.cite),
            (403, lambda: door.cite(permissions=[])),
            (404, lambda: door.cite(matter=records.walled)),
            (422, lambda: door.cite(records.span(page_number=0))),
        ]
        for status, ask in asked:
            assert ask().status == status
            with pool.connection() as connection:
                row = connection.execute(
                    "select citeledger.current_firm_id(), citeledger.has_permission('matters:read')"
                ).fetchone()
            assert row == (None, False)
