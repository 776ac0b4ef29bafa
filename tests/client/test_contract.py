"""The client and the catalogue of the database say the same, in both directions.

What an application may call is what one of the package's three roles for applications may execute.
Each such function is a call of the client, or is left out for a reason given here.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import types
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import psycopg
import pytest

import citeledger
from citeledger import AsyncCiteLedger, CiteLedger, calls, client, methods, rows
from citeledger.async_methods import AsyncMethods
from citeledger.calls import Call, Pages, Span
from citeledger.methods import Id, Methods
from support.records import READ, Records

if TYPE_CHECKING:
    from collections.abc import Callable

LEFT_OUT = {
    "current_firm_id": "a caller knows for whom it acts; this is for its own SQL",
    "current_user_id": "a caller knows for whom it acts; this is for its own SQL",
    "require_permission": "raises inside a function of one's own; a program asks has_permission",
}
# CiteLedger.context calls it in a transaction; a method that outlives none would be a trap.
CONTEXT = "set_context"

# How the client writes the arguments of each type.
WRITTEN: dict[str, set[Any]] = {
    "uuid": {Id, Id | None},
    "uuid[]": {Iterable[Id]},
    "text": {str, str | None, rows.Direction},
    "text[]": {Collection[str], Collection[str | None]},
    "integer": {int, int | None},
    "boolean": {bool},
    "jsonb": {Span, Iterable[Span], Pages, Mapping[str, object]},
}
# And reads the results.
READ_AS: dict[str, type] = {
    "uuid": UUID,
    "text": str,
    "integer": int,
    "boolean": bool,
    "double precision": float,
    "timestamp with time zone": datetime,
    "void": type(None),
}


@dataclasses.dataclass(frozen=True)
class Argument:
    """An argument of a function; ``default`` is inspect's own word for none."""

    name: str
    type: str
    default: Any


@dataclasses.dataclass(frozen=True)
class Function:
    """What the catalogue says of a function."""

    name: str
    arguments: tuple[Argument, ...]
    columns: tuple[tuple[str, str], ...]
    """Names and types; empty for a scalar."""
    type: str
    is_set: bool


def functions(su: psycopg.Connection[Any]) -> list[Function]:
    """Read what an application may call."""
    found = su.execute(
        """
        select p.oid, p.proname, p.pronargs, coalesce(p.proargnames, '{}'),
          pg_catalog.string_to_array(pg_catalog.oidvectortypes(p.proargtypes), ', '),
          array(
            select array[c.name::text, pg_catalog.format_type(c.type, null)]
            from (
              select a.name, a.type, a.place
              from rows from (
                pg_catalog.unnest(p.proargnames),
                pg_catalog.unnest(p.proallargtypes),
                pg_catalog.unnest(p.proargmodes)
              ) with ordinality as a (name, type, mode, place)
              where a.mode in ('o', 'b', 't')
              union all
              select a.attname, a.atttypid, a.attnum from pg_catalog.pg_attribute as a
              join pg_catalog.pg_type as t on t.typrelid = a.attrelid
              where t.oid = p.prorettype and a.attnum > 0 and not a.attisdropped
            ) as c
            order by c.place
          ),
          pg_catalog.format_type(p.prorettype, null), p.proretset
        from pg_catalog.pg_proc as p
        where p.pronamespace = 'citeledger'::pg_catalog.regnamespace
          and p.prorettype <> 'pg_catalog.trigger'::pg_catalog.regtype
          and exists (
            select from pg_catalog.unnest(
              array['citeledger_app', 'citeledger_reader', 'citeledger_admin']
            ) as r (role)
            where pg_catalog.has_function_privilege(r.role, p.oid, 'execute')
          )
        order by p.proname, p.oid
        """
    ).fetchall()

    def default(oid: int, place: int) -> Any:
        expression = su.execute(
            "select pg_catalog.pg_get_function_arg_default(%s, %s)", (oid, place)
        ).fetchone()
        assert expression is not None
        if expression[0] is None:
            return inspect.Parameter.empty
        value = su.execute(f"select pg_catalog.to_jsonb({expression[0]})".encode()).fetchone()
        assert value is not None
        return value[0]

    return [
        Function(
            name,
            tuple(
                Argument(n, t, default(oid, place))
                for place, (n, t) in enumerate(zip(names[:count], types_, strict=True), 1)
            ),
            tuple((n, t) for n, t in columns),
            result,
            is_set,
        )
        for oid, name, count, names, types_, columns, result, is_set in found
    ]


def plain(value: Any) -> Any:
    """Write a default as JSON reads it."""
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


def hints(function: Any) -> dict[str, Any]:
    return get_type_hints(function, {**vars(client), **vars(rows), **vars(calls), **vars(methods)})


def without_none(hint: Any) -> Any:
    """Take None away from a type; a choice of texts is a text."""
    if get_origin(hint) in (Union, types.UnionType):
        kept = [without_none(h) for h in get_args(hint) if h is not type(None)]
        return kept[0] if len(kept) == 1 else tuple(kept)
    return str if get_origin(hint) is Literal else hint


def row_drift(function: Function, row: Any) -> Iterable[str]:
    """Compare a row type with columns."""
    # The context says whose rows they are.
    columns = [(n, t) for n, t in function.columns if n != "firm_id"]
    if not dataclasses.is_dataclass(row):
        yield f"{row} is no row"
        return
    read = hints(row)
    if list(read) != [n for n, _ in columns]:
        yield f"the row has {list(read)}, the function has {[n for n, _ in columns]}"
        return
    for name, type_ in columns:
        if without_none(read[name]) is not READ_AS.get(type_):
            yield f"column {name} is {type_}, but is read as {read[name]}"


def result_drift(function: Function, call: Call[..., Any], hint: Any) -> Iterable[str]:
    """Compare what a method returns with what its function returns."""
    row = without_none(hint)
    if function.is_set:
        if get_origin(row) is not list:
            yield f"it returns a set, the method {hint}"
            return
        (row,) = get_args(row)
    if function.columns:
        yield from row_drift(function, row)
        if "to_jsonb" not in call.sql:
            selected = re.findall(r"\b[a-z]\.(\w+)", call.sql.split(" from ")[0])
            if selected != [n for n, _ in function.columns]:
                yield f"the statement selects {selected} of {function.columns}"
    elif function.type == "jsonb":
        if get_origin(row) is list:
            row = without_none(get_args(row)[0])
        for one in row if isinstance(row, tuple) else (row,):
            if not dataclasses.is_dataclass(one):
                yield f"it returns jsonb, the method {hint}"
    elif row is not READ_AS.get(function.type):
        yield f"it returns {function.type}, the method {hint}"


def argument_drift(
    function: Function, call: Call[..., Any], parameters: Sequence[inspect.Parameter], method: Any
) -> Iterable[str]:
    """Compare arguments: their names, order, types and defaults."""
    names = [a.name.removeprefix("p_") for a in function.arguments]
    if [p.name for p in parameters] != names:
        yield f"the method takes {[p.name for p in parameters]}, the function {names}"
        return
    if list(inspect.signature(call.arguments).parameters) != names:
        yield f"the check takes other arguments than {names}"
    written = re.findall(r"%s::([a-z]+(?:\[\])?)", call.sql)
    if written != [a.type for a in function.arguments] or len(written) != call.sql.count("%s"):
        yield f"the statement has {written}, the function {[a.type for a in function.arguments]}"
    read = hints(method)
    for argument, parameter in zip(function.arguments, parameters, strict=True):
        if plain(parameter.default) != argument.default:
            yield f"{argument.name} is {argument.default} by default, not {parameter.default}"
        if read[parameter.name] not in WRITTEN.get(argument.type, ()):
            yield f"{argument.name} is {argument.type}, but is written as {read[parameter.name]}"


def drift(
    found: Sequence[Function], table: Sequence[Call[..., Any]], owner: Any = Methods
) -> list[str]:
    """Return every difference between the catalogue and the client; each line names a function."""
    by_name = {call.name: call for call in table}
    names = [f.name for f in found]
    problems = [
        *(f"{n}: the client calls it, but there is none" for n in by_name if n not in names),
        *(f"{n}: it is left out, but there is none" for n in LEFT_OUT if n not in names),
        *(f"{n}: there are several of this name" for n in set(names) if names.count(n) > 1),
    ]
    for function in found:
        if function.name in LEFT_OUT:
            if function.name in by_name:
                problems.append(f"{function.name}: it is left out, and is called")
            continue
        if function.name == CONTEXT:
            call: Call[..., Any] | None = calls.SET_CONTEXT
            method: Any = CiteLedger.context
        else:
            call = by_name.get(function.name)
            method = getattr(owner, function.name, None)
        if call is None or method is None:
            problems.append(f"{function.name}: an application may call it, the client does not")
            continue
        parameters = list(inspect.signature(method).parameters.values())[1:]
        whole = inspect.unwrap(method)
        lines = list(argument_drift(function, call, parameters, whole))
        if function.name != CONTEXT:
            lines += result_drift(function, call, hints(method)["return"])
        if re.findall(r"citeledger\.(\w+)\(", call.sql) != [function.name]:
            lines.append("the statement calls something else")
        problems += [f"{function.name}: {line}" for line in lines]
    return problems


@pytest.mark.parametrize("owner", [Methods, AsyncMethods, CiteLedger, AsyncCiteLedger])
def test_the_client_and_the_catalogue_agree(su: psycopg.Connection[Any], owner: type) -> None:
    found = functions(su)
    assert len(found) > 30
    assert drift(found, calls.CALLS, owner) == []


def test_the_table_has_each_call_once() -> None:
    names = [call.name for call in calls.CALLS]
    assert len(names) == len(set(names))
    made = {value for value in vars(calls).values() if isinstance(value, Call)}
    housekeeping = {
        calls.SET_CONTEXT,
        calls.HAS_VERSION,
        calls.READ_CONTEXT,
        calls.RESTORE_CONTEXT,
    }
    assert made - housekeeping == set(calls.CALLS)


STUB = "language sql as $$ select {} $$; grant execute on function citeledger.{} to citeledger_app"
WALK = "drop function citeledger.walk_citations(uuid[], integer, text);"
WALKED = STUB.format("null::uuid, 1", "walk_citations")

IN_THE_DATABASE = {
    "a new function": (
        "create function citeledger.extra() returns integer " + STUB.format("1", "extra"),
        "extra",
    ),
    "a function that went": ("drop function citeledger.firm_ids()", "firm_ids"),
    "a new name": ("alter function citeledger.version() rename to release", "release"),
    "an old name": ("alter function citeledger.version() rename to release", "version"),
    "a right that went": (
        "revoke execute on function citeledger.corpus_delete from citeledger_admin",
        "corpus_delete",
    ),
    "a left-out function that went": (
        "alter function citeledger.require_permission(text) rename to demand",
        "require_permission",
    ),
    "a second one of the name": (
        "create function citeledger.version(p_of text) returns text "
        + STUB.format("p_of", "version(text)"),
        "version",
    ),
    "the name of an argument": (
        WALK + "create function citeledger.walk_citations(p_documents uuid[],"
        " p_max_hops integer default 2, p_direction text default 'both')"
        " returns table (document_id uuid, hop integer) " + WALKED,
        "walk_citations",
    ),
    "the order of arguments": (
        WALK + "create function citeledger.walk_citations(p_document_ids uuid[],"
        " p_direction text default 'both', p_max_hops integer default 2)"
        " returns table (document_id uuid, hop integer) " + WALKED,
        "walk_citations",
    ),
    "the type of an argument": (
        WALK + "create function citeledger.walk_citations(p_document_ids uuid[],"
        " p_max_hops bigint default 2, p_direction text default 'both')"
        " returns table (document_id uuid, hop integer) " + WALKED,
        "walk_citations",
    ),
    "one more argument": (
        WALK + "create function citeledger.walk_citations(p_document_ids uuid[],"
        " p_max_hops integer default 2, p_direction text default 'both', p_limit integer default 1)"
        " returns table (document_id uuid, hop integer) " + WALKED,
        "walk_citations",
    ),
    "a default": (
        WALK + "create function citeledger.walk_citations(p_document_ids uuid[],"
        " p_max_hops integer default 3, p_direction text default 'both')"
        " returns table (document_id uuid, hop integer) " + WALKED,
        "walk_citations",
    ),
    "no default": (
        WALK + "create function citeledger.walk_citations(p_document_ids uuid[],"
        " p_max_hops integer, p_direction text)"
        " returns table (document_id uuid, hop integer) " + WALKED,
        "walk_citations",
    ),
    "the name of a column": (
        WALK + "create function citeledger.walk_citations(p_document_ids uuid[],"
        " p_max_hops integer default 2, p_direction text default 'both')"
        " returns table (document_id uuid, distance integer) " + WALKED,
        "walk_citations",
    ),
    "the type of a column": (
        WALK + "create function citeledger.walk_citations(p_document_ids uuid[],"
        " p_max_hops integer default 2, p_direction text default 'both')"
        " returns table (document_id text, hop integer) "
        + STUB.format("null::text, 1", "walk_citations"),
        "walk_citations",
    ),
    "one row instead of a set": (
        "drop function citeledger.firm_ids();"
        "create function citeledger.firm_ids() returns uuid "
        + STUB.format("null::uuid", "firm_ids"),
        "firm_ids",
    ),
    "the type of a result": (
        "drop function citeledger.finalize_turns(uuid[]);"
        "create function citeledger.finalize_turns(p_message_ids uuid[]) returns bigint "
        + STUB.format("1::bigint", "finalize_turns"),
        "finalize_turns",
    ),
    "a default of the context": (
        "create or replace function citeledger.set_context(p_firm_id uuid,"
        " p_user_id uuid default null, p_permissions text[] default '{matters:read}')"
        " returns void language sql as $$ $$",
        "set_context",
    ),
    "a column of the verdict": (
        "alter table citeledger.work_product_fiduciary_gate add column note_count integer",
        "compute_and_record_gate",
    ),
    "a column of a composite": (
        "alter type citeledger.span_resolution add attribute detail text",
        "resolve_span",
    ),
}


@pytest.mark.parametrize("change", IN_THE_DATABASE)
def test_a_change_of_the_database_is_seen(su: psycopg.Connection[Any], change: str) -> None:
    statement, name = IN_THE_DATABASE[change]
    su.execute(statement.encode())
    problems = drift(functions(su), calls.CALLS)
    assert [p for p in problems if p.startswith(f"{name}: ")], problems


class Changed(Methods):
    """Methods that went astray."""

    def walk_citations(
        self, document_ids: Iterable[Id], max_hops: int = 3, direction: rows.Direction = "both"
    ) -> list[rows.WalkedDocument]:
        raise NotImplementedError

    def finalize_pending(self, limit: str = "1000") -> int:  # type: ignore[override]
        raise NotImplementedError

    def has_permission(self, name: str) -> bool:
        raise NotImplementedError

    def version(self) -> int:  # type: ignore[override]
        raise NotImplementedError

    def read_pages(  # type: ignore[override]
        self, matter_id: Id, document_id: Id, page_number: int | None = None
    ) -> list[rows.SuggestedSpan]:
        raise NotImplementedError

    check_integrity = None  # type: ignore[assignment]


def test_a_change_of_a_method_is_seen(su: psycopg.Connection[Any]) -> None:
    found = {line.split(":")[0] for line in drift(functions(su), calls.CALLS, Changed)}
    assert found == {
        "walk_citations",
        "finalize_pending",
        "has_permission",
        "version",
        "read_pages",
        "check_integrity",
    }


ON_PAPER: dict[str, Callable[[Call[..., Any]], Call[..., Any] | None]] = {
    "gone": lambda _: None,
    "renamed": lambda call: dataclasses.replace(call, name="read"),
    "another function": lambda call: dataclasses.replace(
        call, sql=call.sql.replace("read_pages", "cite")
    ),
    "another cast": lambda call: dataclasses.replace(
        call, sql=call.sql.replace("::integer", "::bigint")
    ),
    "no cast": lambda call: dataclasses.replace(call, sql=call.sql.replace("::integer", "")),
    "another order": lambda call: dataclasses.replace(
        call, sql=call.sql.replace("b.page_number, b.block_index", "b.block_index, b.page_number")
    ),
    "a column less": lambda call: dataclasses.replace(
        call, sql=call.sql.replace(", b.content", "")
    ),
    "another check": lambda call: dataclasses.replace(call, arguments=calls.CITE.arguments),
}


@pytest.mark.parametrize("change", ON_PAPER)
def test_a_change_of_the_table_is_seen(su: psycopg.Connection[Any], change: str) -> None:
    changed = [ON_PAPER[change](c) if c.name == "read_pages" else c for c in calls.CALLS]
    problems = drift(functions(su), [c for c in changed if c is not None])
    assert [p for p in problems if p.startswith("read_pages: ")], problems


def test_json_and_rows_have_the_same_keys(su: psycopg.Connection[Any]) -> None:
    """What is no column is a key of JSON; test_calls.py has the turn, its trace and its verdict."""
    records = Records.make(su)

    def raw(name: str, *values: Any) -> Any:
        (call,) = (c for c in calls.CALLS if c.name == name)
        row = su.execute(call.sql.encode(), call.arguments(*values)).fetchone()
        assert row is not None
        return json.loads(row[0])

    def names(row: Any) -> set[str]:
        return {f.name for f in dataclasses.fields(row)}

    with su.transaction():
        su.execute("select citeledger.set_context(%s, null, %s)", (records.firm_id, list(READ)))
        other = records.world.document(records.matter, doi="10.1234/other")
        recorded = raw(
            "record_references", records.record, ["10.1234/other", "10.1234/none", None], "crossref"
        )
        assert set(recorded) == names(citeledger.RecordingReport)
        work = {"reference": [{"DOI": "10.1234/none"}]}
        assert set(raw("record_crossref_work", other, work)) == names(citeledger.RecordingReport)
        assert set(raw("resolve_references", True)) == names(citeledger.ResolutionReport)
        cited, citing = raw("get_citations", records.record), raw("get_citations", other)
        assert set(cited) == names(citeledger.Citations)
        for reference in cited["references"]:
            assert set(reference) == names(citeledger.Reference)
        assert {r["resolved"] for r in cited["references"]} == {True, False}
        for document in citing["cited_by"]:
            assert set(document) == names(citeledger.CitingDocument)
        assert citing["cited_by"]

        for span in (records.span(), records.span(page_number=9)):
            assert set(raw("cite", records.matter, span)) == names(citeledger.CiteResolution)
        fine, missing = raw("cite_many", records.matter, [records.span(), {"quote": "x"}])
        assert set(fine["span"]) == names(citeledger.SourceSpan)
        assert set(missing["error"]) >= names(citeledger.CiteError)

        assert set(raw("graph_gc", True)) == names(citeledger.CollectionReport)
        assert set(raw("corpus_delete", [other])) == names(citeledger.DeletionReport)


def test_the_administrators_calls(
    admin: psycopg.Connection[Any], app: psycopg.Connection[Any]
) -> None:
    ledger = CiteLedger(admin)
    assert ledger.firm_ids() == []
    first, second = ledger.create_firm("Quill & Partners"), ledger.create_firm("100% of %s {x}")
    assert ledger.firm_ids() == sorted([first, second])
    assert ledger.delete_firm(str(first)) is None  # type: ignore[func-returns-value]
    assert ledger.firm_ids() == [second]
    with pytest.raises(citeledger.NotFound), admin.transaction():
        ledger.delete_firm(first)
    with pytest.raises(citeledger.InvalidArgument) as caught, admin.transaction():
        ledger.create_firm(" ")
    assert caught.value.sqlstate == "22023"
    with pytest.raises(citeledger.InvalidArgument, match="name"):
        ledger.create_firm("a\0b")
    with pytest.raises(citeledger.PermissionDenied):
        CiteLedger(app).firm_ids()


def test_tiers_and_tables(app: psycopg.Connection[Any], su: psycopg.Connection[Any]) -> None:
    ledger = CiteLedger(app)
    statuses = ["exact_match", "ensemble_strict", "failed", "provenance", "Failed", None]
    assert [ledger.verification_tier(s) for s in statuses] == [
        "pass",
        "supported",
        "fail",
        "provenance",
        None,
        None,
    ]
    assert ledger.metadata_only_violations() == []
    app.commit()
    su.execute("alter table citeledger.work_product_fiduciary_gate add column quote text")
    (violation,) = ledger.metadata_only_violations()
    assert isinstance(violation, citeledger.MetadataOnlyViolation)
    assert (violation.table_name, violation.column_name) == (
        "work_product_fiduciary_gate",
        "quote",
    )
    assert violation.reason
