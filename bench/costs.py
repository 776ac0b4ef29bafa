"""What the ledger and the graph cost in bytes: on disk, and in the log of each turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from . import floors
from .figures.finalize import by_hand, finalizer, prepare

if TYPE_CHECKING:
    from collections.abc import Callable

    from .lab import Database, Lab

TABLES: Final = (
    "citation_ledger_entry", "work_product_fiduciary_gate", "message_citations",
    "message_caselaw_citations", "message_tool_sources", "messages",
)  # fmt: skip
TURNS: Final = 200


def measure(lab: Lab) -> dict[str, object]:
    """Return bytes by table and index in the largest ledger, and bytes of log for a turn."""
    database = lab.ledger()
    # The run has added to what was loaded. Not rebuilt: keys that came at random fill an index so.
    database.superuser.execute("vacuum (analyze)")
    rows = database.superuser.execute(
        "select c.relname, c.reltuples::bigint, pg_catalog.pg_table_size(c.oid),"
        " pg_catalog.pg_indexes_size(c.oid) from pg_catalog.pg_class as c"
        " where c.relnamespace = 'citeledger'::regnamespace and c.relname = any(%s)"
        " order by pg_catalog.array_position(%s::text[], c.relname::text)",
        (list(TABLES), list(TABLES)),
    ).fetchall()
    indexes = database.superuser.execute(
        "select i.relname, pg_catalog.pg_relation_size(i.oid), t.reltuples::bigint"
        " from pg_catalog.pg_index as x"
        " join pg_catalog.pg_class as i on i.oid = x.indexrelid"
        " join pg_catalog.pg_class as t on t.oid = x.indrelid"
        " where t.oid = 'citeledger.citation_ledger_entry'::regclass order by 2 desc"
    ).fetchall()
    log = _log(database, "right after a checkpoint")
    # Keys come at random, so after a checkpoint nearly every page that a turn touches is logged
    # whole; what a turn has to say for itself shows when that is off.
    for full_page_writes in ("off", "on"):
        database.superuser.execute(f"alter system set full_page_writes = {full_page_writes}")
        database.superuser.execute("select pg_catalog.pg_reload_conf()")
        database.settle_down()
        if full_page_writes == "off":
            log |= _log(database, "without images of pages")
    return {
        "entries": next(count for name, count, *_ in rows if name == TABLES[0]),
        "tables": {
            name: {
                "rows": count,
                "bytes_a_row": round(table / count),
                "index_bytes_a_row": round(index / count),
            }
            for name, count, table, index in rows
            if count > 0
        },
        "ledger_indexes": {
            name: {"bytes_a_ledger_row": round(size / count, 1), "megabytes": round(size / 1e6, 1)}
            for name, size, count in indexes
            if count > 0
        },
        "log_bytes_a_turn": log,
    }


def _log(database: Database, when: str) -> dict[str, int]:
    """Return the bytes of log that a turn takes, ours and by hand, in turn."""
    ids = database.open_turns(2 * TURNS)
    database.settle_down()
    with database.app() as app, database.floor() as floor:
        prepare(app)
        floors.prepare(floor, 10)
        ours, theirs = finalizer(app, ids[::2]), by_hand(floor, database, ids[1::2])
        by_us = by_them = 0.0
        for _ in range(TURNS):
            by_us += _log_of(database, ours)
            by_them += _log_of(database, theirs)
    return {
        f"finalize_turn, {when}": round(by_us / TURNS),
        f"the same rows by hand, {when}": round(by_them / TURNS),
    }


def _log_of(database: Database, once: Callable[[], float]) -> float:
    def position() -> int:
        row = database.superuser.execute(
            "select pg_catalog.pg_current_wal_insert_lsn() - '0/0'::pg_lsn"
        ).fetchone()
        assert row is not None
        return int(row[0])

    before = position()
    once()
    return position() - before
