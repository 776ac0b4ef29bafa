"""Where the time of our functions goes: the server's own count of calls and of their own time.

``track_functions`` costs a little at each call, so a profile says shares, not times to compare.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from . import page_data
from .figures.backfill import array
from .figures.finalize import finalizer, prepare
from .figures.walk import OURS
from .graph_data import paper
from .lab import begin
from .page_data import MATTER
from .wire import Wire, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from .lab import Database, Lab

CALLS = 100
"""How often what is quick is called."""
SHOWN = 0.02
"""Functions with a smaller share than this are added up."""


def measure(lab: Lab) -> dict[str, list[dict[str, Any]]]:
    """Return the profile of each call that has one."""
    ledger, pages, graph = lab.ledger(), lab.pages(), lab.citations()
    calls = min(CALLS, lab.scale.rounds)
    late = ledger.open_turns(1)
    spans = page_data.spans(pages.superuser, lab.scale.page_sizes[-1], 100)
    seeds = [[paper(graph.superuser, 10 * n + k) for k in range(10)] for n in range(calls)]

    def turns(wire: Wire) -> Callable[[], object]:
        prepare(wire)
        return finalizer(wire, ledger.open_turns(calls))

    def sources(wire: Wire) -> Callable[[], object]:
        wire.prepare("finalize_turns", "select citeledger.finalize_turns($1)")
        wire.prepare(
            "source",
            "insert into citeledger.message_citations (message_id, source_text)"
            " values ($1, 'Notice of ninety days.')",
        )
        begin(wire)
        wire.execute("finalize_turns", [array(late)])
        wire.execute("commit")

        def once() -> None:
            begin(wire)
            wire.execute("source", [text(late[0])])
            wire.execute("commit")

        return once

    def quotes(wire: Wire) -> Callable[[], object]:
        wire.prepare("cite", "select citeledger.cite($1, $2)")
        chosen = iter(spans)
        begin(wire)
        return lambda: wire.execute("cite", [text(MATTER), json.dumps(next(chosen)).encode()])

    def many(wire: Wire) -> Callable[[], object]:
        wire.prepare("cite_many", "select citeledger.cite_many($1, $2)")
        begin(wire)
        return lambda: wire.execute("cite_many", [text(MATTER), json.dumps(spans).encode()])

    def walks(wire: Wire) -> Callable[[], object]:
        wire.prepare("walk", OURS)
        some = iter(seeds)
        begin(wire)
        return lambda: wire.execute("walk", [array(next(some)), b"1"])

    return {
        "finalize_turn, 10 sources": _profile(ledger, turns, calls),
        "a late source": _profile(ledger, sources, calls),
        "cite": _profile(pages, quotes, calls),
        "cite_many, 100 spans": _profile(pages, many, 3),
        "walk_citations, 1 hop": _profile(graph, walks, calls),
    }


def _profile(
    database: Database, start: Callable[[Wire], Callable[[], object]], calls: int
) -> list[dict[str, Any]]:
    """Return the functions that so many calls ran: how often each, and their own time."""
    superuser = database.superuser
    superuser.execute("grant set on parameter track_functions to citeledger_app")
    with database.app() as wire:
        once = start(wire)
        superuser.execute("select pg_catalog.pg_stat_reset()")
        wire.run("set track_functions = 'all'")
        for _ in range(calls):
            once()
        # Counted at the end of the transaction.
        wire.run("commit")
        wire.run("select pg_catalog.pg_stat_force_next_flush()")
    rows = superuser.execute(
        "select f.funcname, f.calls, f.self_time from pg_catalog.pg_stat_user_functions as f"
        " where f.schemaname like 'citeledger%%' and f.funcname <> 'set_context'"
        " and f.calls > 0 order by f.self_time desc"
    ).fetchall()
    total = sum(row[2] for row in rows) or 1.0
    shown = [row for row in rows if row[2] / total >= SHOWN]
    profile = [
        {
            "function": name,
            "calls": round(count / calls, 2),
            "microseconds": round(1e3 * own / calls, 1),
            "share": round(own / total, 3),
        }
        for name, count, own in shown
    ]
    rest = sum(row[2] for row in rows) - sum(row[2] for row in shown)
    profile.append(
        {
            "function": "others",
            "calls": None,
            "microseconds": round(1e3 * rest / calls, 1),
            "share": round(rest / total, 3),
        }
    )
    return profile
