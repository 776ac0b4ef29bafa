"""What rendering does with single values: links, times, shares, words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from citeledger.pages import words
from citeledger.pages.render import share, style_sheet, web_link, when
from citeledger.pages.views import LiveCounts
from citeledger.pages.words import reason_words, status_words, tier_badge, verdict_badge

GOOD = ["https://a.example/x?y=1#z", "http://a.example:8080/", "HTTPS://A.EXAMPLE/"]
BAD = [
    None,
    "",
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "java\tscript:alert(1)",
    " https://a.example/",
    "https://a.example/ x",
    "\x01javascript:alert(1)",
    "data:text/html,x",
    "vbscript:x",
    "file:///etc/passwd",
    "//a.example/",
    "/path",
    "https:",
    "https:///x",
    "https:\\\\a.example",
    "https://bank.example@evil.example/",
    "https://a.example/\u202egpj.exe",
    "https://[::1",
    "ftp://a.example/",
]


@pytest.mark.parametrize("url", GOOD)
def test_a_web_address_may_become_a_link(url: str) -> None:
    assert web_link(url) == url


@pytest.mark.parametrize("url", BAD)
def test_nothing_else_may(url: str | None) -> None:
    assert web_link(url) is None


def test_times_are_written_in_utc() -> None:
    local = datetime(2026, 5, 4, 23, 30, tzinfo=timezone(timedelta(hours=-2)))
    assert when(local) == "5 May 2026, 01:30:00 UTC"
    assert when(local.astimezone(UTC)) == when(local)


@pytest.mark.parametrize(
    ("value", "text"), [(1.0, "1.00"), (0.996, "0.996"), (0.5, "0.50"), (0.0, "0.00")]
)
def test_a_confidence_is_not_rounded_up_to_certainty(value: float, text: str) -> None:
    assert share(value) == text


def test_each_tier_has_a_word_and_a_shape_of_its_own() -> None:
    badges = [tier_badge(t, "x") for t in ("pass", "supported", "fail", "provenance", None)]
    assert len({b.word for b in badges}) == len({b.shape for b in badges}) == len(badges)
    assert tier_badge("pass", "tolerant_match").word != tier_badge("pass", "exact_match").word


def test_what_nobody_knows_yet_is_shown_as_it_is() -> None:
    assert tier_badge(None, "new_status").word == "Unrecognised"
    assert status_words("new_status") == "new_status"
    assert reason_words("new_reason")
    assert verdict_badge(None).word == "No verdict"


def test_the_style_sheet_fetches_nothing() -> None:
    css = style_sheet()
    assert "url(" not in css
    assert "@import" not in css
    assert "</" not in css


def test_one_and_several_are_told_apart() -> None:
    assert words.not_holding_words(LiveCounts(1, 0, 0, 0)) == []
    assert words.not_holding_words(LiveCounts(0, 1, 1, 1)) == [
        "1 needs re-verification",
        "1 was not verified before and is not found now",
        "1 cannot be checked",
    ]
    assert words.not_holding_words(LiveCounts(0, 2, 2, 2)) == [
        "2 need re-verification",
        "2 were not verified before and are not found now",
        "2 cannot be checked",
    ]
