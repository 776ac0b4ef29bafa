"""The pages without a browser: one 404, no state by GET, headers, cookies, escaping."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from http.cookies import SimpleCookie
from typing import TYPE_CHECKING, Any
from urllib.parse import quote as percent_encoded
from urllib.parse import urlencode
from uuid import uuid4

import jwt
import pytest
from markupsafe import escape

from citeledger.http import create_app
from reader.conftest import COOKIE, Room, plain
from reader.library import HOSTILE, NUMBERS, Library, number_of
from support.door import Answer, principal, running, token
from support.records import PERSON, QUOTE, put_pages

if TYPE_CHECKING:
    from conftest import Database

POLICY = {
    "default-src 'none'",
    "style-src 'self'",
    "img-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
}


def assert_page_headers(answer: Answer) -> None:
    headers = answer.headers
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert set(headers["content-security-policy"].split("; ")) == POLICY
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"


class Elements(HTMLParser):
    """Collects the elements of a page, with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def elements(html: str) -> list[tuple[str, dict[str, str | None]]]:
    return Elements(html).found


def link_of(path: str, matter_number: str, document: Any, query: str = "page=1&block=1") -> str:
    return f"/matters/{percent_encoded(matter_number, safe='')}/record/doc/{document}?{query}"


# What is there


def test_the_pages_say_how_a_browser_is_to_take_them(room: Room, library: Library) -> None:
    for path in (f"/chats/{library.chat}", library.path("far")):
        answer = room.get(path)
        assert answer.status == 200
        assert_page_headers(answer)


def test_the_turns_are_told_apart_in_words(room: Room, library: Library) -> None:
    text = plain(room.text(f"/chats/{library.chat}"))
    for words in (
        "Flagged", "No cited assertions", "No verdict", "The turn is not finalized.",
        "Verbatim", "Supported", "Failed", "Provenance", "mean confidence",
        "example-search", "courtlistener", "Opinion 1001, cluster 2001",
    ):  # fmt: skip
        assert words in text, words
    assert "Fiduciary grade" not in text
    assert "The quote is withheld" in text


def test_the_marked_quote_is_the_quote(room: Room, library: Library) -> None:
    html = room.text(library.path("everywhere"))
    assert re.findall(r"<mark[^>]*>(.*?)</mark>", html) == ["rent due"] * 3
    assert "every place where the words stand on this page is marked (3)" in plain(html)
    html = room.text(library.path("across"))
    assert re.findall(r"<mark[^>]*>(.*?)</mark>", html) == ["shall", "notify"]
    assert html.count(" autofocus") == 1


def test_what_never_held_is_not_called_drifted(room: Room, library: Library) -> None:
    text = room.text(library.path("never held"))
    assert text.count("Still not found") == 3  # the label, the badge, and at the named block
    assert "they were not verified when the turn was recorded either." in text
    assert "re-verification" not in text
    assert "<mark" not in text


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("utf-16", "Other words stand in this place now. text_mismatch"),
        ("moved", "The quoted words do not stand here now. quote_absent"),
        ("page gone", "The page is no longer in the document. page_missing"),
        ("unanchored", "The citation names no page. not_anchored"),
    ],
)
def test_what_drifted_has_a_notice_and_no_mark(
    room: Room, library: Library, entry: str, words: str
) -> None:
    html = room.text(library.path(entry))
    assert "<mark" not in html
    text = plain(html)
    assert "Needs re-verification" in text
    assert words in text
    assert "Verified now" not in text
    assert "Suggestion: page" in text


def test_what_stands_nowhere_has_no_suggestion(room: Room, library: Library) -> None:
    text = plain(room.text(library.path("absent")))
    assert "The quoted words stand nowhere in the document as it is now." in text


def test_a_deep_link_marks_its_block_and_no_quote(room: Room, library: Library) -> None:
    cited = room.door.cite()
    html = room.text(cited.json["deep_link"])
    assert "<mark" not in html
    assert html.count('class="block named"') == 1
    named = [a for t, a in elements(html) if t == "div" and "named" in (a.get("class") or "")]
    assert named[0]["id"] == "block-1"
    assert {"autofocus", "tabindex"} <= set(named[0])
    assert QUOTE in plain(html)


def test_a_quote_in_the_query_marks_nothing(room: Room, library: Library) -> None:
    link = room.door.cite().json["deep_link"]
    query = urlencode({"quote": QUOTE, "char_start": 22, "char_end": 54})
    assert "<mark" not in room.text(f"{link}&{query}")


def test_pages_and_blocks_that_are_not_there_any_more(room: Room, library: Library) -> None:
    path = room.door.cite().json["deep_link"].partition("?")[0]
    assert "There is no page 2 in the document now." in plain(room.text(f"{path}?page=2&block=0"))
    assert "There is no block 9 on this page now." in plain(room.text(f"{path}?page=1&block=9"))
    for query in ("", "?page=&block=", "?page=1", "?page=1&block="):
        html = room.text(path + query)
        assert QUOTE in plain(html)
        assert "block named" not in html


def test_every_number_of_a_matter_leads_back_to_it(
    shelf: Database, room: Room, library: Library
) -> None:
    with shelf.connect(autocommit=True) as superuser:
        world = library.world.on(superuser)
        for number in NUMBERS:
            # The number of the records is taken already.
            there = superuser.execute(
                "select id from citeledger.projects where matter_number = %s", (number,)
            ).fetchone()
            matter = there[0] if there else world.project(matter_number=number)
            document = world.document(matter, title=f"Of {number!r}")
            put_pages(superuser, world.firm_id, document, {1: ["found you"]})
            span = {"document_id": str(document), "page_number": 1, "quote": "found you"}
            link = room.door.cite(span, matter=matter).json["deep_link"]
            assert f"Of {number!r}" in plain(room.text(link)), number
            # As a browser shortens it, and as a proxy may decode it.
            for other in (link.replace("/./", "/"), link.replace("/matters/../", "/")):
                assert f"Of {number!r}" in plain(room.text(other)), other
            decoded = link.replace("%2F", "/").replace("%2f", "/")
            assert f"Of {number!r}" in plain(room.text(decoded)), decoded


# What is not there


def test_what_is_not_there_is_one_answer(
    shelf: Database, room: Room, demo_room: Room, library: Library
) -> None:
    numbers: dict[Any, str] = {}
    with shelf.connect() as superuser:
        for matter, _ in library.records.not_there.values():
            known = superuser.execute(
                "select 1 from citeledger.projects where id = %s", (matter,)
            ).fetchone()
            numbers[matter] = number_of(superuser, matter) if known else "no such matter"
    record = library.records.record
    good = library.records.matter_number
    paths = {
        why: link_of("", numbers[matter], document)
        for why, (matter, document) in library.records.not_there.items()
    }
    paths |= {f"entry {why}": library.path(why) for why in library.entries if why in paths}
    paths |= {
        "an entry of case law": library.path("case law"),
        "an entry of a tool": library.path("tool"),
        "an unknown chat": f"/chats/{uuid4()}",
        "an unknown entry": f"/chats/{library.chat}/entries/{uuid4()}",
        "an entry of another chat": f"/chats/{uuid4()}/entries/{library.entries['far']}",
        "no number": f"/matters//record/doc/{record}?page=1",
        "a NUL": f"/matters/a%00/record/doc/{record}?page=1",
        "bad UTF-8": f"/matters/%ff/record/doc/{record}?page=1",
        "a path that is none": "/chats",
        "another path that is none": f"/chats/{library.chat}/more",
        "a matter alone": f"/matters/{percent_encoded(good, safe='')}",
    }
    for bad in ("not-an-id", "%20", f"%7B{record}%7D", str(record).replace("-", ""), "x" * 5000):
        paths[f"malformed {bad[:9]}"] = link_of("", good, bad)
        paths[f"malformed chat {bad[:9]}"] = f"/chats/{bad}"
        paths[f"malformed entry {bad[:9]}"] = f"/chats/{library.chat}/entries/{bad}"
    for query in (
        "page=0", "page=-1", "page=x", "page=1.0", "page=2147483648", "page=%EF%BC%91",
        "page=1&page=1", "page=1&block=-1", "page=1&block=%00", "page=" + "9" * 400, "page=1%0A",
        "page=+1", "page=0x1",
    ):  # fmt: skip
        paths[f"malformed {query[:30]}"] = link_of("", good, record, query)
    answers = {why: room.get(path) for why, path in paths.items()}
    assert len(answers) > 50
    assert {why for why, a in answers.items() if a.status != 404} == set()
    assert len(set(map(repr, answers.values()))) == 1
    assert_page_headers(answers["privileged"])
    # For another firm, what is there is not there either.
    other = uuid4()
    for path in (f"/chats/{library.chat}", library.path("far"), link_of("", good, record)):
        assert room.get(path).status == 200
        assert repr(room.get(path, firm=other)) == repr(answers["privileged"])


def test_the_wall_opens_for_the_person(shelf: Database, room: Room, library: Library) -> None:
    matter, document = library.records.not_there["in a walled matter"]
    with shelf.connect() as superuser:
        path = link_of("", number_of(superuser, matter), document)
    assert room.get(path).status == 404
    assert room.get(path, sub=str(PERSON)).status == 200


def test_without_the_permission_nothing_shows_whether_it_is_there(
    room: Room, library: Library
) -> None:
    paths = (f"/chats/{library.chat}", f"/chats/{uuid4()}", library.path("far"), "/chats/nope")
    answers = {repr(room.get(path, permissions=[])) for path in paths}
    assert len(answers) == 1
    assert room.get(paths[0], permissions=[]).status == 403


def test_without_a_token_nobody_reads(room: Room, library: Library) -> None:
    for path in (f"/chats/{library.chat}", library.path("far"), "/chats/nope"):
        for headers in ({}, {"Authorization": "Bearer nope"}, {"Cookie": f"{COOKIE}=nope"}):
            answer = room.door.send(path, headers=headers, method="GET")
            assert answer.status == 401
            assert answer.headers["www-authenticate"] == "Bearer"
            assert "set-cookie" not in answer.headers
            assert_page_headers(answer)


def test_a_cookie_may_carry_the_token(room: Room, library: Library) -> None:
    path = f"/chats/{library.chat}"
    good = token(library.firm_id)
    cookie = {"Cookie": f"other=1; {COOKIE}={good}"}
    assert room.door.send(path, headers=cookie, method="GET").status == 200
    # A header is the word of a program, and a cookie does not make up for a bad one.
    both = cookie | {"Authorization": "Bearer nope"}
    assert room.door.send(path, headers=both, method="GET").status == 401


def test_no_cookie_is_believed_unless_it_is_named(shelf: Database, library: Library) -> None:
    with running(create_app(shelf.dsn("t_app"), principal=principal()), library.records) as door:
        cookie = {"Cookie": f"{COOKIE}={token(library.firm_id)}"}
        assert door.send(f"/chats/{library.chat}", headers=cookie, method="GET").status == 401
        # And without people to choose from, there is no sign-in and no start.
        assert door.send("/sign-in", method="GET").status == 404
        assert door.send("/sign-in", method="POST").status == 404
        assert door.send("/", method="GET").status == 404


def test_a_login_that_may_only_check_has_no_pages(shelf: Database, library: Library) -> None:
    app = create_app(shelf.dsn("t_reader"), principal=principal())
    with running(app, library.records) as door:
        room = Room(door, library)
        answer = room.get(f"/chats/{library.chat}")
        assert (answer.status, answer.headers["retry-after"]) == (503, "5")
        assert door.cite().json["verified"]


def test_the_pages_can_be_left_out(shelf: Database, library: Library) -> None:
    app = create_app(shelf.dsn("t_reader"), principal=principal(), reading_room=False)
    with running(app, library.records) as door:
        answer = Room(door, library).get(f"/chats/{library.chat}")
        assert (answer.status, answer.headers["content-type"]) == (404, "application/problem+json")


def test_programs_still_get_problems(room: Room, library: Library) -> None:
    answer = room.get("/nothing")
    assert answer.json["status"] == 404
    wrong = room.door.send(f"/chats/{library.chat}", method="POST")
    assert (wrong.status, wrong.headers["allow"]) == (405, "GET")


# Escaping


def test_nothing_that_people_wrote_becomes_markup(room: Room, library: Library) -> None:
    for path in (f"/chats/{library.chat}", library.path("hostile"), library.path("long")):
        html = room.text(path)
        found = elements(html)
        tags = {tag for tag, _ in found}
        assert not tags & {"script", "img", "iframe", "object", "embed", "style", "textarea"}
        for tag, attributes in found:
            assert not [n for n in attributes if n.startswith("on") or n == "style"], (
                tag,
                attributes,
            )
            for name in ("href", "src", "action"):
                value = attributes.get(name)
                if value is not None and tag != "use":
                    assert re.match(r"(/(?!/)|#|https://search\.example/|\?page=)", value), value
        assert "49" not in re.sub(r"[0-9a-f-]{36}|\d\d:\d\d:\d\d", "", plain(html))
        assert str(escape(HOSTILE)) in html
    html = room.text(f"/chats/{library.chat}")
    assert html.count("(not a web address, so not a link)") == 3
    links = [a for t, a in elements(html) if t == "a" and (a.get("href") or "").startswith("http")]
    assert [a["href"] for a in links] == ["https://search.example/?q=a&b=<i>"]
    assert set((links[0]["rel"] or "").split()) >= {"noopener", "noreferrer"}


def test_the_style_sheet_and_the_icon_are_our_own(room: Room, library: Library) -> None:
    html = room.text(f"/chats/{library.chat}")
    links = [a for t, a in elements(html) if t == "link"]
    assert [a["rel"] for a in links] == ["stylesheet", "icon"]
    for link in links:
        answer = room.door.send(link["href"] or "", method="GET")
        assert answer.status == 200
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "immutable" in answer.headers["cache-control"]


# The sign-in of a demonstration


def form(room: Room, path: str, values: dict[str, str], **headers: str) -> Answer:
    sent = {"Content-Type": "application/x-www-form-urlencoded"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    return room.door.send(path, urlencode(values).encode(), sent)


def session_of(answer: Answer) -> str:
    cookie = SimpleCookie(answer.headers["set-cookie"])["citeledger_session"]
    assert cookie["httponly"]
    assert (cookie["samesite"], cookie["path"]) == ("strict", "/")
    return cookie.value


def test_signing_in_and_out(demo_room: Room, library: Library) -> None:
    path = f"/chats/{library.chat}"
    refused = demo_room.door.send(f"{path}?a=%2F&b", method="GET")
    assert refused.status == 401
    choice = re.search(r'href="(/sign-in\?then=[^"]*)"', refused.body.decode())
    assert choice is not None
    chosen = demo_room.door.send(choice[1], method="GET")
    assert_page_headers(chosen)
    assert "&lt;b&gt;Eve&lt;/b&gt;" in chosen.body.decode()
    then = next(a["value"] for t, a in elements(chosen.body.decode()) if a.get("name") == "then")
    assert then == f"{path}?a=%2F&b"
    begun = form(demo_room, "/sign-in", {"person": "ada", "then": then})
    assert (begun.status, begun.headers["location"]) == (303, then)
    cookie = {"Cookie": f"citeledger_session={session_of(begun)}"}
    assert demo_room.door.send(path, headers=cookie, method="GET").status == 200
    start = demo_room.door.send("/", headers=cookie, method="GET")
    assert path in start.body.decode()
    ended = demo_room.door.send("/sign-out", headers=cookie)
    assert (ended.status, ended.headers["location"]) == (303, "/sign-in")
    assert session_of(ended) == ""


def test_people_have_their_own_rights(demo_room: Room, library: Library) -> None:
    for person, status in (("ada", 200), ("ben", 403), ("eve", 404)):
        begun = form(demo_room, "/sign-in", {"person": person})
        cookie = {"Cookie": f"citeledger_session={session_of(begun)}"}
        found = demo_room.door.send(f"/chats/{library.chat}", headers=cookie, method="GET")
        assert found.status == status


def test_nobody_is_signed_in_from_another_site(demo_room: Room) -> None:
    host = f"127.0.0.1:{demo_room.door.port}"
    for headers in (
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site", "Origin": f"http://{host}"},
    ):
        for path in ("/sign-in", "/sign-out"):
            answer = form(demo_room, path, {"person": "ada"}, **headers)
            assert answer.status == 403, headers
            assert "set-cookie" not in answer.headers
    for headers in ({"Sec_Fetch_Site": "same-origin"}, {"Origin": f"http://{host}"}):
        assert form(demo_room, "/sign-in", {"person": "ada"}, **headers).status == 303


@pytest.mark.parametrize(
    "then",
    [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "\\\\evil",
        "/a\r\nX: 1",
        "x",
        "",
    ],
)
def test_one_is_never_sent_elsewhere(demo_room: Room, then: str) -> None:
    begun = form(demo_room, "/sign-in", {"person": "ada", "then": then})
    assert begun.headers["location"] == "/"
    shown = demo_room.door.send(f"/sign-in?{urlencode({'then': then})}", method="GET")
    assert 'name="then" value="/"' in shown.body.decode()


def test_a_get_signs_nobody_in(demo_room: Room) -> None:
    answer = demo_room.door.send("/sign-in?person=ada", method="GET")
    assert (answer.status, "set-cookie" in answer.headers) == (200, False)
    assert demo_room.door.send("/sign-out", method="GET").status == 405


def test_who_is_not_in_the_list_is_nobody(demo_room: Room) -> None:
    for values in ({}, {"person": "mallory"}, {"person": ""}):
        answer = form(demo_room, "/sign-in", values)
        assert (answer.status, "set-cookie" in answer.headers) == (400, False)


def test_a_session_cannot_be_made_up(demo_room: Room, library: Library) -> None:
    begun = session_of(form(demo_room, "/sign-in", {"person": "ben"}))
    claims = jwt.decode(begun, options={"verify_signature": False})
    raised = jwt.encode(claims | {"permissions": ["matters:read"]}, "x" * 32, "HS256")
    head, _, signature = begun.split(".")
    unsigned = jwt.encode(claims | {"permissions": ["matters:read"]}, "", "none")
    swapped = f"{head}.{raised.split('.')[1]}.{signature}"
    for forged in (raised, unsigned, swapped, json.dumps(claims), "", begun + "x"):
        cookie = {"Cookie": f"citeledger_session={forged}"}
        answer = demo_room.door.send(f"/chats/{library.chat}", headers=cookie, method="GET")
        assert answer.status == 401, forged
