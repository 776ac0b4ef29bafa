"""walk_citations against ``with recursive … union``, both directions, from ten documents.

The peer is the textbook statement, prepared, run by a role that passes row security: it walks
edges by their two indexes, and keeps a document's least hop at the end. It does not look whether
a document is live, or behind a wall; ours looks at each hop for those that might not be. The
figures that are called checked look at every document, and run as the application under row
security.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from .. import graph_data
from ..figure import Aim, Figure, Growth, Measured, Point
from ..lab import begin
from ..ledger_data import FIRM, NotEqualError
from ..timing import Spread, in_turn
from ..wire import text
from .backfill import array

if TYPE_CHECKING:
    from ..lab import Database, Lab

OURS = "select w.document_id, w.hop from citeledger.walk_citations($1, $2, 'both') as w"
RECURSIVE = """
with recursive walked (id, hop) as (
  select s.id, 0 from unnest($2::uuid[]) as s (id)
  union
  select e.id, w.hop + 1
  from walked as w
  cross join lateral (
    select c.cited_document_id
    from citeledger.document_citations as c
    where c.firm_id = $1 and c.citing_document_id = w.id
    union all
    select c.citing_document_id
    from citeledger.document_citations as c
    where c.firm_id = $1 and c.cited_document_id = w.id
  ) as e (id)
  where w.hop < $3
)
select w.id, min(w.hop) from walked as w group by w.id
"""
# What a team must add before it may show what is reached: live documents, and no hidden matter.
CHECKED = RECURSIVE.replace(
    "  where w.hop < $3\n",
    """  join citeledger.documents as d on d.firm_id = $1 and d.id = e.id and d.deleted_at is null
  where w.hop < $3
    and (
      d.project_id is null
      or exists (
        select from citeledger.projects as p where p.firm_id = $1 and p.id = d.project_id
      )
    )
""",
)
SEEDS = 10


def against_recursive(
    database: Database, hops: int, rounds: int, *, checked: bool = False
) -> Measured:
    """Compare so many hops; A is the recursive statement."""
    connection = database.superuser
    row = connection.execute("select count(*) from citeledger.documents").fetchone()
    assert row is not None
    documents = int(row[0])
    seeds = [
        [
            graph_data.paper(connection, (number * 7_919 + place * 104_729) % documents)
            for place in range(SEEDS)
        ]
        for number in range(rounds + 3)
    ]
    ours, theirs = iter(seeds), iter(seeds)
    statement = CHECKED if checked else RECURSIVE
    with database.app() as app, database.app() if checked else database.floor() as floor:
        app.prepare("walk", OURS)
        app.prepare("sorted", f"select jsonb_agg(w order by w.document_id) from ({OURS}) as w")
        floor.prepare("recursive", statement)
        floor.prepare(
            "sorted",
            "select jsonb_agg(w order by w.document_id)"
            f" from ({statement}) as w (document_id, hop)",
        )
        begin(app)
        if checked:
            begin(floor)
        # In the same transaction of the same data: once before it is timed.
        for some in seeds[:2]:
            reached = app.execute("sorted", [array(some), text(hops)])
            if reached != floor.execute("sorted", [text(FIRM), array(some), text(hops)]):
                raise NotEqualError("the walks differ")
        pairs = in_turn(
            lambda: floor.timed(("recursive", [text(FIRM), array(next(theirs)), text(hops)])),
            lambda: app.timed(("walk", [array(next(ours)), text(hops)])),
            rounds,
        )
        app.execute("commit")
    edges = connection.execute("select count(*) from citeledger.document_citations").fetchone()
    assert edges is not None
    return Measured(pairs, f"{SEEDS} seeds, {documents:,} documents, {edges[0]:,} edges")


def rounds_of(lab: Lab, hops: int) -> int:
    """Return how often to walk so many hops: the more, the longer it takes."""
    return max(lab.scale.few, min(lab.scale.rounds, 200 >> (2 * hops)))


def walk(lab: Lab, hops: int, *, checked: bool = False) -> Measured:
    """Compare so many hops over the run's graph."""
    return against_recursive(lab.citations(), hops, rounds_of(lab, hops), checked=checked)


def growth(lab: Lab) -> Growth:
    """Measure one to three hops in graphs of several degrees."""
    lines: dict[str, list[Point]] = {}
    documents = min(lab.scale.documents, 20_000)
    for degree in lab.scale.degrees:
        database = lab.edges(documents, documents * degree)
        for hops in (1, 2, 3):
            pairs = against_recursive(database, hops, rounds_of(lab, hops)).pairs
            for label, times in (("walk_citations", pairs.b), ("with recursive", pairs.a)):
                lines.setdefault(f"{label}, degree {degree}", []).append(
                    Point(hops, Spread.of(times))
                )
        lab.drop(database)
    return Growth("walk_by_hops", "A longer walk", "hops", "milliseconds", lines)


FIGURES = (
    *(
        Figure(
            f"walk_{hops}hop_recursive_vs_ours",
            f"with recursive … union, {hops} hop{'s' * (hops > 1)}",
            "walk_citations",
            Aim("at least", limit),
            partial(walk, hops=hops),
        )
        for hops, limit in ((1, 1.4), (2, 1.4), (3, 1.0))
    ),
    *(
        Figure(
            f"walk_{hops}hop_checked_vs_ours",
            f"the same by the application, of live and visible documents, {hops}"
            f" hop{'s' * (hops > 1)}",
            "walk_citations",
            None,
            partial(walk, hops=hops, checked=True),
        )
        for hops in (1, 2, 3)
    ),
)
