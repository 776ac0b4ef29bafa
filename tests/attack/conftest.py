"""Fixtures of the attacks: the scene, the logins that attack it, and what must hold afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from attack.scene import Connection, Scene
from support.server import Copies

if TYPE_CHECKING:
    from conftest import Database


@pytest.fixture(scope="module")
def scene(deployed: Database, copies: Copies) -> Iterator[Scene]:
    """Give the scene. After the module nothing is lost, nothing is changed, nothing is wrong."""
    name = copies.take()
    database = type(deployed)(deployed.server, name)
    superuser = database.connect(autocommit=True)
    try:
        ready = Scene.make(database, superuser)
        yield ready
        assert ready.held() == ready.before, "an attack left something behind, or took it"
        assert ready.wrong() == []
    finally:
        superuser.close()
        copies.give_back(name)


def _attacker(scene: Scene, login: str) -> Iterator[Connection]:
    connection = scene.database.connect(login)
    try:
        scene.enter(connection)
        yield connection
    finally:
        connection.close()


@pytest.fixture
def spy(scene: Scene) -> Iterator[Connection]:
    """Connect as a login with citeledger_reader alone, in the context of its own firm."""
    yield from _attacker(scene, "t_reader")


@pytest.fixture
def insider(scene: Scene) -> Iterator[Connection]:
    """Connect as a login with citeledger_app alone, in the context of its own firm."""
    yield from _attacker(scene, "t_app")
