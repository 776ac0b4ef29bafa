"""resolve_references against inserting the ready pairs, and against a rebuild through objects.

Both sides begin with lists and no edge. The floor's pairs lie ready in a table, sorted by key: no
DOI is compared with any other. The peer is in ``bench.peers.rebuild``.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ..figure import Aim, Figure, Growth, Measured, Point
from ..lab import begin
from ..ledger_data import FIRM, NotEqualError
from ..peers.rebuild import Rebuilder
from ..timing import Spread, in_turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..lab import Database, Lab
    from ..wire import Wire

WARM = 1
EDGE = "firm_id, citing_document_id, cited_document_id, cited_doi, source"


def empty(database: Database) -> None:
    """Take every edge away, and leave the table as new."""
    database.superuser.execute("truncate citeledger.document_citations")
    database.settle_down()


def edges(database: Database) -> str:
    """Return a digest of the edges."""
    row = database.superuser.execute(
        "select count(*) || ' ' || coalesce(md5(string_agg(e::text, ',' order by e)), '')"
        f" from (select {EDGE} from citeledger.document_citations) as e"
    ).fetchone()
    assert row is not None
    return str(row[0])


def resolver(database: Database, admin: Wire) -> Callable[[], float]:
    """Give what resolves every list from nothing and says how long that took."""
    admin.prepare("resolve", "select citeledger.resolve_references(false)")

    def once() -> float:
        empty(database)
        begin(admin)
        return admin.timed(("resolve", ()), ("commit", ()))

    return once


def _expect(database: Database, edges_of_ours: str, side: str) -> None:
    found = edges(database)
    if found != edges_of_ours or found.startswith("0 "):
        raise NotEqualError(f"{side} left {found[:20]}, ours {edges_of_ours[:20]}")


def resolve(lab: Lab, references: int | None = None) -> Measured:
    """Compare resolve_references with inserting the pairs that it finds."""
    count = references or lab.scale.references[-1]
    return lab.once(("resolve", count), lambda: _resolve(lab, count))


def _resolve(lab: Lab, count: int) -> Measured:
    database = lab.references(count)
    with database.admin() as admin, database.floor() as floor:
        ours = resolver(database, admin)
        ours()
        expected = edges(database)
        connection = database.superuser
        connection.execute("drop table if exists bench.pairs")
        connection.execute(
            f"create table bench.pairs as select {EDGE} from citeledger.document_citations"
            " order by firm_id, citing_document_id, cited_document_id"
        )
        connection.execute("analyze bench.pairs")
        connection.execute("grant usage on schema bench to bench_floor")
        connection.execute("grant select on bench.pairs to bench_floor")
        floor.prepare(
            "pairs",
            f"insert into citeledger.document_citations ({EDGE}) select {EDGE} from bench.pairs",
        )

        def by_hand() -> float:
            _expect(database, expected, "ours again")
            empty(database)
            floor.execute("begin")
            seconds = floor.timed(("pairs", ()), ("commit", ()))
            _expect(database, expected, "the floor")
            return seconds

        pairs = in_turn(ours, by_hand, lab.scale.few, warm=WARM)
    found = int(expected.split()[0])
    return Measured(pairs, f"{count:,} references, {count // 5:,} documents, {found:,} edges")


def rebuild(lab: Lab) -> Measured:
    """Compare the rebuild through objects with resolve_references; A is the peer."""
    # Of a hundred thousand references also where the run has more.
    references = min(100_000, lab.scale.references[-1])
    database = lab.references(references)
    with asyncio.Runner() as runner, database.admin() as admin:
        peer = Rebuilder(lab.bench.dsn("bench_floor", database.name), FIRM)
        ours = resolver(database, admin)
        ours()
        expected = edges(database)

        def by_objects() -> float:
            empty(database)
            seconds = runner.run(peer.rebuild())
            _expect(database, expected, "the peer")
            return seconds

        pairs = in_turn(by_objects, ours, max(2, lab.scale.few // 2), warm=WARM)
        runner.run(peer.close())
    return Measured(pairs, f"{references:,} references, {references // 5:,} documents")


def growth(lab: Lab) -> Growth:
    """Measure the resolving of lists from few references to the run's most."""
    ours, theirs = [], []
    for references in lab.scale.references:
        pairs = resolve(lab, references).pairs
        ours.append(Point(references, Spread.of(pairs.a)))
        theirs.append(Point(references, Spread.of(pairs.b)))
    return Growth(
        "resolve_by_references", "More references to resolve", "references", "milliseconds",
        {"resolve_references": ours, "inserting the ready pairs": theirs},
    )  # fmt: skip


FIGURES = (
    Figure(
        "resolve_vs_floor",
        "resolve_references over every list",
        "inserting the ready pairs",
        Aim("at most", 1.2),
        resolve,
    ),
    Figure(
        "rebuild_peer_vs_resolve",
        "rebuilding every edge through Python objects",
        "resolve_references",
        Aim("at least", 3),
        rebuild,
    ),
)
