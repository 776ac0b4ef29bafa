"""A library to read, in a database of the module's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from reader.library import Library
from support.server import Copies

if TYPE_CHECKING:
    from conftest import Database


@pytest.fixture(scope="module")
def shelf(deployed: Database, copies: Copies) -> Iterator[Database]:
    """Give a database of the module's own."""
    name = copies.take()
    yield type(deployed)(deployed.server, name)
    copies.give_back(name)


@pytest.fixture(scope="module")
def library(shelf: Database) -> Library:
    """Make the library."""
    with shelf.connect(autocommit=True) as superuser:
        return Library.make(superuser)
