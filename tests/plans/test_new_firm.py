"""A firm that is younger than the statistics is served as any other.

Of its rows they know nothing, so that a plan made for it expects one row: then every index that
begins with the firm looks as good as the one that is meant, and all that the firm has is read.
"""

from __future__ import annotations

import pytest

from .conftest import Loaded
from .test_hot_statements import HOT

# After five calls PostgreSQL decides between the plans that it made and a generic one.
CALLS = 7
# What a call has to read at most, of a table of which the firm has several hundred rows: the parts
# of a turn, of a page, of a list, or the neighbours of a few documents and concepts.
ENOUGH = 100


# What the calls read most of, in rows of the firm.
TABLES = (
    "chats", "citation_ledger_entry", "document_citations", "document_page_blocks",
    "document_pages", "document_references", "documents", "message_caselaw_citations",
    "message_citations", "message_tool_sources", "messages", "projects",
    "work_product_fiduciary_gate",
)  # fmt: skip


@pytest.mark.parametrize("table", TABLES)
def test_the_firm_has_more_than_a_call_may_read(loaded: Loaded, table: str) -> None:
    rows = f"select count(*) from citeledger.{table} as t where t.firm_id = %(firm)s"
    assert loaded.one(rows, new=True) > ENOUGH


def test_the_statistics_do_not_know_the_firm(loaded: Loaded) -> None:
    known = (
        "select count(*) from pg_stats as s"
        " where s.schemaname = 'citeledger' and s.attname = 'firm_id'"
        " and %(firm)s::text = any(s.most_common_vals::text::text[])"
    )
    assert loaded.one(known) > 0
    assert loaded.one(known, new=True) == 0


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
