"""What the door answers: the resolution of the database, or a problem that tells nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from urllib.parse import quote as percent_encoded
from uuid import UUID

import pytest

from support.door import Door
from support.records import BLOCKS, PERSON, QUOTE, Records

HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def test_a_quote_that_holds(door: Door, records: Records) -> None:
    answer = door.cite()
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert HEADERS.items() <= answer.headers.items()
    found = answer.json
    assert datetime.fromisoformat(found.pop("checked_at")).utcoffset() is not None
    number = percent_encoded(records.matter_number, safe="")
    assert found == {
        "verified": True,
        "reason": None,
        "deep_link": f"/matters/{number}/record/doc/{records.record}?page=1&block=1",
        "engine_state": "live",
        "span": records.span(),
    }


def test_a_quote_that_does_not(door: Door, records: Records) -> None:
    answer = door.cite(records.span(quote=QUOTE.replace("ninety", "Ninety")))
    assert answer.status == 200
    found = answer.json
    assert (found["verified"], found["reason"], found["deep_link"]) == (
        False,
        "text_mismatch",
        None,
    )


@pytest.mark.parametrize("absent", [None, ...])
def test_an_optional_key_may_be_null_or_absent(
    door: Door, records: Records, absent: object
) -> None:
    span = records.span(block_index=absent, char_start=absent, char_end=absent)
    found = door.cite(span).json
    assert found["verified"]
    assert found["deep_link"].endswith("?page=1")
    assert found["span"]["block_index"] is None


def test_the_wall_opens_for_the_person(door: Door, records: Records) -> None:
    matter, document = records.not_there["in a walled matter"]
    assert door.cite(records.span(document), matter=matter).status == 404
    assert door.cite(records.span(document), matter=matter, sub=str(PERSON)).status == 200
    other = str(UUID(int=PERSON.int + 1))
    assert door.cite(records.span(document), matter=matter, sub=other).status == 404


def test_what_is_not_there_is_one_answer(door: Door, records: Records) -> None:
    answers = {
        why: door.cite(records.span(document), matter=matter)
        for why, (matter, document) in records.not_there.items()
    }
    assert len(answers) >= 11
    answers["a path that is none"] = door.cite(matter="not-a-uuid")
    (one,) = set(map(repr, answers.values())) or {""}
    assert one
    answer = answers["random"]
    assert answer.status == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert HEADERS.items() <= answer.headers.items()
    assert answer.json == {
        "type": "about:blank",
        "title": "Not Found",
        "status": 404,
        "detail": "Nothing of this kind is here for you.",
    }


# One form of an id at every door. Of the others PostgreSQL takes some, and Python takes others.
BAD_IDS: dict[str, Callable[[str], str]] = {
    "words": lambda _: "not-a-uuid",
    "null": lambda _: "null",
    "dashes": lambda _: "-" * 36,
    "newline": lambda i: i + "%0A",
    "space": lambda i: "%20" + i,
    "braces": lambda i: "%7B" + i + "%7D",
    "urn": lambda i: "urn:uuid:" + i,
    "bare hex": lambda i: i.replace("-", ""),
    "full-width digits": lambda i: percent_encoded(i.translate({ord("4"): "\uff14"})),
    "NUL": lambda i: i + "%00",
    "bad UTF-8": lambda i: "%ff" + i[1:],
    "slash": lambda i: i + "%2Fx",
    "empty": lambda _: "",
    "very long": lambda i: i * 500,
}


@pytest.mark.parametrize("form", BAD_IDS.values(), ids=BAD_IDS)
def test_a_malformed_id_in_the_path(
    door: Door, records: Records, form: Callable[[str], str]
) -> None:
    malformed = form(str(records.matter))
    assert malformed != str(records.matter)
    answer = door.cite(matter=malformed)
    assert repr(answer) == repr(door.cite(matter=UUID(int=7)))


@pytest.mark.parametrize("form", BAD_IDS.values(), ids=BAD_IDS)
def test_a_malformed_id_in_the_span(
    door: Door, records: Records, form: Callable[[str], str]
) -> None:
    answer = door.cite(records.span(document_id=form(str(records.record))))
    assert answer.status == 422
    assert answer.json["field"] == "document_id"


def test_ids_are_taken_in_upper_case(door: Door, records: Records) -> None:
    span = records.span(document_id=str(records.record).upper())
    assert door.cite(span, matter=str(records.matter).upper()).json["verified"]


def test_paths_and_methods_that_are_not_there(door: Door, records: Records) -> None:
    path = f"/app/matters/{records.matter}/context/cite"
    wrong = door.send(path, method="GET")
    assert (wrong.status, wrong.headers["allow"]) == (405, "POST")
    for elsewhere in ("/", "/docs", "/redoc", "/openapi.json", path + "/", path.upper()):
        answer = door.send(elsewhere)
        assert answer.status == 404, elsewhere
        assert answer.json["status"] == 404
        assert HEADERS.items() <= answer.headers.items()


def test_no_refusal_repeats_what_was_sent_or_how_it_is_made(door: Door, records: Records) -> None:
    secret = "Zauberwort"
    sent = [
        records.span(quote=secret + "\0"),
        records.span(document_id=secret),
        records.span(page_number=secret),
        records.span() | {secret + " and more": 1},
        {secret: secret},
        [secret],
        secret,
    ]
    answers = [door.cite(span) for span in sent]
    answers.append(door.cite(raw=b'{"' + secret.encode()))
    answers.append(door.cite(records.span(records.not_there["deleted"][1])))
    answers.append(door.cite(permissions=[]))
    answers.append(door.cite(bearer=secret))
    for answer in answers:
        assert 400 <= answer.status < 500
        assert set(answer.json) <= {"type", "title", "status", "detail", "field"}
        text = (answer.body.decode() + json.dumps(answer.headers)).lower()
        words = ("select", "citeledger", "sqlstate", "22023", "p0002", "42501", "psycopg", "jsonb")
        for word in (*words, "written notice"):
            assert word not in text
        # A key in the form of a name is named; nothing else of the request is.
        if answer.json.get("field") != secret:
            assert secret.lower() not in text


def test_the_text_of_a_page_is_in_no_answer(door: Door, records: Records) -> None:
    answer = door.cite(records.span(quote="x", char_start=0, char_end=1))
    assert answer.json["reason"] == "text_mismatch"
    assert not any(block in answer.body.decode() for block in BLOCKS)
