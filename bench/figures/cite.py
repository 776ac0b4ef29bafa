"""Checking quotes against live pages, against merely reading those pages.

The floor of many spans keeps a page as one text. For every span it reads that text and takes it
out of its compressed storage, a thousand in one prepared statement too, and looks at nothing but
the length; it checks no permission, no matter, no quote and returns no link. The floor of one
span reads the block by its key under the same row security, and gives the text to the client.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..figure import Aim, Figure, Growth, Measured, Point
from ..lab import begin
from ..ledger_data import FIRM, NotEqualError
from ..page_data import MATTER, document_of, spans
from ..timing import Spread, in_turn
from ..wire import Wire, text

if TYPE_CHECKING:
    from ..lab import Database, Lab

READ_PAGES = """
select sum(length(p.content))
from unnest($2::uuid[], $3::integer[]) as s (document_id, page_number)
join bench.whole_pages as p
  on p.firm_id = $1 and p.document_id = s.document_id and p.page_number = s.page_number
"""
READER = "bench_blocks"


def _all_verified(answer: bytes | None, count: int) -> None:
    items = json.loads(answer or b"null")
    found = items if isinstance(items, list) else [items]
    if len(found) != count or not all(item.get("verified") for item in found):
        raise NotEqualError("spans that stand on their pages were not all verified")


def many(lab: Lab, size: int, count: int) -> Measured:
    """Compare cite_many of so many spans with reading as many pages; times are of one span."""
    return lab.once(("cite_many", size, count), lambda: _many(lab, size, count))


def _many(lab: Lab, size: int, count: int) -> Measured:
    database, rounds = lab.pages(), max(lab.scale.few, min(30, lab.scale.rounds))
    chosen = spans(database.superuser, size, count)
    parameters = [text(MATTER), json.dumps(chosen).encode()]
    pages = [
        text(FIRM),
        ("{" + ",".join(str(s["document_id"]) for s in chosen) + "}").encode(),
        ("{" + ",".join(str(s["page_number"]) for s in chosen) + "}").encode(),
    ]
    with database.app() as app, database.floor() as floor:
        app.prepare("cite_many", "select citeledger.cite_many($1, $2)")
        floor.prepare("read_pages", READ_PAGES)
        begin(app)
        _all_verified(app.execute("cite_many", parameters), count)
        pairs = in_turn(
            lambda: app.timed(("cite_many", parameters)) / count,
            lambda: floor.timed(("read_pages", pages)) / count,
            rounds,
        )
        app.execute("commit")
    return Measured(pairs, f"{count:,} spans in pages of {size:,} characters, for one span")


def _block_reader(lab: Lab, database: Database) -> Wire:
    """Open a connection that may select blocks, which no role of the package may."""
    known = database.superuser.execute(
        "select from pg_catalog.pg_roles where rolname = %s", (READER,)
    ).fetchone()
    if known is None:
        database.superuser.execute(f"create role {READER} login in role citeledger_app")
    database.superuser.execute(f"grant select on citeledger.document_page_blocks to {READER}")
    wire = Wire(lab.bench.dsn(READER, database.name))
    wire.prepare("context", "select citeledger.set_context($1, null, '{matters:read}')")
    return wire


def single(lab: Lab) -> Measured:
    """Compare one cite with one select of the span's block."""
    database, rounds = lab.pages(), lab.scale.rounds
    size = lab.scale.page_sizes[-1]
    chosen = spans(database.superuser, size, rounds + 10)
    ours, theirs = iter(chosen), iter(chosen)
    answers = []
    with database.app() as app, _block_reader(lab, database) as reader:
        app.prepare("cite", "select citeledger.cite($1, $2)")
        reader.prepare(
            "block",
            "select b.content from citeledger.document_page_blocks as b"
            " where b.firm_id = $1 and b.document_id = $2 and b.page_number = $3"
            " and b.block_index = $4",
        )
        begin(app)
        begin(reader)

        def cite() -> float:
            span = next(ours)
            parameters = [text(MATTER), json.dumps(span).encode()]
            seconds = app.timed(("cite", parameters))
            answers.append((parameters, span))
            return seconds

        def select() -> float:
            span = next(theirs)
            return reader.timed(
                (
                    "block",
                    [
                        text(FIRM),
                        text(document_of(size)),
                        text(span["page_number"]),
                        text(span["block_index"]),
                    ],
                )
            )

        pairs = in_turn(cite, select, rounds, warm=10)
        for parameters, _ in answers:
            _all_verified(app.execute("cite", parameters), 1)
        app.execute("commit")
        reader.execute("commit")
    return Measured(pairs, "a block of 1,000 characters")


def growth_by_page(lab: Lab) -> Growth:
    """Measure the same number of spans in pages of every size."""
    ours, theirs = [], []
    for size in lab.scale.page_sizes:
        pairs = many(lab, size, lab.scale.spans).pairs
        ours.append(Point(size, Spread.of(pairs.a)))
        theirs.append(Point(size, Spread.of(pairs.b)))
    return Growth(
        "cite_by_page_size", "A span in a larger page", "characters in the page",
        "milliseconds a span", {"cite_many": ours, "reading the page": theirs},
    )  # fmt: skip


def growth_by_batch(lab: Lab) -> Growth:
    """Measure batches of one span to all of them."""
    points = []
    count = 1
    while count <= lab.scale.spans:
        pairs = many(lab, 40_000, count).pairs
        points.append(Point(count, Spread.of(pairs.a)))
        count *= 10
    return Growth(
        "cite_by_batch", "More spans in one call", "spans in the call", "milliseconds a span",
        {"cite_many": points},
    )  # fmt: skip


def _many_40k(lab: Lab) -> Measured:
    return many(lab, 40_000, lab.scale.spans)


FIGURES = (
    Figure(
        "cite_many_40k_vs_page_read",
        "cite_many, for one span in a page of 40,000 characters",
        "reading that page's text",
        Aim("at most", 0.15),
        _many_40k,
    ),
    Figure(
        "cite_single_vs_pk_read",
        "one cite",
        "selecting the block by key under the same row security",
        Aim("at most", 2.0),
        single,
    ),
)
