"""A pool that stays open while the schema under it is upgraded: its next calls just work."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any
from uuid import UUID

import psycopg
import pytest
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from citeledger import AsyncBound, AsyncCiteLedger, Bound, CiteLedger
from support.loops import async_test
from support.records import READ, Records

if TYPE_CHECKING:
    from conftest import Database

SIZE = 2

GROWN = (
    "alter table citeledger.messages add column note_count integer not null default 0",
    "alter table citeledger.documents add column note_count integer",
    "alter table citeledger.document_pages add column note_count integer",
    "alter table citeledger.message_citations add column note_count integer",
    "alter table citeledger.citation_ledger_entry add column note_count integer",
    "alter table citeledger.work_product_fiduciary_gate add column note_count integer",
    "alter type citeledger.span_resolution add attribute note_count integer",
)


def calls_of(records: Records, chat: UUID, message: UUID) -> list[tuple[str, tuple[Any, ...]]]:
    """Return calls of every kind: writing and reading, JSON, composites, sets and scalars."""
    span = records.span()
    return [
        ("finalize_turn", (message,)),
        ("finalize_turns", ([message],)),
        ("finalize_pending", (10,)),
        ("assemble_ledger_entries", (message,)),
        ("compute_and_record_gate", (message,)),
        ("ledger_trace", (chat, message)),
        ("cite", (records.matter, span)),
        ("cite_many", (records.matter, [span, span])),
        ("resolve_span", (span,)),
        ("recheck_document", (records.record,)),
        ("suggest_spans", (records.matter, span)),
        ("read_pages", (records.matter, records.record)),
        ("record_references", (records.record, ["10.1234/none"])),
        ("get_citations", (records.record,)),
        ("walk_citations", ([records.record],)),
        ("graph_stage", (["notice"],)),
        ("resolve_references", (True,)),
        ("graph_gc", (True,)),
        ("has_permission", ("matters:read",)),
        ("check_integrity", ()),
        ("firm_ids", ()),
        ("version", ()),
    ]


def upgrade(su: psycopg.Connection[Any], step: str) -> None:
    """Replace every function by itself, or give every table and the composite a column."""
    if step == "functions":
        definitions = su.execute(
            "select pg_catalog.pg_get_functiondef(p.oid) from pg_catalog.pg_proc as p"
            " where p.pronamespace::pg_catalog.regnamespace::text"
            " in ('citeledger', 'citeledger_private') and p.prokind = 'f'"
        ).fetchall()
        assert len(definitions) > 30
        with su.transaction():
            for (definition,) in definitions:
                su.execute(definition.encode())
    else:
        with su.transaction():
            for statement in GROWN:
                su.execute(statement.encode())


def stable(answer: Any) -> str:
    """Write an answer without what differs from one time to the next."""
    text = json.dumps(repr(answer))
    return text[: text.find("checked_at")] if "checked_at" in text else text


@pytest.mark.parametrize("threshold", [None, 0, 5])
@pytest.mark.parametrize("step", ["functions", "columns"])
def test_a_pool_lives_through_an_upgrade(
    db: Database, su: psycopg.Connection[Any], step: str, threshold: int | None
) -> None:
    records = Records.make(su)
    chat = records.world.chat(records.matter)
    message = records.world.message(chat)
    records.world.citation(message, source_document_id=records.record)
    with ConnectionPool(db.dsn("t_admin"), min_size=SIZE, max_size=SIZE, open=True) as pool:
        pool.wait()
        client = CiteLedger(pool, prepare_threshold=threshold)

        def everything(bound: Bound) -> list[str]:
            return [
                stable(getattr(bound, name)(*arguments))
                for name, arguments in calls_of(records, chat, message)
            ]

        def on_all(times: int) -> list[list[str]]:
            """Run it on each connection of the pool, which are taken in turn."""
            answers, used = [], set()
            for _ in range(SIZE * times):
                with client.context(firm_id=records.firm_id, permissions=READ) as bound:
                    used.add(bound.connection.info.backend_pid)
                    answers.append(everything(bound))
            assert len(used) == SIZE
            return answers

        before = on_all(7)[-1]
        backends = {c.info.backend_pid for c in pool._pool}
        upgrade(su, step)
        assert on_all(2) == [before] * 2 * SIZE
        assert {c.info.backend_pid for c in pool._pool} == backends


@pytest.mark.parametrize("threshold", [None, 0])
@async_test
async def test_an_asynchronous_pool_too(
    db: Database, su: psycopg.Connection[Any], threshold: int | None
) -> None:
    records = Records.make(su)
    chat = records.world.chat(records.matter)
    message = records.world.message(chat)
    async with AsyncConnectionPool(
        db.dsn("t_admin"), min_size=SIZE, max_size=SIZE, open=False
    ) as pool:
        await pool.wait()
        client = AsyncCiteLedger(pool, prepare_threshold=threshold)

        async def everything() -> int:
            async with client.context(firm_id=records.firm_id, permissions=READ) as bound:
                assert isinstance(bound, AsyncBound)
                for name, arguments in calls_of(records, chat, message):
                    await getattr(bound, name)(*arguments)
                return bound.connection.info.backend_pid

        async def on_all() -> set[int]:
            return {await everything() for _ in range(SIZE * 2)}

        before = await on_all()
        for step in ("functions", "columns"):
            await asyncio.to_thread(upgrade, su, step)
            assert await on_all() == before


def test_the_new_body_is_what_runs(db: Database, su: psycopg.Connection[Any]) -> None:
    with ConnectionPool(db.dsn("t_admin"), min_size=1, max_size=1, open=True) as pool:
        client = CiteLedger(pool, prepare_threshold=0)
        for _ in range(7):
            assert client.normalize_doi("doi:10.1234/AB") == "10.1234/ab"
        su.execute(
            "create or replace function citeledger.normalize_doi(p_doi text) returns text"
            " language sql immutable as $$ select 'new'::text $$"
        )
        assert client.normalize_doi("doi:10.1234/AB") == "new"
