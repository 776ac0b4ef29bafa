"""One door for each module of tests, on a database with a small firm; nothing there is changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from citeledger.http import create_app
from support.door import Door, principal, running
from support.records import Records
from support.server import Copies

if TYPE_CHECKING:
    from conftest import Database


@pytest.fixture(scope="module")
def dsn(deployed: Database, copies: Copies) -> Iterator[str]:
    """Give the connection string of a reader to a database of the module's own."""
    name = copies.take()
    yield deployed.server.dsn("t_reader", name)
    copies.give_back(name)


@pytest.fixture(scope="module")
def records(deployed: Database, dsn: str) -> Records:
    """Make the firm."""
    from psycopg.conninfo import conninfo_to_dict

    name = str(conninfo_to_dict(dsn)["dbname"])
    with deployed.server.connect(dbname=name, autocommit=True) as superuser:
        return Records.make(superuser)


@pytest.fixture(scope="module")
def door(dsn: str, records: Records) -> Iterator[Door]:
    """Run the door over a DSN, with the shipped verifier."""
    with running(create_app(dsn, principal=principal()), records) as opened:
        yield opened
