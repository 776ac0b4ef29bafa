"""A firm that is younger than the statistics is served as any other.

Of its rows they know nothing, so that a plan made for it expects one row: then every index that
begins with the firm looks as good as the one that is meant, and all that the firm has is read.
"""

from __future__ import annotations

import pytest

from .conftest import NEW_DOCUMENTS, NEW_TURNS, Loaded
from .test_hot_statements import HOT

# After five calls PostgreSQL decides between the plans that it made and a generic one.
CALLS = 7
# What a call has to read at most, of a table of which the firm has several hundred rows: the parts
# of a turn, of a page, of a list, or the neighbours of a few documents and concepts.
ENOUGH = 100


def test_the_firm_has_more_than_a_call_may_read() -> None:
    assert min(NEW_TURNS, NEW_DOCUMENTS) > ENOUGH


@pytest.mark.parametrize("call", HOT)
def test_a_hot_call_reads_what_it_needs(loaded: Loaded, call: str) -> None:
    hot = HOT[call]
    arguments = [loaded.one(query, new=True) for query in hot.arguments]
    for _ in range(CALLS):
        plans = loaded.plans_of(hot.role, hot.statement, *arguments, new=True, mode="auto")
        assert len(plans.heard) > 1
        # The checks of foreign keys are planned by PostgreSQL itself, as it likes.
        read = plans.most_read(leaving="SELECT 1 FROM ONLY")
        assert {table: rows for table, rows in read.items() if rows > ENOUGH} == {}
