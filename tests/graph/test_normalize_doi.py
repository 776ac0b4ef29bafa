"""normalize_doi against an oracle in Python that was written from the rules, not from the SQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from graph.oracle import key_of

if TYPE_CHECKING:
    from conftest import Database

    from .conftest import Connection

# What DOIs are made of, and what goes wrong around them.
PIECES = st.sampled_from(
    [
        *("10.1000/", "10.1000", "10.12345678901/x", "10.1000.10/", "10/abc", "10.", "10.1000/a"),
        *("doi:", "DOI: ", "doi.org/", "https://doi.org/", "HTTP://DX.DOI.ORG/", "www.doi.org/"),
        *("http://", "://", "dx.", "?a=b", "#c", "?", "#", "%2F", "%2f", "%25", "%252F", "%00"),
        *("%C3%A9", "%C3", "%A9", "%E2%80%93", "%ED%A0%80", "%F0%9F%98%80", "%F4%90%80%80"),
        *("%41", "%26lt%3B", "%", "%zz", "%20", "%23", "&lt;", "&gt;", "&amp;", "&AMP;", "&Lt;"),
        *("&amp;lt;", "&amp;amp;", "amp;", "&", "lt;", ";", "&quot;", "<", ">", "(", ")", "[", "]"),
        *("{", "}", ".", ",", ":", "!", "'", '"', "\u201d", "\u2019", "\u2026", "\u00bb", " "),
        *("\n", "\t", "\u00a0", "\u2003", "\u200b", "\ufeff", "\x85", "\u2010", "\u2013", "-", "_"),
        *(
            "/",
            "//",
            "A",
            "Z",
            "abc",
            "SICI",
            "\u00c4",
            "\u0130",
            "\u0131",
            "\u03a3",
            "\u212a",
            "0",
        ),
        *("\uff11", "\U0001f600", "~", "*", "+", "\\", "|", "^", "$", "\x7f", "\x01"),
    ]
)
ODD = st.lists(PIECES, max_size=12).map("".join)
DOIS = st.builds(
    lambda prefix, suffix: f"{prefix}10.1000/{suffix}",
    st.sampled_from(["", "doi:", "https://doi.org/", "dx.doi.org/", " DOI: "]),
    st.lists(PIECES, min_size=1, max_size=8).map("".join),
)
ANY = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40
).flatmap(
    lambda text: st.sampled_from([text, f"10.1000/{text}", f"https://doi.org/10.1000/{text}"])
)


@pytest.fixture(scope="module")
def asked(deployed: Database) -> Iterator[Connection]:
    """Give a connection to the deployed database; nothing is written there."""
    with deployed.connect("t_reader", autocommit=True) as connection:
        yield connection


def keys(connection: Connection, *given: str | None) -> list[Any]:
    rows = connection.execute(
        "select citeledger.normalize_doi(g.doi) from unnest(%s::text[])"
        " with ordinality as g (doi, place) order by g.place",
        (list(given),),
    ).fetchall()
    return [row[0] for row in rows]


@settings(
    max_examples=1500,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(printed=st.lists(st.one_of(DOIS, ODD, ANY), min_size=1, max_size=8))
@example(printed=["10.1000/a&AMP;b", "https://doi.org/10.1000/%26LT;z", "10.1000/(a).)"])
@example(printed=["https://doi.org/doi%3A10.1000/a", "doi:doi.org/doi:10.1000/a?b#c"])
def test_as_the_oracle_says_and_idempotent(asked: Connection, printed: list[str]) -> None:
    found = keys(asked, *printed)
    assert found == [key_of(text) for text in printed]
    assert keys(asked, *found) == found
    for key in found:
        if key is not None:
            assert not any("A" <= letter <= "Z" for letter in key)
            assert len(key.encode()) <= 2048


def test_around_the_longest_key(asked: Connection) -> None:
    cases = [
        start + letter * count + end
        for start in ("10.1000/", "https://doi.org/10.1000/")
        for letter, width in (("x", 1), ("\u00e9", 2), ("\u20ac", 3))
        for count in range(2040 // width - 1, 2040 // width + 2)
        for end in ("", ".", ")", " ")
    ]
    assert keys(asked, *cases) == [key_of(case) for case in cases]
