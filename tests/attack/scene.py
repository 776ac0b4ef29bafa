"""What the attackers find: two firms full of rows, whose secrets each carry a word to look for.

The attacker acts for the first firm as nobody in particular. What it may see is not marked; what it
may not see carries FOREIGN (another firm's) or WALLED (behind a wall of its own firm).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

import psycopg
from psycopg import sql

from support.records import READ, Records, put_pages
from support.world import World, set_context

if TYPE_CHECKING:
    from conftest import Database

Connection = psycopg.Connection[Any]

FOREIGN = "zqforeign"
WALLED = "zqwalled"
# A foreign firm that fills most of a table, so that it shows in statistics.
MANY = 300


@dataclass(frozen=True, slots=True)
class Turns:
    """The turns of a firm."""

    matter: UUID
    chat: UUID
    finalized: UUID
    open: UUID
    citation: UUID
    caselaw: UUID
    tool: UUID
    open_citation: UUID
    open_caselaw: UUID
    open_tool: UUID

    @classmethod
    def make(cls, world: World, matter: UUID, document: UUID, mark: str) -> Turns:
        """Make a chat in a matter with a finalized turn and an open one, all of it marked."""
        chat = world.chat(matter, title=f"Chat {mark}")
        turns = [world.message(chat, content=f"Answer {n} {mark}") for n in (1, 2)]
        sources = [
            (
                world.citation(
                    t, source_document_id=document, source_page=1, source_text=f"Quote {mark}"
                ),
                world.caselaw(t, "paraphrase_judge", opinion_id=77, source_text=f"Held {mark}"),
                world.tool(t, label=f"Found {mark}", url=f"https://{mark or 'own'}.example/"),
            )
            for t in turns
        ]
        with world.connection.transaction():
            set_context(world.connection, world.firm_id)
            world.finalize(turns[0])
        return cls(matter, chat, turns[0], turns[1], *sources[0], *sources[1])


@dataclass(frozen=True, slots=True)
class Scene:
    """The database, the ids in it, and what it held before anybody attacked."""

    database: Database
    superuser: Connection
    records: Records
    own: Turns
    walled: Turns
    foreign: Turns
    foreign_firm: UUID
    foreign_records: Records
    graph: dict[str, UUID]
    tables: tuple[str, ...]
    before: dict[str, tuple[int, str]]

    @property
    def firm_id(self) -> UUID:
        """The attacker's firm."""
        return self.records.firm_id

    def enter(
        self, connection: Connection, firm_id: UUID | None = None, person: UUID | None = None
    ) -> None:
        """Set the context of the attacker, or of somebody else."""
        # No name is left to the path, which the attacker may have bent.
        connection.execute(
            "select citeledger.set_context("
            "%s::pg_catalog.uuid, %s::pg_catalog.uuid, %s::pg_catalog._text)",
            (firm_id or self.firm_id, person, list(READ)),
        )

    def held(self) -> dict[str, tuple[int, str]]:
        """Return for each table how many rows it has, and a digest of all that they say."""
        return {t: held(self.superuser, t) for t in self.tables}

    def wrong(self) -> list[Any]:
        """Return what check_integrity finds in any firm."""
        found = []
        for (firm,) in self.superuser.execute("select id from citeledger.firms").fetchall():
            with self.superuser.transaction():
                set_context(self.superuser, firm)
                found += self.superuser.execute(
                    "select * from citeledger.check_integrity()"
                ).fetchall()
        return found

    @classmethod
    def make(cls, database: Database, superuser: Connection) -> Scene:
        """Make it all, on a connection of the superuser in autocommit mode."""
        records = Records.make(superuser)
        world = records.world
        theirs = Records.make(superuser)
        other = theirs.world
        hidden = world.document(records.walled, title=f"File {WALLED}", doi="10.5555/walled")
        put_pages(superuser, world.firm_id, hidden, {1: [f"Text {WALLED}"]})
        secret = other.document(theirs.matter, title=f"File {FOREIGN}", doi="10.5555/foreign")
        put_pages(superuser, other.firm_id, secret, {1: [f"Text {FOREIGN}"]})
        walled = Turns.make(world, records.walled, hidden, WALLED)
        foreign = Turns.make(other, theirs.matter, secret, FOREIGN)
        superuser.execute(
            "insert into citeledger.message_caselaw_citations"
            " (firm_id, message_id, opinion_id, cluster_id, source_text)"
            " select %s, %s, 424242, 434343, %s from generate_series(1, %s)",
            (other.firm_id, foreign.open, FOREIGN, MANY),
        )
        scene = cls(
            database,
            superuser,
            records,
            Turns.make(world, records.matter, records.record, ""),
            walled,
            foreign,
            other.firm_id,
            theirs,
            _graph(superuser, records, hidden) | {"secret": secret, "hidden": hidden},
            tuple(
                t
                for (t,) in superuser.execute(
                    "select c.relname from pg_class as c"
                    " where c.relnamespace = 'citeledger'::regnamespace and c.relkind = 'r'"
                    " order by c.relname"
                )
            ),
            {},
        )
        _graph(superuser, theirs, secret, FOREIGN)
        for login in ("t_app", "t_reader"):
            # More than a DBA has to give: a schema of its own, to hide things in.
            superuser.execute(f"create schema lair_{login} authorization {login}")
        superuser.execute("analyze")
        scene.before.update(scene.held())
        assert scene.wrong() == []
        return scene


def held(connection: Connection, table: str) -> tuple[int, str]:
    """Return how many rows of a table a connection sees, and a digest of them."""
    row = connection.execute(
        sql.SQL(
            "select count(*), coalesce(md5(string_agg(md5(t::text), '' order by md5(t::text))), '')"
            " from citeledger.{} as t"
        ).format(sql.Identifier(table))
    ).fetchone()
    assert row is not None
    return int(row[0]), str(row[1])


def _graph(
    superuser: Connection, records: Records, hidden: UUID, mark: str = WALLED
) -> dict[str, UUID]:
    """Add three papers that cite each other and a hidden one, and concepts in all of them."""
    world = records.world
    paper = {n: world.document(title=f"Paper {n}", doi=f"10.5555/{n}") for n in "abc"}
    with superuser.transaction():
        set_context(superuser, world.firm_id)
        for n, dois in {"a": ["10.5555/b", f"10.5555/{mark[2:]}"], "b": ["10.5555/c"]}.items():
            superuser.execute(
                "select citeledger.record_references(%s, %s::text[])", (paper[n], dois)
            )
        superuser.execute(
            "select citeledger.record_references(%s, %s::text[])", (hidden, ["10.5555/a"])
        )
    chunk = {
        "open": world._insert("chunks", {"document_id": paper["a"]}, _first("An open chunk")),
        "dark": world._insert("chunks", {"document_id": hidden}, _first(f"A chunk {mark}")),
    }
    rent = world._insert("kg_entities", {"name": "Rent", "entity_type": "concept"}, {})
    buried = world._insert("kg_entities", {"name": f"Buried {mark}", "entity_type": "concept"}, {})
    superuser.execute(
        "insert into citeledger.kg_relation_types (firm_id, relation_type) values (%s, 'governs')",
        (world.firm_id,),
    )
    for entity, where in ((rent, "open"), (buried, "dark")):
        superuser.execute(
            "insert into citeledger.kg_entity_mentions (firm_id, entity_id, chunk_id)"
            " values (%s, %s, %s)",
            (world.firm_id, entity, chunk[where]),
        )
    world._insert(
        "kg_relationships",
        {"source_entity_id": rent, "target_entity_id": buried, "relation_type": "governs"},
        {"chunk_id": chunk["dark"], "evidence": f"Said {mark}"},
    )
    return paper | chunk | {"rent": rent, "buried": buried}


def _first(content: str) -> dict[str, Any]:
    return {"chunk_index": 0, "content": content}
