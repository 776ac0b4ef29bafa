"""An installation of the first release, with data of every table in it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import sql

from support.deploy import REPOSITORY, checked, sqitch
from support.server import DEPLOYER, Server
from support.world import World, set_context

OLD = "0.1.0"
NEW = "0.2.0"
# A resolver's address with more behind the DOI than a DOI has room for.
LONG_DOI = "https://doi.org/10.1000/cited?" + "utm_source=a-long-tail&" * 8
QUOTE = "ninety days"

GRAPH = (
    "insert into citeledger.chunks (document_id, chunk_index, content)"
    " values (%(document)s, 0, 'The rent is due.')",
    "insert into citeledger.kg_relation_types (relation_type) values ('owes')",
    "insert into citeledger.kg_entities (name, entity_type)"
    " values ('Tenant', 'party'), ('Rent', 'concept')",
    "insert into citeledger.kg_entity_mentions (entity_id, chunk_id)"
    " select e.id, c.id from citeledger.kg_entities as e, citeledger.chunks as c"
    " where c.document_id = %(document)s and e.firm_id = c.firm_id",
    "insert into citeledger.kg_relationships"
    " (source_entity_id, target_entity_id, relation_type, chunk_id, evidence)"
    " select a.id, b.id, 'owes', c.id, 'due'"
    " from citeledger.kg_entities as a, citeledger.kg_entities as b, citeledger.chunks as c"
    " where a.name = 'Tenant' and b.name = 'Rent' and c.document_id = %(document)s"
    " and a.firm_id = c.firm_id and b.firm_id = c.firm_id",
)


@dataclass(frozen=True, slots=True)
class Installation:
    """A database with a release of the package, and what is in it."""

    server: Server
    name: str
    firms: tuple[UUID, ...]

    def connect(self, user: str = "postgres", **kwargs: Any) -> psycopg.Connection[Any]:
        """Open a connection; the caller closes it."""
        return self.server.connect(user, self.name, **kwargs)


def fill(superuser: psycopg.Connection[Any]) -> tuple[UUID, ...]:
    """Make two firms with rows in every table, as the package's own functions write them."""
    firms = []
    for name in ("Quill & Partners", "Another firm"):
        world = World.make(superuser, name)
        matter = world.project()
        world.member(world.project(), UUID("aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"))
        citing = world.document(matter, title="Citing", doi="10.1000/citing")
        world.document(title="Cited", doi="10.1000/cited")
        world.document(title="Second", doi="10.1000/second")
        with superuser.transaction():
            set_context(superuser, world.firm_id)
            superuser.execute(
                "select citeledger.replace_document_pages(%s, %s::jsonb)",
                (
                    citing,
                    json.dumps([{"page_number": 1, "blocks": ["Lease", f"Notice of {QUOTE}."]}]),
                ),
            )
            superuser.execute(
                "select citeledger.record_references(%s, %s)",
                (citing, [LONG_DOI, "doi:10.1000/second", "10.1000/absent", "no DOI"]),
            )
            for statement in GRAPH:
                superuser.execute(statement.encode(), {"document": citing})
        for number in range(3):
            message = world.turn(matter)
            world.citation(message, None if number else "exact_match", source_document_id=citing)
            world.caselaw(message)
            world.tool(message)
            with superuser.transaction():
                set_context(superuser, world.firm_id)
                superuser.execute("select citeledger.finalize_turn(%s)", (message,))
            with superuser.transaction():
                set_context(superuser, world.firm_id)
                superuser.execute(
                    "update citeledger.message_citations set verified = true,"
                    " verification_method = 'exact_match' where message_id = %s",
                    (message,),
                )
        firms.append(world.firm_id)
    return tuple(firms)


def release_sql(release: str) -> str:
    """Return the installation file as a release had it, made from the plan."""
    return checked(
        subprocess.run(
            [sys.executable, "tools/build_sql.py", "--release", release],
            check=False,
            cwd=REPOSITORY,
            capture_output=True,
            encoding="utf-8",
        )
    ).stdout


def with_sqitch(server: Server, name: str, _folder: Path) -> None:
    checked(sqitch(server, name, "deploy", "--verify", "--to-change", f"@v{OLD}"))


def with_one_file(server: Server, name: str, folder: Path) -> None:
    file = folder / "citeledger.sql"
    file.write_text(release_sql(OLD), encoding="utf-8")
    checked(server.psql("-q", "-1", "-f", str(file), user=DEPLOYER, dbname=name))


@pytest.fixture(scope="session")
def templates(
    server: Server, deployed: object, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Installation]]:
    """Install the first release in each way and fill it; ``deployed`` has given the roles."""
    folder = tmp_path_factory.mktemp("release")
    with ExitStack() as databases:
        made = {}
        for way, install in (("sqitch", with_sqitch), ("one file", with_one_file)):
            name = databases.enter_context(server.database())
            install(server, name, folder)
            with server.connect(dbname=name, autocommit=True) as superuser:
                made[way] = Installation(server, name, fill(superuser))
        yield made


@pytest.fixture
def installed(templates: dict[str, Installation]) -> Iterator[Callable[[str], Installation]]:
    """Give a maker of copies of the installations."""
    with ExitStack() as copies:

        def make(way: str) -> Installation:
            origin = templates[way]
            name = copies.enter_context(origin.server.database(template=origin.name))
            return Installation(origin.server, name, origin.firms)

        yield make


def upgrade(installation: Installation, way: str) -> subprocess.CompletedProcess[str]:
    """Bring an installation to the newest version, as its DBA would."""
    if way == "sqitch":
        return sqitch(installation.server, installation.name, "deploy", "--verify")
    return installation.server.psql(
        "-q",
        "-f",
        str(REPOSITORY / f"sql/upgrade--{OLD}--{NEW}.sql"),
        user=DEPLOYER,
        dbname=installation.name,
    )


def rows(installation: Installation) -> dict[str, list[str]]:
    """Return every row of every table as text."""
    with installation.connect() as superuser:
        tables = superuser.execute(
            "select c.oid::regclass::text from pg_catalog.pg_class as c"
            " where c.relnamespace = 'citeledger'::regnamespace and c.relkind = 'r'"
        ).fetchall()
        return {
            table: [
                row[0]
                for row in superuser.execute(
                    sql.SQL("select t::text from {} as t order by 1").format(
                        sql.SQL(table)  # a regclass is quoted already
                    )
                )
            ]
            for (table,) in tables
        }
