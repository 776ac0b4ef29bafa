"""Documents that arrive, with the trigger that resolves what waited for them, and without it.

The other side is a copy of the same database from which that trigger was dropped. There the edges
are missing, so what is compared is the documents; ours must then have nothing left to resolve.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..figure import Aim, Figure, Measured
from ..lab import begin
from ..ledger_data import FIRM, NotEqualError
from ..timing import in_turn
from ..wire import text

if TYPE_CHECKING:
    from ..lab import Database, Lab

# By the superuser, in the firm's context.
RESOLVE = (
    f"set citeledger.firm_id = '{FIRM}'",
    "select citeledger.resolve_references(false)",
    "vacuum (analyze)",
)
DROP = ("drop trigger documents_arrived on citeledger.documents",)
ONE = "insert into citeledger.documents (title, doi) values ('A paper', $1)"
MANY = (
    "insert into citeledger.documents (title, doi)"
    " select 'A paper', d.doi from unnest($1::text[]) as d (doi)"
)


def _documents(database: Database) -> object:
    row = database.superuser.execute(
        "select count(*), md5(string_agg(d.doi, ',' order by d.doi)) from citeledger.documents as d"
    ).fetchone()
    assert row is not None
    return tuple(row)


def _nothing_left(database: Database) -> None:
    with database.admin() as admin:
        admin.prepare(
            "dry",
            "select (r ->> 'rows_written')::integer + (r ->> 'rows_removed')::integer"
            " from citeledger.resolve_references(true) as r",
        )
        begin(admin)
        left = admin.execute("dry")
        admin.execute("commit")
    if left != b"0":
        raise NotEqualError(f"the trigger left {left!r} edges to resolve")


def _sides(lab: Lab) -> tuple[Database, Database]:
    """Give a library with its edges, and a copy of it without the trigger."""
    database = lab.copied("ingest", lab.references(), RESOLVE)
    return database, lab.copied("ingest_bare", database, DROP)


def _awaited(database: Database) -> list[str]:
    """Return DOIs that lists name and no document has."""
    return [
        row[0]
        for row in database.superuser.execute(
            "select distinct r.doi_key from citeledger.document_references as r"
            " where r.firm_id = %s and not exists (select from citeledger.documents as d"
            " where d.firm_id = r.firm_id and d.doi_key = r.doi_key) order by 1",
            (FIRM,),
        ).fetchall()
    ]


def one(lab: Lab, *, awaited: bool) -> Measured:
    """Compare inserting one document, which lists await, or none does."""
    database, bare = _sides(lab)
    waiting = _awaited(database)
    rounds, warm = lab.scale.rounds, 10
    if awaited:
        rounds = min(rounds, len(waiting) // 2)
        warm = min(warm, len(waiting) - rounds)
        dois = waiting[: rounds + warm]
    else:
        dois = [f"10.5555/new.{number}" for number in range(rounds + warm)]
    ours, theirs = iter(dois), iter(dois)
    database.superuser.execute("vacuum (analyze)")
    bare.superuser.execute("vacuum (analyze)")
    with database.app() as with_trigger, bare.app() as without:
        with_trigger.prepare("one", ONE)
        without.prepare("one", ONE)

        def insert() -> float:
            begin(with_trigger)
            return with_trigger.timed(("one", [text(next(ours))]), ("commit", ()))

        def insert_bare() -> float:
            begin(without)
            return without.timed(("one", [text(next(theirs))]), ("commit", ()))

        pairs = in_turn(insert, insert_bare, rounds, warm=warm)
    if _documents(database) != _documents(bare):
        raise NotEqualError("the documents differ")
    _nothing_left(database)
    what = "that lists await" if awaited else "that no list names"
    return Measured(pairs, f"a document {what}, among {lab.scale.references[-1]:,} references")


def bulk(lab: Lab) -> Measured:
    """Compare inserting many documents in one statement; half are awaited, as far as there are."""
    database, bare = _sides(lab)
    count, rounds, warm = lab.scale.bulk, lab.scale.few, 1
    waiting = _awaited(database)
    share = min(len(waiting) // (rounds + warm), count // 2)
    lists = []
    for number in range(rounds + warm):
        known = waiting[number * share : (number + 1) * share]
        new = [f"10.5555/bulk.{number}.{n}" for n in range(count - share)]
        lists.append(("{" + ",".join(f'"{doi}"' for doi in known + new) + "}").encode())
    ours, theirs = iter(lists), iter(lists)
    with database.app() as with_trigger, bare.app() as without:
        with_trigger.prepare("many", MANY)
        without.prepare("many", MANY)

        def insert() -> float:
            database.settle_down()
            begin(with_trigger)
            return with_trigger.timed(("many", [next(ours)]), ("commit", ()))

        def insert_bare() -> float:
            database.settle_down()
            begin(without)
            return without.timed(("many", [next(theirs)]), ("commit", ()))

        pairs = in_turn(insert, insert_bare, rounds, warm=warm)
    if _documents(database) != _documents(bare):
        raise NotEqualError("the documents differ")
    _nothing_left(database)
    return Measured(pairs, f"{count:,} documents in one statement, {share:,} of them awaited")


FIGURES = (
    Figure(
        "ingest_one_trigger_cost",
        "inserting one document with the resolving trigger",
        "without it",
        Aim("at most", 1.9),
        partial(one, awaited=False),
    ),
    Figure(
        "ingest_one_awaited_trigger_cost",
        "inserting one document that lists await, with the trigger",
        "without it",
        None,
        partial(one, awaited=True),
    ),
    Figure(
        "ingest_bulk_trigger_cost",
        "inserting many documents in one statement with the trigger",
        "without it",
        Aim("at most", 5),
        bulk,
    ),
)
