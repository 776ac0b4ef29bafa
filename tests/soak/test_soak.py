"""A short soak: clients at work while backends and the server are killed. Nothing is lost."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from soak.faults import PER_MINUTE
from soak.journal import Journal, Transaction
from soak.oracle import KINDS, Expected, verdict
from soak.run import Options, soak
from support.server import server_kind


def test_nothing_that_was_acknowledged_is_lost() -> None:
    """At least one fault of each kind, in one minute; the long one is `make soak`."""
    found = soak(Options(seconds=60, clients=8, firms=3, seed="test", server=server_kind()))
    assert found["problems"] == []
    assert found["losses"] == dict.fromkeys(KINDS, 0)
    assert found["unexpected"] == 0
    assert set(found["faults"]) == set(PER_MINUTE)
    assert found["finalized turns"] > 20
    assert found["commits acknowledged"] > 50


def test_the_oracle_plays_only_what_happened() -> None:
    """What was never committed leaves nothing; a deleted turn takes all that others added to it."""
    journal = Journal()
    chat, turn, other, source, late = (uuid4() for _ in range(5))
    effects: list[list[tuple[Any, ...]]] = [
        [("turn", chat, turn), ("source", turn, "message_citations", source, "failed", None)],
        [("verdict", source, "exact_match", 1.0), ("finalized", turn)],
        [("gone", source)],
        [("turn", chat, other), ("source", other, "message_citations", late, "failed", None)],
        [("turn gone", other)],
    ]
    journal.transactions = [Transaction(uuid4(), 0, done) for done in effects]
    first, second, undone, *rest = (t.id for t in journal.transactions)
    found = Expected.of(journal, {first, second, *rest})
    assert undone not in (first, second)
    assert found.turns == {turn: chat}
    assert found.finalized == {turn}
    assert found.sources == {turn: {source: ("message_citations", "exact_match", 1.0)}}


def test_the_oracle_counts_for_itself() -> None:
    tool = ("message_tool_sources", "provenance", None)
    sure, judged, failed = (
        ("message_citations", status, confidence)
        for status, confidence in (
            ("exact_match", 1.0),
            ("ensemble_strict", 0.5),
            ("unverified", None),
        )
    )
    assert verdict([]) == ("fiduciary_grade", 0, 0, 0, None)
    assert verdict([tool, sure]) == ("fiduciary_grade", 1, 0, 0, 1.0)
    assert verdict([sure, judged, tool]) == ("supported_only", 1, 1, 0, 0.75)
    assert verdict([sure, judged, failed]) == ("flagged", 1, 1, 1, 0.75)
