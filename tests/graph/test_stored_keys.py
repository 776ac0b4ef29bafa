"""Keys of DOIs are the same under every locale, and after a dump, a restore and a REINDEX."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from graph.oracle import key_of
from support.deploy import deploy_with_psql
from support.server import DEPLOYER
from support.world import set_context

if TYPE_CHECKING:
    from conftest import Database
    from support.server import Server

    from .conftest import Graph

ODD = [
    "10.1000/ITITLE",
    "https://doi.org/10.1000/%C4%B0%49",
    "10.1000/\u0130I\u0131i\u03a3",
    "10.1002/(SICI)1096-9861(19960129)365:1<113::AID-CNE9>3.0.CO;2-6",
    "10.1175/1520-0469(1979)036&lt;0099:TRITAS&gt;2.0.CO;2.",
    "10.1049/ip\u2010gtd:20010431",
    "10.1000/e\u0301",
    "10.1000/\u00e9",
    "10.1000/" + "x" * 2040,
]
LOCALES = {
    "C": "locale_provider libc locale 'C'",
    "Turkish": "locale_provider icu icu_locale 'tr-TR' locale 'C'",
    "a collation without case": "locale_provider icu icu_locale 'und-u-ks-level1' locale 'C'",
}


@pytest.mark.parametrize("locale", LOCALES.values(), ids=LOCALES)
def test_the_key_is_the_same_under_every_locale(server: Server, locale: str) -> None:
    name = "locale_of_keys"
    statement = (
        f"create database {name} owner {DEPLOYER} template template0 encoding 'UTF8' {locale}"
    )
    with server.connect(autocommit=True) as superuser:
        try:
            superuser.execute(statement)
        except psycopg.errors.FeatureNotSupported as error:
            pytest.skip(f"this server has no such locale: {error.diag.message_primary}")
    try:
        deploy_with_psql(server, name)
        with server.connect(dbname=name) as connection:
            rows = connection.execute(
                "select citeledger.normalize_doi(g.doi) from unnest(%s::text[])"
                " with ordinality as g (doi, place) order by g.place",
                (ODD,),
            ).fetchall()
            assert [row[0] for row in rows] == [key_of(doi) for doi in ODD]
    finally:
        server.drop_database(name)


KEYS = (
    "select d.doi, d.doi_key from citeledger.documents as d"
    " union all select r.cited_doi, r.doi_key from citeledger.document_references as r"
    " order by 1, 2"
)


def test_dump_restore_and_reindex(db: Database, graph: Graph, tmp_path: Path) -> None:
    citing = graph.document("10.1000/citing")
    for doi in ODD[:-2]:
        graph.document(doi)
    graph.record(citing, *ODD)
    edges = graph.edges()
    assert len(edges) == len(ODD) - 2
    before = graph.connection.execute(KEYS).fetchall()
    server = db.server
    file = tmp_path / "dump"

    def run(program: str, *arguments: str, dbname: str) -> None:
        done = subprocess.run(
            [str(server.bin_dir / program), *arguments],
            check=False,
            capture_output=True,
            encoding="utf-8",
            env=server.environment("postgres", dbname),
        )
        assert done.returncode == 0, done.stderr

    run("pg_dump", "--format=custom", f"--file={file}", dbname=db.name)
    with server.database() as copy:
        server.restore(copy, str(file), user="postgres")
        with server.connect(dbname=copy, autocommit=True) as connection:
            assert connection.execute(KEYS).fetchall() == before
            connection.execute("reindex schema citeledger")
            connection.execute("set enable_seqscan = off")
            for doi, key in before:
                assert key == key_of(doi)
            count = connection.execute(
                "select count(*) from citeledger.documents as d"
                " where d.firm_id = %s and d.doi_key = any(%s)",
                (graph.world.firm_id, [key for _, key in before]),
            ).fetchone()
            assert count == (len(ODD) - 1,)
            with connection.transaction():
                set_context(connection, graph.world.firm_id)
                row = connection.execute("select citeledger.resolve_references()").fetchone()
            assert row is not None
            assert (row[0]["matched"], row[0]["rows_written"]) == (len(edges), 0)
            assert row[0]["rows_removed"] == 0


def test_vanished_with_the_triggers_off(graph: Graph) -> None:
    """The collector sweeps what a load without triggers left hanging in the air."""
    connection, world = graph.connection, graph.world
    citing, cited, other = (graph.document(f"10.1000/{n}") for n in ("a", "b", "c"))
    graph.record(citing, "10.1000/b", "10.1000/c")
    graph.record(cited, "10.1000/c")
    chunk, kept = graph.chunk(cited), graph.chunk(citing)
    rent, lease = graph.entity("Rent"), graph.entity("Lease")
    connection.execute(
        "insert into citeledger.kg_relation_types (firm_id, relation_type) values (%s, 'governs')",
        (world.firm_id,),
    )
    for entity, place in ((rent, chunk), (rent, kept), (lease, chunk)):
        connection.execute(
            "insert into citeledger.kg_entity_mentions (firm_id, entity_id, chunk_id)"
            " values (%s, %s, %s)",
            (world.firm_id, entity, place),
        )
    connection.execute(
        "insert into citeledger.kg_relationships (firm_id, source_entity_id, target_entity_id,"
        " relation_type, chunk_id, evidence) values (%s, %s, %s, 'governs', %s, 'q')",
        (world.firm_id, rent, lease, chunk),
    )
    with connection.transaction():
        connection.execute("set local session_replication_role = replica")
        connection.execute("delete from citeledger.documents where id = %s", (cited,))
        connection.execute("delete from citeledger.chunks where id = %s", (chunk,))
    with connection.transaction():
        set_context(connection, world.firm_id)
        problems = connection.execute("select table_name from citeledger.check_integrity()")
        assert ("document_citations",) in problems.fetchall()
        swept = {"entities": 1, "citations": 2, "mentions": 2, "relationships": 1}
        for dry_run in (True, False):
            row = connection.execute("select citeledger.graph_gc(%s)", (dry_run,)).fetchone()
            assert row is not None
            assert row[0] == swept | {"dry_run": dry_run}
        assert connection.execute("select * from citeledger.check_integrity()").fetchall() == []
        row = connection.execute("select citeledger.graph_gc(false)").fetchone()
        assert row is not None
        assert not any(row[0].values())
    edges = connection.execute(
        "select citing_document_id, cited_document_id from citeledger.document_citations"
    ).fetchall()
    assert edges == [(citing, other)]
    entities = connection.execute("select id from citeledger.kg_entities").fetchall()
    assert entities == [(rent,)]
