"""One call of every function, and one write for every trigger: what an attacker can set in motion.

A hijack that works changes what one of them answers. So they are all played once undisturbed and
once in the attacker's surroundings, and both must say the same, to the last hint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Loader

from attack.scene import Connection, Scene
from support.records import PERSON

ANY_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
ANY_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[+-]\d\d(?::?\d\d)?|Z)?")


@dataclass(frozen=True, slots=True)
class Probe:
    """A statement without an operator or an unqualified name of its own, and who may run it."""

    least: str
    """reader, app or admin."""
    statement: str
    arguments: Callable[[Scene], tuple[Any, ...]] = lambda _: ()


def _call(function: str, *types: str) -> str:
    places = ", ".join(f"%s::pg_catalog.{t}" for t in types)
    return f"select citeledger.{function}({places})::pg_catalog.text"


def _rows(function: str, *types: str) -> str:
    places = ", ".join(f"%s::pg_catalog.{t}" for t in types)
    return f"select * from citeledger.{function}({places})"


def _span(scene: Scene, **changes: Any) -> str:
    return json.dumps(scene.records.span(**changes))


PAGES = json.dumps([{"page_number": 1, "blocks": ["new", "text"]}])
WORK = json.dumps({"DOI": "10.5555/a", "reference": [{"DOI": "10.5555/C"}, {"key": "x"}]})
_NEW_TURN = (
    "insert into citeledger.messages (chat_id, role, content, finalized_at)"
    " values (%s, 'assistant', 'x', pg_catalog.now())"
)

# By the name of the function, in the schema citeledger.
FUNCTIONS: dict[str, Probe] = {
    "current_firm_id": Probe("reader", "select citeledger.current_firm_id()"),
    "current_user_id": Probe("reader", "select citeledger.current_user_id()"),
    "has_permission": Probe("reader", _call("has_permission", "text"), lambda _: ("matters:read",)),
    "require_permission": Probe(
        "reader", _call("require_permission", "text"), lambda _: ("matters:write",)
    ),
    "set_context": Probe(
        "reader",
        _call("set_context", "uuid", "uuid", "_text"),
        lambda s: (s.firm_id, PERSON, ["matters:read", "a.b"]),
    ),
    "version": Probe("reader", "select citeledger.version()"),
    "verification_tier": Probe(
        "reader", _call("verification_tier", "text"), lambda _: ("tolerant_match",)
    ),
    "normalize_doi": Probe(
        "reader", _call("normalize_doi", "text"), lambda _: ("HTTPS://DOI.org/10.5555/%41%42).",)
    ),
    "metadata_only_violations": Probe(
        "reader", "select * from citeledger.metadata_only_violations()"
    ),
    "check_integrity": Probe("reader", "select * from citeledger.check_integrity()"),
    "cite": Probe("reader", _call("cite", "uuid", "jsonb"), lambda s: (s.records.matter, _span(s))),
    "cite_many": Probe(
        "reader",
        _call("cite_many", "uuid", "jsonb"),
        lambda s: (
            s.records.matter,
            f"[{_span(s)}, 7, {_span(s, document=s.graph['hidden'])}, {_span(s, quote='no')}]",
        ),
    ),
    "cite_ledger_entry": Probe(
        "reader",
        "select pg_catalog.count(citeledger.cite_ledger_entry(e.value)) from"
        " pg_catalog.unnest(%s::pg_catalog._uuid) as e (value)",
        lambda s: (entries_of(s, s.own.finalized),),
    ),
    "read_pages": Probe(
        "reader",
        _rows("read_pages", "uuid", "uuid"),
        lambda s: (s.records.matter, s.records.record),
    ),
    "suggest_spans": Probe(
        "reader",
        _rows("suggest_spans", "uuid", "jsonb"),
        lambda s: (s.records.matter, _span(s, char_start=..., char_end=..., page_number=9)),
    ),
    "ledger_trace": Probe("reader", _call("ledger_trace", "uuid"), lambda s: (s.own.chat,)),
    "get_citations": Probe("reader", _call("get_citations", "uuid"), lambda s: (s.graph["a"],)),
    "walk_citations": Probe(
        "reader", _rows("walk_citations", "_uuid", "int4"), lambda s: ([s.graph["a"]], 3)
    ),
    "graph_stage": Probe(
        "reader",
        _rows("graph_stage", "_text", "int4", "bool", "jsonb"),
        lambda _: (["rent"], 3, True, '{"sources": ["local"]}'),
    ),
    "resolve_span": Probe("app", _call("resolve_span", "jsonb"), lambda s: (_span(s),)),
    "recheck_document": Probe(
        "app", _rows("recheck_document", "uuid"), lambda s: (s.records.record,)
    ),
    "replace_document_pages": Probe(
        "app",
        _call("replace_document_pages", "uuid", "jsonb"),
        lambda s: (s.records.record, PAGES),
    ),
    "assemble_ledger_entries": Probe(
        "app", _call("assemble_ledger_entries", "uuid"), lambda s: (s.own.open,)
    ),
    "compute_and_record_gate": Probe(
        "app",
        "select pg_catalog.to_jsonb(citeledger.compute_and_record_gate(%s::pg_catalog.uuid))",
        lambda s: (s.own.open,),
    ),
    "finalize_turn": Probe("app", _call("finalize_turn", "uuid"), lambda s: (s.own.open,)),
    "finalize_turns": Probe("app", _call("finalize_turns", "_uuid"), lambda s: ([s.own.open],)),
    "finalize_pending": Probe("app", _call("finalize_pending", "int4"), lambda _: (9,)),
    "record_references": Probe(
        "app",
        _call("record_references", "uuid", "_text"),
        lambda s: (s.graph["c"], ["doi:10.5555/A", "no", None]),
    ),
    "record_crossref_work": Probe(
        "app", _call("record_crossref_work", "uuid", "jsonb"), lambda s: (s.graph["a"], WORK)
    ),
    "resolve_references": Probe("admin", _call("resolve_references", "bool"), lambda _: (False,)),
    "corpus_delete": Probe("admin", _call("corpus_delete", "_uuid"), lambda s: ([s.graph["b"]],)),
    "graph_gc": Probe("admin", _call("graph_gc", "bool"), lambda _: (False,)),
    "create_firm": Probe("admin", _call("create_firm", "text"), lambda _: ("Third",)),
    "delete_firm": Probe("admin", _call("delete_firm", "uuid"), lambda s: (s.foreign_firm,)),
    "firm_ids": Probe("admin", "select * from citeledger.firm_ids()"),
    # Forbidden to all three: the same refusal, then, in every surrounding.
    "deep_link": Probe(
        "reader",
        _call("deep_link", "text", "uuid", "int4"),
        lambda s: ("M", s.records.record, 1),
    ),
}

# What the triggers do, by what is written.
WRITES: dict[str, Probe] = {
    "a source of each kind for a finalized turn": Probe(
        "app",
        "with a as (insert into citeledger.message_citations (message_id, source_text)"
        " values (%s, 'x')), b as (insert into citeledger.message_caselaw_citations"
        " (message_id, opinion_id, cluster_id, source_text) values (%s, 1, 1, 'x'))"
        " insert into citeledger.message_tool_sources (message_id, source_kind, label)"
        " values (%s, 'web', 'x')",
        lambda s: (s.own.finalized,) * 3,
    ),
    "a late verdict of a judge": Probe(
        "app", "update citeledger.message_citations set verified = false"
    ),
    "a late verdict on an opinion": Probe(
        "app", "update citeledger.message_caselaw_citations set verified = false"
    ),
    "sources of a finalized turn deleted": Probe("app", "delete from citeledger.message_citations"),
    "tool sources of a finalized turn deleted": Probe(
        "app", "delete from citeledger.message_tool_sources"
    ),
    "a turn that arrives finalized": Probe("app", _NEW_TURN, lambda s: (s.own.chat,)),
    "turns finalized by their column": Probe(
        "app",
        "update citeledger.messages set finalized_at = pg_catalog.now() where finalized_at is null",
    ),
    "a finalized turn rewritten": Probe("app", "update citeledger.messages set content = 'x'"),
    "a document that arrives": Probe(
        "app", "insert into citeledger.documents (title, doi) values ('x', 'doi:10.5555/B')"
    ),
    "documents that change their DOI": Probe(
        "app", "update citeledger.documents set doi = '10.5555/B'"
    ),
    "documents withdrawn": Probe(
        "app", "update citeledger.documents set deleted_at = pg_catalog.now()"
    ),
    "a chunk, a concept and a type": Probe(
        "app",
        "with a as (insert into citeledger.kg_relation_types (relation_type) values ('x'))"
        " insert into citeledger.kg_entities (name, entity_type) values ('x', 'x')",
    ),
    "a matter": Probe(
        "app", "insert into citeledger.projects (matter_number, name) values ('x', 'x')"
    ),
    "messages of the firm deleted": Probe("admin", "delete from citeledger.messages"),
    "the matters that one sees": Probe("app", "select * from citeledger.projects"),
    "the firms that one sees": Probe("app", "select * from citeledger.firms"),
    "all that one sees": Probe(
        "app",
        "select (select pg_catalog.count(*) from citeledger.messages),"
        " (select pg_catalog.count(*) from citeledger.documents),"
        " (select pg_catalog.count(*) from citeledger.citation_ledger_entry),"
        " (select pg_catalog.count(*) from citeledger.chunks)",
    ),
}

LEAST = {"t_reader": ("reader",), "t_app": ("reader", "app"), "t_admin": ("reader", "app", "admin")}


def entries_of(scene: Scene, message_id: UUID) -> list[UUID]:
    """Return the ledger entries of a turn that stand for a citation of a document."""
    return [
        identifier
        for (identifier,) in scene.superuser.execute(
            "select e.id from citeledger.citation_ledger_entry as e"
            " where e.message_id = %s and e.message_citation_id is not null",
            (message_id,),
        )
    ]


def whole(error: psycopg.Error) -> tuple[str | None, ...]:
    """Return all that an error says, but not where in the server's own source it was raised."""
    diag = error.diag
    return (
        error.sqlstate,
        diag.message_primary,
        diag.message_detail,
        diag.message_hint,
        (diag.context or "").replace('"', ""),
        diag.schema_name,
        diag.table_name,
        diag.column_name,
        diag.constraint_name,
    )


class AnyTime(Loader):
    """Reads a time, however the session wants it written."""

    def load(self, _data: Buffer) -> str:
        """Return the same for every time."""
        return "<time>"


def outcome(connection: Connection, probe: Probe, scene: Scene) -> str:
    """Play one probe, undo it, and return all that it said, less new ids and times."""
    try:
        with connection.transaction(force_rollback=True):
            cursor = connection.execute(probe.statement, probe.arguments(scene))
            said = repr(cursor.fetchall() if cursor.description else cursor.statusmessage)
    except psycopg.Error as error:
        said = repr(whole(error))
    known = {str(scene.firm_id), str(scene.own.chat), str(scene.records.record)}
    said = ANY_UUID.sub(lambda m: m.group() if m.group() in known else "<id>", said)
    return ANY_TIME.sub("<time>", said)


def play(
    connection: Connection,
    scene: Scene,
    login: str,
    before: Callable[[Connection], object] = lambda _: None,
) -> dict[str, str]:
    """Play everything that a login may do, in the attacker's context; ``before`` comes first."""
    found = {}
    connection.adapters.register_loader("timestamptz", AnyTime)
    for name, probe in (FUNCTIONS | WRITES).items():
        if probe.least in LEAST[login]:
            with connection.transaction(force_rollback=True):
                scene.enter(connection)
                before(connection)
                found[name] = outcome(connection, probe, scene)
    return found
