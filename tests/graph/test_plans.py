"""The graph's indexes are used, each way, on loaded tables, by generic plans."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from support.world import set_context

if TYPE_CHECKING:
    from conftest import Database
    from support.server import Copies

    from .conftest import Connection

LOAD = """
  insert into citeledger.documents (firm_id, title, doi)
  select f.firm_id, n::text, '10.1000/' || n
  from (values (%(a)s::uuid), (%(b)s::uuid)) as f (firm_id)
  cross join generate_series(1, 4000) as n
"""
LISTS = """
  select citeledger.record_references(
    d.id, array(select '10.1000/' || (d.title::integer + n * n) from generate_series(1, 5) as n)
  )
  from citeledger.documents as d
  where d.firm_id = %(a)s and d.title::integer <= 3000
"""

QUERIES = {
    "document_citations_pkey": (
        "select e.cited_document_id from citeledger.document_citations as e"
        " where e.firm_id = $1 and e.citing_document_id = $2",
        "uuid, uuid",
    ),
    "document_citations_cited_idx": (
        "select e.citing_document_id from citeledger.document_citations as e"
        " where e.firm_id = $1 and e.cited_document_id = $2",
        "uuid, uuid",
    ),
    "document_references_doi_key_idx": (
        "select r.document_id from citeledger.document_references as r"
        " where r.firm_id = $1 and r.doi_key = $2",
        "uuid, text",
    ),
    "document_references_list_key": (
        "select r.doi_key from citeledger.document_references as r"
        " where r.firm_id = $1 and r.document_id = $2",
        "uuid, uuid",
    ),
    "documents_doi_key_idx": (
        "select d.id from citeledger.documents as d where d.firm_id = $1 and d.doi_key = $2",
        "uuid, text",
    ),
}


@pytest.fixture(scope="module")
def loaded(deployed: Database, copies: Copies) -> Iterator[tuple[Connection, Any]]:
    """Give an owner's connection to a loaded database, in the firm's context, and the firm."""
    name = copies.take()
    with deployed.server.connect(dbname=name) as connection:
        firms = [
            connection.execute("select citeledger.create_firm(%s)", (firm,)).fetchone()
            for firm in ("A", "B")
        ]
        a, b = (row[0] for row in firms if row is not None)
        set_context(connection, a)
        connection.execute(LOAD, {"a": a, "b": b})
        connection.execute(LISTS, {"a": a})
        connection.commit()
        connection.autocommit = True
        connection.execute("analyze")
        connection.autocommit = False
        set_context(connection, a)
        connection.execute("set local role citeledger_owner")
        connection.execute("set local plan_cache_mode = force_generic_plan")
        yield connection, a
        connection.rollback()
    copies.give_back(name)


@pytest.mark.parametrize("index", QUERIES)
def test_the_index_is_used(loaded: tuple[Connection, Any], index: str) -> None:
    connection, firm_id = loaded
    query, types = QUERIES[index]
    key = "10.1000/7" if types.endswith("text") else firm_id
    connection.execute(f"prepare {index} ({types}) as {query}")
    rows = connection.execute(
        f"explain (costs off) execute {index} ('{firm_id}', '{key}')"
    ).fetchall()
    plan = "\n".join(row[0] for row in rows)
    # "using" an index, or "on" one for a bitmap, by its whole name.
    assert index in re.findall(r"(?:using|Bitmap Index Scan on) (\w+)", plan), plan
    assert "Seq Scan" not in plan, plan


def test_the_functions_use_them(loaded: tuple[Connection, Any]) -> None:
    """Call after call on loaded tables, none is read whole, also when plans could be generic."""
    connection, _ = loaded
    connection.execute("set local plan_cache_mode = auto")
    reads = (
        "select sum(s.seq_scan) from pg_catalog.pg_stat_xact_user_tables as s"
        " where s.relname in ('document_citations', 'document_references', 'documents')"
    )
    rows = connection.execute(
        "select d.id from citeledger.documents as d where d.doi_key = any(%s)",
        ([f"10.1000/{n}" for n in range(500, 512)],),
    ).fetchall()
    before = connection.execute(reads).fetchone()
    for (document,) in rows:
        for statement in (
            "select citeledger.get_citations(%s)",
            "select citeledger.walk_citations(array[%s], 1)",
            "select citeledger.record_references(%s, '{10.1000/501,10.1000/502}')",
            "update citeledger.documents set deleted_at = now() where id = %s",
            "update citeledger.documents set deleted_at = null where id = %s",
        ):
            connection.execute(statement, (document,))
    assert connection.execute(reads).fetchone() == before
