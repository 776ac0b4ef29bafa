"""The pages in a real browser: from the turn to the ledger to the click to the marked quote."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from citeledger.http import create_app
from reader.conftest import COOKIE, Room
from reader.library import FAR, HOSTILE, NUMBERS, RESCANNED, Library
from support.door import principal, running, token
from support.records import put_pages
from support.world import World

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from conftest import Database


@contextmanager
def reading(browser: Browser, room: Room, firm: Any = None, **options: Any) -> Iterator[Page]:
    """Open a page for somebody of a firm; whatever the browser complains about is a failure."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}} | options)
    context.add_cookies(
        [
            {
                "name": COOKIE,
                "value": token(firm or room.library.firm_id),
                "url": room.url,
                "httpOnly": True,
                "sameSite": "Strict",
            }
        ]
    )
    complaints: list[str] = []
    page = context.new_page()

    def dialog(opened: Any) -> None:
        complaints.append(f"dialog: {opened.message}")
        opened.dismiss()

    def request(sent: Any) -> None:
        if not sent.url.startswith(room.url + "/"):
            complaints.append(f"request: {sent.url}")

    page.on("dialog", dialog)
    page.on("request", request)
    page.on("console", lambda m: complaints.append(f"console: {m.text}"))
    page.on("pageerror", lambda e: complaints.append(f"error: {e}"))
    try:
        yield page
        # The browser says so itself when it is told no.
        kept = [c for c in complaints if "status of 404" not in c]
        assert kept == []
    finally:
        context.close()


def in_view(page: Page, selector: str) -> bool:
    box = page.locator(selector).bounding_box()
    size = page.viewport_size
    assert box is not None
    assert size is not None
    return box["y"] >= 0 and box["y"] + min(box["height"], 20) <= size["height"]


def overflow(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


def click_on(page: Page, room: Room, entry: str) -> None:
    page.goto(f"{room.url}/chats/{room.library.chat}")
    page.locator(f"#entry-{room.library.entries[entry]}").get_by_role("link").click()


def test_from_turn_to_quote_to_drift_to_stranger(db: Database, browser: Browser) -> None:
    with db.connect(autocommit=True) as superuser:
        library = Library.make(superuser)
        other = World.make(superuser, "Another firm")
        app = create_app(db.dsn("t_app"), principal=principal(cookie=COOKIE))
        with running(app, library.records) as door:
            room = Room(door, library)
            with reading(browser, room) as page:
                click_on(page, room, "astral")
                assert page.url == room.url + library.path("astral")
                assert page.locator("mark").all_text_contents() == ["rent due"]
                assert page.get_by_text("Verified now").is_visible()
                put_pages(superuser, library.firm_id, library.book, RESCANNED)
                click_on(page, room, "astral")
                assert page.url == room.url + library.path("astral")
                assert page.locator("mark").count() == 0
                notice = page.get_by_role("note", name="Needs re-verification")
                assert notice.is_visible()
                assert "text_mismatch" in notice.inner_text()
                assert "rcnt due" in page.locator("#block-1").inner_text()
            with reading(browser, room, other.firm_id) as page:
                for path in (library.path("astral"), f"/chats/{library.chat}"):
                    answer = page.goto(room.url + path)
                    assert answer is not None
                    assert answer.status == 404
                    assert page.get_by_role("heading", name="Not Found").is_visible()


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_one_arrives_at_the_quote(
    browser: Browser, room: Room, library: Library, script: bool
) -> None:
    with reading(browser, room, java_script_enabled=script) as page:
        page.goto(room.url + library.path("far"))
        assert page.locator("mark").all_text_contents() == [FAR]
        assert in_view(page, "mark")
        link = page.locator(".citation a.path").get_attribute("href")
        page.goto(f"{room.url}{link}")
        assert page.locator("mark").count() == 0
        assert in_view(page, "#block-150")
        assert not in_view(page, "#block-0")


def test_a_suggestion_leads_to_the_place(browser: Browser, room: Room, library: Library) -> None:
    with reading(browser, room) as page:
        click_on(page, room, "moved")
        assert page.locator("mark").count() == 0
        assert in_view(page, "#block-10 .drift")
        page.get_by_role("link", name="Suggestion: page 3, block 150").click()
        assert in_view(page, "#block-150")
        assert page.locator("mark").count() == 0


def test_hostile_words_are_only_words(browser: Browser, room: Room, library: Library) -> None:
    with reading(browser, room) as page:
        page.goto(f"{room.url}/chats/{library.chat}")
        assert HOSTILE in page.title()
        assert page.locator("h1").text_content() == HOSTILE
        for name in ("bad link 0", "bad link 1", "bad link 2"):
            assert page.locator(f"#entry-{library.entries[name]}").get_by_role("link").count() == 0
        click_on(page, room, "line ends")
        assert page.locator("mark").evaluate("m => m.textContent") == "one\r\ntwo "
        click_on(page, room, "hostile")
        assert page.locator("mark").evaluate("m => m.textContent") == HOSTILE
        assert page.locator("script, img, iframe, style, [style], [onload], [onerror]").count() == 0


def test_the_policy_stops_what_slips_through(browser: Browser, room: Room) -> None:
    # Not to see the policy at work, but that these tests would hear the browser complain.
    with (
        pytest.raises(AssertionError, match="Content Security Policy"),
        reading(browser, room) as page,
    ):
        page.goto(f"{room.url}/chats/{room.library.chat}")
        page.evaluate("document.body.insertAdjacentHTML('beforeend', '<i onclick=a()>x</i>')")
        page.locator("i").last.click()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1600])
def test_nothing_runs_over_the_edge(
    browser: Browser, room: Room, library: Library, width: int, scheme: str
) -> None:
    size = {"width": width, "height": 800}
    with reading(browser, room, viewport=size, color_scheme=scheme) as page:
        for path in (
            f"/chats/{library.chat}",
            library.path("hostile"),
            library.path("long"),
            library.path("moved"),
            "/chats/nowhere",
        ):
            page.goto(room.url + path)
            assert overflow(page) <= 0, path
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        levels = [int(n) for n in ground.strip("rgb()").split(",")]
        assert (sum(levels) > 384) == (scheme == "light")


def test_it_can_be_read_by_keyboard(browser: Browser, room: Room, library: Library) -> None:
    with reading(browser, room) as page:
        page.goto(f"{room.url}/chats/{library.chat}")
        page.keyboard.press("Tab")
        skip = page.locator(":focus")
        assert skip.text_content() == "Skip to the content"
        assert in_view(page, ":focus")
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        entry = f"#entry-{library.entries['far']}"
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("s => document.activeElement.closest(s) !== null", entry):
                break
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid"
        page.keyboard.press("Enter")
        page.wait_for_url(f"**{library.path('far')}")
        # One arrives at the quote, and goes on from there.
        assert page.evaluate("document.activeElement.tagName") == "MARK"
        page.keyboard.press("Tab")
        assert page.locator(":focus").get_attribute("rel") in ("prev", "next")


def test_it_can_be_heard(browser: Browser, room: Room, library: Library) -> None:
    with reading(browser, room) as page:
        page.goto(f"{room.url}/chats/{library.chat}")
        assert page.get_by_role("banner").count() == 1
        assert page.get_by_role("main").count() == 1
        assert page.get_by_role("navigation", name="Turns").count() == 1
        assert page.get_by_role("article", name="Turn 1").count() == 1
        assert page.get_by_role("region", name="Verdict of turn 1").count() == 1
        assert page.get_by_role("region", name=re.compile(r"Ledger \(\d+ sources\)")).count() == 3
        levels = page.evaluate(
            "[...document.querySelectorAll('h1,h2,h3,h4')].map(h => Number(h.tagName[1]))"
        )
        assert levels[0] == 1
        assert all(after - before <= 1 for before, after in pairwise(levels))
        # A link says where it leads, out of its place too.
        for name in page.locator(".click a").all_text_contents():
            assert "page" in name
            assert HOSTILE in name or "A lease" in name
        assert page.evaluate("document.documentElement.lang") == "en"
        page.goto(room.url + library.path("far"))
        assert page.get_by_role("group", name="Block 150, cited here").count() == 1
        assert page.get_by_role("complementary", name="The citation").count() == 1
        assert page.get_by_role("navigation", name="Pages", exact=True).count() == 1
        content = page.evaluate(
            "getComputedStyle(document.querySelector('mark'), '::before').content"
        )
        assert "verified quote begins" in content


def test_numbers_that_a_browser_shortens(
    shelf: Database, browser: Browser, room: Room, library: Library
) -> None:
    links = {}
    with shelf.connect(autocommit=True) as superuser:
        world = library.world.on(superuser)
        for number in (".", "..", "a/../b", "/", "%2F..%2f", "two\nlines\r\n", " at the ends "):
            assert number in NUMBERS
            matter = world.project(matter_number=number)
            document = world.document(matter, title=f"Of {number!r}")
            put_pages(superuser, world.firm_id, document, {1: ["found you"]})
            span = {"document_id": str(document), "page_number": 1, "quote": "found you"}
            links[number] = room.door.cite(span, matter=matter).json["deep_link"]
    with reading(browser, room) as page:
        for number, link in links.items():
            page.goto(room.url + link)
            assert page.locator("h1").text_content() == f"Of {number!r}", link


def test_choosing_who_one_is(browser: Browser, demo_room: Room, library: Library) -> None:
    context = browser.new_context()
    try:
        page = context.new_page()
        page.goto(f"{demo_room.url}{library.path('far')}")
        page.get_by_role("link", name="Choose who you are").click()
        page.get_by_role("button", name="Ada").press("Enter")
        assert page.url == demo_room.url + library.path("far")
        assert page.locator("mark").all_text_contents() == [FAR]
        (cookie,) = context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        page.get_by_role("button", name="Sign out").click()
        assert page.url == f"{demo_room.url}/sign-in"
        assert context.cookies() == []
        answer = page.goto(f"{demo_room.url}{library.path('far')}")
        assert answer is not None
        assert answer.status == 401
    finally:
        context.close()
