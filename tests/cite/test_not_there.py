"""Whatever is not there is one and the same error, in all its parts, whoever of cite is asked."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from support.records import PERSON, READ, Records
from support.world import World, set_context


@pytest.fixture
def records(su: psycopg.Connection[Any]) -> Records:
    return Records.make(su)


def parts(error: psycopg.Error) -> dict[str, Any]:
    """Return everything that a client can see of an error."""
    diag = error.diag
    return {
        name: getattr(diag, name)
        for name in dir(diag)
        if not name.startswith("_") and isinstance(getattr(diag, name), str | None)
    }


CALLS: dict[str, tuple[str, Callable[[Records, UUID, UUID], tuple[Any, ...]]]] = {
    "cite": (
        "select citeledger.cite(%s::uuid, %s::jsonb)",
        lambda r, m, d: (m, json.dumps(r.span(d))),
    ),
    "cite, a quote that is not on the page": (
        "select citeledger.cite(%s::uuid, %s::jsonb)",
        lambda r, m, d: (m, json.dumps(r.span(d, quote="nowhere", page_number=99))),
    ),
    "suggest_spans": (
        "select * from citeledger.suggest_spans(%s::uuid, %s::jsonb)",
        lambda r, m, d: (m, json.dumps(r.span(d))),
    ),
    "read_pages": (
        "select * from citeledger.read_pages(%s::uuid, %s::uuid)",
        lambda _, m, d: (m, d),
    ),
    "read_pages, a page that is not there": (
        "select * from citeledger.read_pages(%s::uuid, %s::uuid, 99)",
        lambda _, m, d: (m, d),
    ),
}


@pytest.mark.parametrize(("statement", "arguments"), CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("role", ["t_reader", "t_app", "t_admin"])
def test_one_error(
    db: Any,
    records: Records,
    role: str,
    statement: str,
    arguments: Callable[[Records, UUID, UUID], tuple[Any, ...]],
) -> None:
    found = {}
    with db.connect(role) as connection:
        for why, (matter, document) in records.not_there.items():
            set_context(connection, records.firm_id)
            with pytest.raises(psycopg.Error) as caught:
                connection.execute(statement, arguments(records, matter, document))
            found[why] = parts(caught.value)
            connection.rollback()
        set_context(connection, records.firm_id)
        connection.execute(statement, arguments(records, records.matter, records.record))
    assert len(found) >= 11
    first = found["random"]
    assert first["sqlstate"] == "P0002"
    assert first["message_primary"]
    assert first["message_detail"]
    assert first["message_hint"]
    for why, every in found.items():
        assert every == first, why


def test_the_items_of_cite_many_are_one_error_too(db: Any, records: Records) -> None:
    spans = [records.span(d) for m, d in records.not_there.values() if m == records.matter]
    with db.connect("t_reader") as connection:
        set_context(connection, records.firm_id)
        row = connection.execute(
            "select citeledger.cite_many(%s, %s::jsonb)",
            (records.matter, json.dumps([*spans, records.span()])),
        ).fetchone()
    *errors, good = row[0]
    assert good["verified"]
    assert len(errors) == len(spans) >= 7
    assert {json.dumps(e, sort_keys=True) for e in errors} == {
        json.dumps({"error": {"message": "record not found", "sqlstate": "P0002"}})
    }


def test_an_entry_of_the_ledger(db: Any, su: psycopg.Connection[Any], records: Records) -> None:
    """One error for an entry that is not there, and for whatever it leads to that is not."""
    world = records.world
    entries = {"random": uuid4()}
    other = World.make(su, "A third firm")

    def entry(of: World, project: UUID | None, document: UUID | None, kind: str = "doc") -> UUID:
        message = of.turn(project)
        if kind == "doc":
            of.citation(message, source_document_id=document, source_page=1)
        elif kind == "caselaw":
            of.caselaw(message)
        else:
            of.tool(message)
        with su.transaction():
            set_context(su, of.firm_id)
            of.finalize(message)
        row = su.execute(
            "select id from citeledger.citation_ledger_entry where message_id = %s", (message,)
        ).fetchone()
        assert row is not None
        found = row[0]
        assert isinstance(found, UUID)
        return found

    for why, (matter, document) in records.not_there.items():
        if "firm" not in why and "random" not in why:
            entries[why] = entry(world, matter, document)
    entries["of no matter"] = entry(world, None, records.record)
    entries["of no document"] = entry(world, records.matter, None)
    entries["caselaw"] = entry(world, records.matter, None, "caselaw")
    entries["tool"] = entry(world, records.matter, None, "tool")
    theirs = other.project()
    entries["of another firm"] = entry(other, theirs, other.document(theirs))
    gone = world.project()
    entries["of a matter that is gone"] = entry(world, gone, world.document(gone))
    su.execute("delete from citeledger.projects where id = %s", (gone,))
    found = {}
    with db.connect("t_reader") as connection:
        for why, identifier in entries.items():
            set_context(connection, records.firm_id)
            with pytest.raises(psycopg.Error) as caught:
                connection.execute("select citeledger.cite_ledger_entry(%s)", (identifier,))
            found[why] = parts(caught.value)
            connection.rollback()
        set_context(connection, records.firm_id, PERSON)
        row = connection.execute(
            "select citeledger.cite_ledger_entry(%s)", (entries["in a walled matter"],)
        ).fetchone()
        assert row is not None
        assert row[0]["reason"] == "quote_absent"
    for why, every in found.items():
        assert every == found["random"], why
    assert found["random"]["sqlstate"] == "P0002"


@pytest.mark.parametrize("permissions", [(), ("matters:write",), ("Matters:read",)])
def test_permission_is_asked_for_first(
    db: Any, records: Records, permissions: tuple[str, ...]
) -> None:
    """Without it, what is there and what is not are one error, and so is a malformed span."""
    found = set()
    with db.connect("t_reader") as connection:
        pairs = [*records.not_there.values(), (records.matter, records.record)]
        for matter, document in pairs:
            for span in (records.span(document), {}):
                set_context(connection, records.firm_id, None, permissions)
                with pytest.raises(psycopg.errors.InsufficientPrivilege) as caught:
                    connection.execute(
                        "select citeledger.cite(%s, %s::jsonb)", (matter, json.dumps(span))
                    )
                found.add(json.dumps(parts(caught.value), sort_keys=True))
                connection.rollback()
    assert len(found) == 1


def test_time_does_not_tell_by_orders(db: Any, records: Records) -> None:
    """A privileged document with a thousand pages is refused as quickly as an id of nobody's.

    The text is not looked at before the checks are through, so its size cannot be felt. Medians of
    many calls are compared generously: the machine has other work.
    """
    privileged = records.not_there["privileged"][1]
    blocks = ["x" * 2000] * 4
    pages = [{"page_number": n, "blocks": blocks} for n in range(1, 1001)]
    with db.connect("t_app") as connection:
        set_context(connection, records.firm_id)
        connection.execute(
            "select citeledger.replace_document_pages(%s, %s::jsonb)",
            (privileged, json.dumps(pages)),
        )
        connection.commit()
    measured: dict[str, list[float]] = {"privileged": [], "random": [], "of another firm": []}
    with db.connect("t_reader", autocommit=True) as connection:
        for _ in range(60):
            for why, times in measured.items():
                matter, document = records.not_there[why]
                span = json.dumps(records.span(document, block_index=..., quote="y" * 50))
                with connection.transaction():
                    set_context(connection, records.firm_id, None, READ)
                    begin = time.perf_counter()
                    with pytest.raises(psycopg.Error), connection.transaction():
                        connection.execute("select citeledger.cite(%s, %s::jsonb)", (matter, span))
                    times.append(time.perf_counter() - begin)
    medians = {why: statistics.median(times) for why, times in measured.items()}
    assert max(medians.values()) < 3 * min(medians.values()), medians
