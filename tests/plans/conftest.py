"""One database for all plans: loaded, analyzed, with a second firm in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

import psycopg
import pytest

from support.world import World, set_context

from .explained import SETTINGS, Plans, explaining

if TYPE_CHECKING:
    from conftest import Database
    from support.server import Copies

TURNS = 500
DOCUMENTS = 2_000
# Of the firm that came after the statistics were taken.
NEW_TURNS = 200
NEW_DOCUMENTS = 400

LEDGER = """
insert into citeledger.projects (firm_id, matter_number, name)
select %(firm)s, n::text, 'A matter' from generate_series(1, %(turns)s) as n;
insert into citeledger.chats (firm_id, project_id)
select %(firm)s, p.id from citeledger.projects as p where p.firm_id = %(firm)s;
insert into citeledger.messages (firm_id, chat_id, role)
select %(firm)s, c.id, 'assistant' from citeledger.chats as c where c.firm_id = %(firm)s;
insert into citeledger.documents (firm_id, project_id, title, doi)
select %(firm)s, p.id, n::text, '10.1000/' || n
from generate_series(1, %(documents)s) as n
left join citeledger.projects as p
  on p.firm_id = %(firm)s and p.matter_number = (n %% 50)::text;
insert into citeledger.message_citations (
  firm_id, message_id, source_document_id, source_page, source_text,
  verified, verification_method, verification_confidence
)
select %(firm)s, m.id, d.id, 1, 'Rent is due.', true, 'exact_match', 1
from citeledger.messages as m
join citeledger.chats as c on c.firm_id = m.firm_id and c.id = m.chat_id
join citeledger.projects as p on p.firm_id = m.firm_id and p.id = c.project_id
join citeledger.documents as d on d.firm_id = m.firm_id and d.title = p.matter_number
cross join generate_series(1, 5)
where m.firm_id = %(firm)s;
insert into citeledger.message_caselaw_citations (
  firm_id, message_id, opinion_id, cluster_id, source_text
)
select %(firm)s, m.id, n, n, 'Rent was due.'
from citeledger.messages as m, generate_series(1, 3) as n where m.firm_id = %(firm)s;
insert into citeledger.message_tool_sources (firm_id, message_id, source_kind, label)
select %(firm)s, m.id, 'web_search', 'A result'
from citeledger.messages as m, generate_series(1, 2) where m.firm_id = %(firm)s;
insert into citeledger.document_pages (firm_id, document_id, page_number)
select %(firm)s, d.id, n from citeledger.documents as d, generate_series(1, 3) as n
where d.firm_id = %(firm)s and d.title::integer <= 500;
insert into citeledger.document_page_blocks (
  firm_id, document_id, page_number, block_index, content
)
select %(firm)s, p.document_id, p.page_number, n, 'Rent is due. Always.'
from citeledger.document_pages as p, generate_series(0, 4) as n where p.firm_id = %(firm)s
"""
# A table of a few rows would rightly be read whole: the second firm's turns failed once, each of
# its matters has a wall, and it is not the only other firm.
OTHERS = """
insert into citeledger.firms (name) select n::text from generate_series(1, 500) as n;
insert into citeledger.project_members (firm_id, project_id, user_id)
select p.firm_id, p.id, gen_random_uuid()
from citeledger.projects as p where p.firm_id = %(firm)s;
insert into citeledger.finalize_failure (firm_id, message_id, stage, sqlstate)
select m.firm_id, m.id, 'stage_' || n, '57014'
from citeledger.messages as m, generate_series(1, 4) as n where m.firm_id = %(firm)s
"""
ALONE = """
do $$
declare
  v_table regclass;
begin
  for v_table in
    select c.oid from pg_class as c
    where c.relkind = 'r' and c.relnamespace = 'citeledger'::regnamespace
  loop
    execute format('alter table %s set (autovacuum_enabled = off)', v_table);
  end loop;
end
$$
"""
# So many messages and pages that a few of them are cheaper found by their key however the
# statistics fall: of a thousand, the planner rightly reads a table whole that is just made compact.
MORE = """
insert into citeledger.messages (firm_id, chat_id, role)
select c.firm_id, c.id, 'user' from citeledger.chats as c, generate_series(1, 19);
insert into citeledger.document_pages (firm_id, document_id, page_number)
select p.firm_id, p.document_id, n
from citeledger.document_pages as p, generate_series(4, 20) as n where p.page_number = 1
"""
# The first firm has a wall too, around none of its documents, and withdrew one that nothing cites.
WALL = """
insert into citeledger.projects (firm_id, matter_number, name) values (%(firm)s, 'W', 'Walled');
insert into citeledger.project_members (firm_id, project_id, user_id)
select p.firm_id, p.id, gen_random_uuid()
from citeledger.projects as p where p.firm_id = %(firm)s and p.matter_number = 'W';
insert into citeledger.documents (firm_id, title, deleted_at)
values (%(firm)s, 'Withdrawn', now())
"""
# The first turns stay open; what is finalized is finalized in one go.
FINALIZE = """
select citeledger.finalize_turns(
  array(
    select m.id from citeledger.messages as m where m.firm_id = %(firm)s order by m.id offset 20
  )
)
"""
REFERENCES = """
insert into citeledger.document_references (firm_id, document_id, position, cited_doi, source)
select %(firm)s, d.id, n, '10.1000/' || (d.title::integer * 3 + n * n), 'crossref'
from citeledger.documents as d, generate_series(1, 4) as n
where d.firm_id = %(firm)s and d.title::integer <= %(documents)s / 2
"""
CONCEPTS = """
insert into citeledger.kg_entities (firm_id, name, entity_type)
select %(firm)s, 'Concept ' || n, 'concept' from generate_series(1, 1000) as n;
insert into citeledger.chunks (firm_id, document_id, chunk_index, content)
select %(firm)s, d.id, n, 'Rent is due.'
from citeledger.documents as d, generate_series(0, 1) as n where d.firm_id = %(firm)s;
insert into citeledger.kg_entity_mentions (firm_id, entity_id, chunk_id)
select %(firm)s, e.id, c.id
from (select e.id, row_number() over () as n from citeledger.kg_entities as e
  where e.firm_id = %(firm)s) as e
join (select c.id, row_number() over () %% 1000 + 1 as n from citeledger.chunks as c
  where c.firm_id = %(firm)s) as c on c.n = e.n;
insert into citeledger.kg_relation_types (firm_id, relation_type) values (%(firm)s, 'requires');
insert into citeledger.kg_relationships (
  firm_id, source_entity_id, target_entity_id, relation_type, chunk_id, evidence, confidence
)
select %(firm)s, a.id, b.id, 'requires', c.id, 'Rent is due.', 1
from (select e.id, row_number() over (order by e.id) as n from citeledger.kg_entities as e
  where e.firm_id = %(firm)s) as a
join (select e.id, row_number() over (order by e.id) as n from citeledger.kg_entities as e
  where e.firm_id = %(firm)s) as b on b.n = a.n %% 1000 + 1
join lateral (select m.chunk_id as id from citeledger.kg_entity_mentions as m
  where m.firm_id = %(firm)s and m.entity_id = a.id limit 1) as c on true
"""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A superuser's connection to the loaded database, in a transaction of the firm."""

    connection: psycopg.Connection[Any]
    firm_id: UUID
    new_firm_id: UUID

    def one(self, query: str, *, new: bool = False) -> Any:
        """Return the first value of a query about the firm, seen by the superuser."""
        self.connection.execute("reset role")
        firm_id = self.new_firm_id if new else self.firm_id
        row = self.connection.execute(query, {"firm": firm_id}).fetchone()
        assert row is not None, query
        return row[0]

    def plans_of(
        self, role: str, statement: str, *parameters: object, new: bool = False, mode: str = ""
    ) -> Plans:
        """Return the plans of a statement that a role runs, and undo what it did.

        In the context of the new firm, if asked for, and with another plan_cache_mode.
        """
        with self.connection.transaction(force_rollback=True):
            if mode:
                self.connection.execute(f"set local plan_cache_mode = {mode}")
            set_context(self.connection, self.new_firm_id if new else self.firm_id)
            self.connection.execute(f"set local role {role}")
            with explaining(self.connection) as plans:
                self.connection.execute(statement, parameters)
        return plans


def _load(connection: psycopg.Connection[Any], firm: UUID, turns: int, documents: int) -> None:
    """Load a firm: what is its own as rows; the ledger and the edges by the functions."""
    values = {"firm": firm, "turns": turns, "documents": documents}
    with connection.transaction():
        set_context(connection, firm)
        connection.execute("set local session_replication_role = replica")
        for part in (*LEDGER.split(";\n"), REFERENCES, *CONCEPTS.split(";\n")):
            connection.execute(part, values)
        connection.execute("set local session_replication_role = origin")
        connection.execute(FINALIZE, values)
        connection.execute("select citeledger.resolve_references(false)")


@pytest.fixture(scope="session")
def loaded(deployed: Database, copies: Copies) -> Iterator[Loaded]:
    """Give the loaded database."""
    name = copies.take()
    with deployed.server.connect(dbname=name, autocommit=True) as connection:
        # What the statistics say must not depend on when autovacuum comes by.
        connection.execute(ALONE)
        firms = [World.make(connection, title).firm_id for title in ("A", "B")]
        for firm in firms:
            _load(connection, firm, TURNS, DOCUMENTS)
        for part in OTHERS.split(";\n"):
            connection.execute(part, {"firm": firms[1]})
        for part in WALL.split(";\n"):
            connection.execute(part, {"firm": firms[0]})
        connection.execute(MORE)
        connection.execute("vacuum (analyze)")
        new = World.make(connection, "C").firm_id
        _load(connection, new, NEW_TURNS, NEW_DOCUMENTS)
        connection.execute("load 'auto_explain'")
        for setting, value in SETTINGS.items():
            connection.execute("select set_config(%s, %s, false)", (setting, value))
        yield Loaded(connection, firms[0], new)
    copies.give_back(name)
