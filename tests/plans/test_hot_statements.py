"""Every statement of the hot functions finds its rows by the index that is there for it.

The plans are generic, of tables that are loaded and analyzed, and those that really ran.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from .conftest import Loaded

TURN = (
    "select m.id from citeledger.messages as m where m.firm_id = %(firm)s and m.role = 'assistant'"
)
OPEN = f"{TURN} and m.finalized_at is null order by m.id limit 1"
FINALIZED = f"{TURN} and m.finalized_at is not null order by m.id limit 1"
DOCUMENT = "select d.id from citeledger.documents as d where d.firm_id = %(firm)s"
RECORD = f"{DOCUMENT} and d.title = '7'"
MATTER = "select p.id from citeledger.projects as p where p.firm_id = %(firm)s"
SPAN = (
    "select jsonb_build_object('document_id', d.id, 'page_number', 2, 'block_index', 3,"
    " 'char_start', 0, 'char_end', 12, 'quote', 'Rent is due.')"
    " from citeledger.documents as d where d.firm_id = %(firm)s and d.title = '7'"
)
IN_PAGE = f"select (s.span - 'block_index')::text from ({SPAN}) as s (span)"
IN_NO_BLOCK = f"""select (s.span || '{{"block_index": 9}}')::text from ({SPAN}) as s (span)"""

SOURCES = {
    "message_citations_message_source_key",
    "message_caselaw_citations_message_source_key",
    "message_tool_sources_message_source_key",
}
LEDGER = {"citation_ledger_entry_message_idx", "work_product_fiduciary_gate_message_key"}
PAGE = {"projects_pkey", "documents_pkey", "document_page_blocks_pkey"}


@dataclass(frozen=True, slots=True)
class Hot:
    """A call: who makes it, with which arguments (queries for them), and what it must use."""

    role: str
    statement: str
    arguments: tuple[str, ...]
    indexes: set[str]


HOT = {
    "finalize_turn": Hot(
        "t_app",
        "select citeledger.finalize_turn(%s)",
        (OPEN,),
        # Its verdict is written and not looked for.
        {"messages_pkey", "chats_pkey", *SOURCES, "citation_ledger_entry_message_idx"},
    ),
    "finalize_turn, once more": Hot(
        "t_app",
        "select citeledger.finalize_turn(%s)",
        (FINALIZED,),
        {"messages_pkey", "chats_pkey", *SOURCES, *LEDGER},
    ),
    "finalize_turns": Hot(
        "t_app",
        "select citeledger.finalize_turns(array[%s, %s])",
        (OPEN, OPEN + " offset 1"),
        {"messages_pkey", "chats_pkey", *SOURCES, *LEDGER},
    ),
    "assemble_ledger_entries": Hot(
        "t_app",
        "select citeledger.assemble_ledger_entries(%s)",
        (OPEN,),
        {"messages_pkey", "chats_pkey", *SOURCES},
    ),
    "compute_and_record_gate": Hot(
        "t_app", "select citeledger.compute_and_record_gate(%s)", (FINALIZED,), LEDGER
    ),
    "a late source": Hot(
        "t_app",
        "insert into citeledger.message_citations (message_id, source_text) values (%s, 'Rent')",
        (FINALIZED,),
        {"messages_pkey", "message_citations_message_source_key", *LEDGER},
    ),
    "a late judge": Hot(
        "t_app",
        "update citeledger.message_citations as s set verified = false where s.id = %s",
        (
            "select s.id from citeledger.message_citations as s"
            f" where s.firm_id = %(firm)s and s.message_id = ({FINALIZED}) limit 1",
        ),
        {
            "message_citations_pkey", "message_citations_message_source_key",
            "citation_ledger_entry_citation_key", *LEDGER,
        },
    ),
    "ledger_trace": Hot(
        "t_reader",
        "select citeledger.ledger_trace(%s)",
        (f"select m.chat_id from citeledger.messages as m where m.id = ({FINALIZED})",),
        {
            "chats_pkey", "projects_pkey", "citation_ledger_entry_chat_idx", "messages_pkey",
            "work_product_fiduciary_gate_chat_idx",
        },
    ),
    "cite": Hot(
        "t_reader",
        "select citeledger.cite(%s, %s)",
        (f"{MATTER} and p.matter_number = '7'", f"select s.span::text from ({SPAN}) as s (span)"),
        PAGE,
    ),
    "cite_many": Hot(
        "t_reader",
        "select citeledger.cite_many(%s, %s)",
        (
            f"{MATTER} and p.matter_number = '7'",
            f"select jsonb_build_array(s.span, s.span)::text from ({SPAN}) as s (span)",
        ),
        PAGE,
    ),
    "cite, in a page": Hot(
        "t_reader",
        "select citeledger.cite(%s, %s)",
        (f"{MATTER} and p.matter_number = '7'", IN_PAGE),
        {*PAGE, "document_pages_pkey"},
    ),
    "cite_many, in a page and in no block": Hot(
        "t_reader",
        "select citeledger.cite_many(%s, jsonb_build_array(%s::jsonb, %s::jsonb))",
        (f"{MATTER} and p.matter_number = '7'", IN_PAGE, IN_NO_BLOCK),
        {*PAGE, "document_pages_pkey"},
    ),
    "resolve_span": Hot(
        "t_app",
        "select citeledger.resolve_span(%s)",
        (f"select s.span::text from ({SPAN}) as s (span)",),
        {"document_page_blocks_pkey"},
    ),
    "read_pages": Hot(
        "t_reader",
        "select citeledger.read_pages(%s, %s, 2)",
        (f"{MATTER} and p.matter_number = '7'", RECORD),
        PAGE,
    ),
    "recheck_document": Hot(
        "t_app",
        "select * from citeledger.recheck_document(%s)",
        (RECORD,),
        {"message_citations_document_idx"},
    ),
    "get_citations": Hot(
        "t_reader",
        "select citeledger.get_citations(%s)",
        (RECORD,),
        {
            "documents_pkey", "document_references_list_key", "document_citations_pkey",
            "document_citations_cited_idx",
        },
    ),
    "walk_citations": Hot(
        "t_reader",
        "select * from citeledger.walk_citations(array[%s]::uuid[], 2)",
        (RECORD,),
        {
            "documents_pkey", "document_citations_pkey", "document_citations_cited_idx",
            "project_members_pkey", "documents_withdrawn_idx", "documents_in_matters_idx",
            "projects_pkey",
        },
    ),
    "record_references": Hot(
        "t_app",
        "select citeledger.record_references(%s, array['10.1000/3', '10.1000/absent'])",
        (RECORD,),
        {
            "documents_pkey", "documents_doi_key_idx", "document_references_list_key",
            "document_citations_pkey",
        },
    ),
    "a document that arrives": Hot(
        "t_app",
        "insert into citeledger.documents (title, doi) values ('New', '10.1000/2002')",
        (),
        {"documents_doi_key_idx", "document_references_doi_key_idx"},
    ),
    "a document that no list names": Hot(
        "t_app",
        "insert into citeledger.documents (title, doi) values ('New', '10.1000/2003')",
        (),
        {"document_references_doi_key_idx"},
    ),
    "graph_stage": Hot(
        "t_reader",
        "select * from citeledger.graph_stage(array['Concept 7'], 2, true)",
        (),
        {
            "kg_entities_name_key", "kg_entity_mentions_pkey", "chunks_pkey", "documents_pkey",
            "kg_relationships_source_entity_idx", "kg_relationships_target_entity_idx",
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("call", HOT)
def test_a_hot_call_uses_its_indexes(loaded: Loaded, call: str) -> None:
    hot = HOT[call]
    arguments = [loaded.one(query) for query in hot.arguments]
    plans = loaded.plans_of(hot.role, hot.statement, *arguments)
    # The call itself, and what it runs.
    assert len(plans.heard) > 1
    assert plans.read_whole == set(), call
    assert hot.indexes <= plans.indexes, hot.indexes - plans.indexes


def test_a_trace_asks_for_the_wall_of_its_own_matter_once(loaded: Loaded) -> None:
    """Not again for each quote from a document of that matter: by the policy, and by name."""
    chat = loaded.one(
        "select c.id from citeledger.chats as c"
        " join citeledger.projects as p on p.id = c.project_id"
        " where c.firm_id = %(firm)s and p.matter_number = '7'"
    )
    own = loaded.one(
        "select count(*) from citeledger.chats as c"
        " join citeledger.messages as m on m.chat_id = c.id"
        " join citeledger.message_citations as k on k.message_id = m.id"
        " join citeledger.documents as d on d.id = k.source_document_id"
        f" where c.firm_id = %(firm)s and c.id = '{chat}' and d.project_id = c.project_id"
    )
    plans = loaded.plans_of("t_reader", "select citeledger.ledger_trace(%s)", chat)
    asked = [statement for statement, _ in plans.heard if "project_members" in statement]
    assert (own, len(asked)) == (5, 2)
