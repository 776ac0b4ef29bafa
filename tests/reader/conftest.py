"""The reading room on a real server, over a library, and a browser to read it with."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from typing import TYPE_CHECKING, Any

import pytest

from citeledger.http import Person, Principal, SignIn, create_app
from reader.library import Library
from support.door import Answer, Door, principal, running, token
from support.server import Copies

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from conftest import Database

CHROMIUM = shutil.which("chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
COOKIE = "session"


@dataclass(frozen=True, slots=True)
class Room:
    """A running reading room."""

    door: Door
    library: Library

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.door.port}"

    def get(
        self, path: str, *, firm: Any = None, bearer: str | None = None, **claims: Any
    ) -> Answer:
        """Get a page with a good token of the firm, and whatever differs from that."""
        sent = bearer or token(firm or self.library.firm_id, **claims)
        return self.door.send(path, headers={"Authorization": f"Bearer {sent}"}, method="GET")

    def text(self, path: str, **claims: Any) -> str:
        """Get a page that is there, as its text."""
        answer = self.get(path, **claims)
        assert answer.status == 200, answer
        return answer.body.decode()


def plain(html: str) -> str:
    """Return what a page says, without its markup."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", "", html)))


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


@pytest.fixture(scope="module")
def room(shelf: Database, library: Library) -> Iterator[Room]:
    """Run the reading room for tokens, in a header or in a cookie."""
    app = create_app(shelf.dsn("t_app"), principal=principal(cookie=COOKIE))
    with running(app, library.records) as door:
        yield Room(door, library)


@pytest.fixture(scope="module")
def demo_room(shelf: Database, library: Library) -> Iterator[Room]:
    """Run the reading room with people to choose from."""
    read = ("matters:read",)
    with shelf.connect(autocommit=True) as superuser:
        other = type(library.world).make(superuser, "Another firm")
    sign_in = SignIn(
        {
            "ada": Person("Ada", "may read", Principal(library.firm_id, permissions=read)),
            "ben": Person("Ben", "may not read", Principal(library.firm_id)),
            "eve": Person("<b>Eve</b>", "elsewhere", Principal(other.firm_id, permissions=read)),
        }
    )
    app = create_app(shelf.dsn("t_app"), principal=sign_in.principal, sign_in=sign_in)
    with running(app, library.records) as door:
        yield Room(door, library)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Run Debian's Chromium."""
    if CHROMIUM is None:
        pytest.skip("there is no chromium; install Debian's package of that name")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running_browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            yield running_browser
        finally:
            running_browser.close()
