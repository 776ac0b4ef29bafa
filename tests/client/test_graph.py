"""The graph's calls, on a real database: what they return, and what they refuse before any SQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast
from uuid import UUID, uuid4

import psycopg
import pytest

from citeledger import (
    Citations,
    CiteLedger,
    CitingDocument,
    CollectionReport,
    DeletionReport,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    RecordingReport,
    Reference,
    ResolutionReport,
    StagedChunk,
    WalkedDocument,
    WrongIsolation,
)
from support.world import World, insert

READ = ("matters:read",)
Connection = psycopg.Connection[Any]
NOTHING: Any = None


@pytest.fixture
def client(app: Connection) -> CiteLedger:
    return CiteLedger(app)


@pytest.fixture
def operator(admin: Connection) -> CiteLedger:
    return CiteLedger(admin)


def documents(world: World) -> tuple[UUID, UUID]:
    """Make two documents with DOIs."""
    return (
        world.document(title="Citing", doi="10.1000/citing"),
        world.document(title="Cited", doi="https://doi.org/10.1000/Cited"),
    )


def test_normalize_doi(client: CiteLedger) -> None:
    assert client.normalize_doi("https://doi.org/10.1000/ABC.") == "10.1000/abc"
    assert client.normalize_doi("100% of %s {x}") is None
    assert client.normalize_doi(None) is None


def test_record_references(client: CiteLedger, world: World) -> None:
    citing, _ = documents(world)
    with client.context(firm_id=world.firm_id):
        report = client.record_references(
            citing,
            ["10.1000/cited", None, "10.1000/nowhere", "10.1000/CITING", "100% of %s {x}"],
        )
        assert report == RecordingReport(
            documents_scanned=1,
            references_found=3,
            matched=1,
            unmatched=1,
            ambiguous=0,
            self_citations_skipped=1,
            rows_written=1,
            rows_removed=0,
            dry_run=False,
            unusable=2,
        )
        again = client.record_references(str(citing), ("10.1000/cited",), source="manual")
        assert (again.matched, again.rows_written) == (1, 0)
        assert client.record_references(citing, []).rows_written == 1
        with pytest.raises(InvalidArgument):
            client.record_references(citing, ["10.1000/cited"], "Not a label")


def test_a_document_that_is_not_there(client: CiteLedger, world: World) -> None:
    with client.context(firm_id=world.firm_id), pytest.raises(NotFound):
        client.record_references(uuid4(), [])


def test_record_crossref_work(client: CiteLedger, world: World) -> None:
    citing, _ = documents(world)
    work = {
        "DOI": "10.1000/citing",
        "score": 1.0,
        "author": [{"affiliation": [{"name": "100% of %s {x}"}]}],
        "reference": [{"key": "1", "DOI": "10.1000/CITED"}, {"key": "2"}, 7],
    }
    with client.context(firm_id=world.firm_id):
        report = client.record_crossref_work(citing, work)
        assert (report.references_found, report.matched, report.unusable) == (1, 1, 2)
        answer = client.record_crossref_work(citing, {"status": "ok", "message": work})
        assert (answer.references_found, answer.rows_written) == (1, 0)
        with pytest.raises(InvalidArgument):
            client.record_crossref_work(citing, {"reference": {}})


def test_resolve_references(
    client: CiteLedger, operator: CiteLedger, world: World, app: Connection
) -> None:
    citing, _ = documents(world)
    with client.context(firm_id=world.firm_id):
        client.record_references(citing, ["10.1000/cited"])
    app.commit()
    nothing_to_do = ResolutionReport(1, 1, 1, 0, 0, 0, 0, 0, dry_run=True)
    with operator.context(firm_id=world.firm_id):
        assert operator.resolve_references() == nothing_to_do
        assert operator.resolve_references(dry_run=False).dry_run is False
    with client.context(firm_id=world.firm_id), pytest.raises(PermissionDenied):
        client.resolve_references()


def test_get_citations(client: CiteLedger, world: World) -> None:
    citing, cited = documents(world)
    with client.context(firm_id=world.firm_id, permissions=READ):
        client.record_references(citing, ["10.1000/nowhere", "10.1000/CITED"])
        assert client.get_citations(citing) == Citations(
            citing,
            "Citing",
            "10.1000/citing",
            (
                Reference(None, None, "10.1000/nowhere", "crossref", False),
                Reference(cited, "Cited", "10.1000/CITED", "crossref", True),
            ),
            (),
        )
        assert client.get_citations(str(cited)) == Citations(
            cited,
            "Cited",
            "https://doi.org/10.1000/Cited",
            (),
            (CitingDocument(citing, "Citing", "10.1000/citing", "crossref"),),
        )
    with client.context(firm_id=world.firm_id), pytest.raises(PermissionDenied):
        client.get_citations(citing)


def test_get_citations_of_what_is_not_there(client: CiteLedger, world: World) -> None:
    with client.context(firm_id=world.firm_id, permissions=READ), pytest.raises(NotFound):
        client.get_citations(uuid4())


def test_walk_citations(client: CiteLedger, world: World) -> None:
    citing, cited = documents(world)
    with client.context(firm_id=world.firm_id, permissions=READ):
        client.record_references(citing, ["10.1000/cited"])
        both = [WalkedDocument(citing, 0), WalkedDocument(cited, 1)]
        assert client.walk_citations([citing]) == both
        assert client.walk_citations((str(citing), uuid4()), 10**9, "cites") == both
        assert client.walk_citations([citing], direction="cited_by") == both[:1]
        assert client.walk_citations([]) == []
        with pytest.raises(InvalidArgument):
            client.walk_citations([citing], -1)


def test_walk_citations_in_another_direction(client: CiteLedger, world: World) -> None:
    with client.context(firm_id=world.firm_id, permissions=READ), pytest.raises(InvalidArgument):
        client.walk_citations([], 1, cast(Any, "up"))


def test_graph_stage(client: CiteLedger, world: World, su: Connection) -> None:
    citing, cited = documents(world)
    chunk, far = (
        insert(
            su,
            "chunks",
            firm_id=world.firm_id,
            document_id=document,
            chunk_index=0,
            content="Rent is due.",
        )
        for document in (citing, cited)
    )
    entity = insert(su, "kg_entities", firm_id=world.firm_id, name="Rent", entity_type="concept")
    su.execute(
        "insert into citeledger.kg_entity_mentions (firm_id, entity_id, chunk_id)"
        " values (%s, %s, %s)",
        (world.firm_id, entity, chunk),
    )
    with client.context(firm_id=world.firm_id, permissions=READ):
        client.record_references(citing, ["10.1000/cited"])
        found = StagedChunk(chunk, 0, "concept")
        assert client.graph_stage(["RENT"]) == [found]
        with_citations = client.graph_stage(["RENT"], include_citations=True)
        assert with_citations == [found, StagedChunk(far, 1, "citation")]
        assert client.graph_stage(["RENT"], 2, True, limit=1) == [found]
        assert client.graph_stage(["RENT"], 2, True, {"exclude_document_ids": [citing]}) == []
        assert client.graph_stage([]) == []
        with pytest.raises(InvalidArgument) as caught:
            client.graph_stage(["RENT"], scope={"license": ["open"]})
        assert caught.value.sqlstate == "22023"


def test_corpus_delete_and_graph_gc(operator: CiteLedger, world: World, su: Connection) -> None:
    citing, cited = documents(world)
    insert(su, "kg_entities", firm_id=world.firm_id, name="Bare", entity_type="concept")
    with operator.context(firm_id=world.firm_id):
        operator.record_references(citing, ["10.1000/cited"])
        assert operator.corpus_delete([cited, str(cited), uuid4()]) == DeletionReport(
            documents=1,
            pages=0,
            blocks=0,
            chunks=0,
            mentions=0,
            relationships=0,
            references=0,
            citations=1,
        )
        assert operator.corpus_delete([]).documents == 0
        assert operator.graph_gc() == CollectionReport(1, 0, 0, 0, dry_run=True)
        assert operator.graph_gc(dry_run=False) == CollectionReport(1, 0, 0, 0, dry_run=False)
        assert operator.graph_gc() == CollectionReport(0, 0, 0, 0, dry_run=True)


def test_another_isolation_level(client: CiteLedger, world: World, app: Connection) -> None:
    citing, _ = documents(world)
    app.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    with client.context(firm_id=world.firm_id), pytest.raises(WrongIsolation):
        client.record_references(citing, [])


REFUSED: dict[str, tuple[str, Callable[[CiteLedger], object]]] = {
    "a single text as a list": (
        "dois",
        lambda c: c.record_references(uuid4(), "10.1000/a"),
    ),
    "a number in a list": ("dois[1]", lambda c: c.record_references(uuid4(), ["x", cast(Any, 7)])),
    "a NUL": ("dois[0]", lambda c: c.record_references(uuid4(), ["10.1000/\0"])),
    "no source": ("source", lambda c: c.record_references(uuid4(), [], NOTHING)),
    "no id": ("document_id", lambda c: c.get_citations(NOTHING)),
    "an id in braces": ("document_id", lambda c: c.get_citations(f"{{{uuid4()}}}")),
    "a single id": ("document_ids", lambda c: c.walk_citations(cast(Any, str(uuid4())))),
    "no ids": ("document_ids", lambda c: c.walk_citations(NOTHING)),
    "ids of another form": (
        "document_ids[0]",
        lambda c: c.corpus_delete([uuid4().hex]),
    ),
    "a true hop": ("max_hops", lambda c: c.walk_citations([], True)),
    "hops as text": ("max_hops", lambda c: c.walk_citations([], cast(Any, "2"))),
    "hops beyond integer": ("max_hops", lambda c: c.walk_citations([], 3_000_000_000)),
    "no direction": ("direction", lambda c: c.walk_citations([], 1, NOTHING)),
    "a number as a switch": ("dry_run", lambda c: c.resolve_references(cast(Any, 0))),
    "no switch": ("dry_run", lambda c: c.graph_gc(NOTHING)),
    "a text as a switch": (
        "include_citations",
        lambda c: c.graph_stage([], 1, cast(Any, "false")),
    ),
    "a name that is no text": ("entity_names[0]", lambda c: c.graph_stage([NOTHING])),
    "a scope with NaN": (
        "scope.year_min",
        lambda c: c.graph_stage([], scope={"year_min": float("nan")}),
    ),
    "a limit as float": ("limit", lambda c: c.graph_stage([], limit=cast(Any, 20.0))),
    "a DOI that is no text": ("doi", lambda c: c.normalize_doi(cast(Any, 10.1))),
    "a work with a NUL": ("work.DOI", lambda c: c.record_crossref_work(uuid4(), {"DOI": "\0"})),
}


@pytest.mark.parametrize(("field", "call"), REFUSED.values(), ids=REFUSED)
def test_refused_before_any_sql(
    client: CiteLedger,
    app: Connection,
    field: str,
    call: Callable[[CiteLedger], object],
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        call(client)
    assert caught.value.sqlstate is None
    assert caught.value.message == f"{field} is not valid"
    assert app.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
