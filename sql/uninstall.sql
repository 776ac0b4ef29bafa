-- citeledger 0.2.0: takes the whole schema away, made from sqitch.plan by tools/build_sql.py.
-- Do not edit. EVERY FIRM'S DATA GOES WITH IT.
--
-- psql -X -v ON_ERROR_STOP=1 -1 -f sql/uninstall.sql
--
-- A role stays, with a notice, while another database or another role depends on it.

savepoint citeledger_needs_one_transaction;
release savepoint citeledger_needs_one_transaction;

-- ops/version

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.version()
returns text
language sql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
  select '0.1.0'::text
$$;

comment on function citeledger.version() is
  'The version of the installed schema, MAJOR.MINOR.PATCH. A client refuses one that it does not '
  'know.';

revoke all on function citeledger.version() from public;
grant execute on function citeledger.version() to citeledger_reader;
grant execute on function citeledger.version() to citeledger_app;
grant execute on function citeledger.version() to citeledger_admin;

reset role;

-- ops/metadata_only_violations

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- As it was in 0.1.0.
create or replace function citeledger.metadata_only_violations()
returns table (
  table_name text,
  column_name text,
  reason text
)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
-- What is compared must not depend on how the session has names quoted.
set quote_all_identifiers = off
as $$
begin
  return query
  select found.table_name, found.column_name, found.reason
  from (
    select
      c.relname::text as table_name,
      a.attname::text as column_name,
      case
        when a.attname ~ '(content|text|quote|passage|excerpt|snippet|summary|abstract)'
          or a.attname ~ '(body|title|subject|payload|note|comment|reasoning|message)$'
          then 'its name speaks of content'
        when a.atttypid in (
            'uuid'::regtype, 'boolean'::regtype, 'smallint'::regtype, 'integer'::regtype,
            'bigint'::regtype, 'double precision'::regtype, 'numeric'::regtype,
            'date'::regtype, 'timestamptz'::regtype
          )
          then null
        when a.atttypid <> 'text'::regtype
          then format('its type %s could hold content', format_type(a.atttypid, a.atttypmod))
        when not exists (
            select
            from pg_constraint as k
            where k.conrelid = c.oid
              and k.contype = 'c'
              and k.convalidated
              and k.conkey = array[a.attnum]
              -- A label, a name, a SQLSTATE or a DOI, by exactly this check.
              and pg_get_expr(k.conbin, k.conrelid) in (
                format('(%I ~ %L::text)', a.attname, '^[a-z][a-z0-9_]{0,31}$'),
                format('(%I ~ %L::text)', a.attname, '^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$'),
                format('(%I ~ %L::text)', a.attname, '^[0-9A-Z]{5}$'),
                format('(citeledger.normalize_doi(%I) IS NOT NULL)', a.attname)
              )
          )
          then 'it is text, and no check makes it a label, a name, a SQLSTATE or a DOI'
      end as reason
    from pg_class as c
    join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where c.relnamespace = 'citeledger'::regnamespace
      and c.relname in (
        'citation_ledger_entry', 'citation_ledger_entry_revision', 'finalize_failure',
        'work_product_fiduciary_gate', 'document_citations'
      )
  ) as found
  where found.reason is not null
  order by found.table_name, found.column_name;
end
$$;

comment on function citeledger.metadata_only_violations() is
  'The columns of the metadata-only tables (ledger, revisions, gate, finalize failures, edges) '
  'that could hold content, with the reason: a name that speaks of content, a type that could hold '
  'it, or text that no validated CHECK makes a label, a name, a SQLSTATE or a DOI. No row on a '
  'healthy database. Source: the system catalogs. For citeledger_reader.';

revoke all on function citeledger.metadata_only_violations() from public;
grant execute on function citeledger.metadata_only_violations() to citeledger_reader;
grant execute on function citeledger.metadata_only_violations() to citeledger_app;
grant execute on function citeledger.metadata_only_violations() to citeledger_admin;

reset role;

-- graph/edge_doi_valid

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- Nothing forgets that a constraint was found to hold but dropping it. The DOIs stay as they are:
-- the lists have them as printed, and the next resolve_references gives them back to the edges.
alter table citeledger.document_citations drop constraint document_citations_cited_doi_is_short;

alter table citeledger.document_citations
  add constraint document_citations_cited_doi_is_short check (
    coalesce(
      octet_length(cited_doi) <= octet_length(citeledger.normalize_doi(cited_doi)) + 64, false
    )
  ) not valid;

comment on constraint document_citations_cited_doi_is_short on citeledger.document_citations is
  'At most 64 bytes longer than the key of the DOI: what surrounds a DOI is no content.';

reset role;

-- graph/edge_doi_check

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

alter table citeledger.document_citations drop constraint document_citations_cited_doi_is_short;

reset role;

-- graph/reconcile_edges

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- As it was in 0.1.0.
create or replace function citeledger_private.reconcile_edges(
  p_firm_id uuid,
  p_document_ids uuid[],
  p_keys text[],
  p_source text default null,
  p_dry_run boolean default false
)
returns jsonb
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_all boolean := p_document_ids is null and p_keys is null;
  v_holders uuid[];
  v_report jsonb;
begin
  -- Whose incoming edges are in question: whoever holds one of the keys, and the documents that may
  -- have held it until now. A list alone changes no incoming edge.
  v_holders := case
    when cardinality(p_keys) > 0 then
      p_document_ids || array(
        select d.id
        from citeledger.documents as d
        where d.firm_id = p_firm_id and d.doi_key = any(p_keys)
      )
  end;

  -- Materialized all along: right after a load there are no statistics to plan a join by.
  with judged as materialized (
    select * from citeledger_private.judged_references(p_firm_id, p_document_ids, p_keys)
  ),
  wanted as materialized (
    select distinct on (j.citing_document_id, j.cited_document_id)
      j.citing_document_id, j.cited_document_id, j.cited_doi, j.source
    from judged as j
    where j.fate = 'matched'
    order by j.citing_document_id, j.cited_document_id, j.source collate "C", j.list_position
  ),
  -- The edges in question: all, or those of the documents and those to whoever holds a key.
  present as materialized (
    select e.citing_document_id, e.cited_document_id, e.cited_doi, e.source
    from citeledger.document_citations as e
    where e.firm_id = p_firm_id and v_all
    union
    select e.citing_document_id, e.cited_document_id, e.cited_doi, e.source
    from citeledger.document_citations as e
    where e.firm_id = p_firm_id and e.citing_document_id = any(p_document_ids)
    union
    select e.citing_document_id, e.cited_document_id, e.cited_doi, e.source
    from citeledger.document_citations as e
    where e.firm_id = p_firm_id and e.cited_document_id = any(v_holders)
  ),
  -- Compared by a full join, which is never a loop in a loop, whatever the planner expects.
  compared as materialized (
    select
      w.citing_document_id, w.cited_document_id, w.cited_doi, w.source,
      p.citing_document_id as present_citing_id, p.cited_document_id as present_cited_id,
      p.cited_doi as present_doi, p.source as present_source
    from wanted as w
    full join present as p
      on p.citing_document_id = w.citing_document_id
      and p.cited_document_id = w.cited_document_id
  ),
  surplus as materialized (
    select c.present_citing_id as citing_document_id, c.present_cited_id as cited_document_id
    from compared as c
    where c.citing_document_id is null
  ),
  due as materialized (
    select c.citing_document_id, c.cited_document_id, c.cited_doi, c.source
    from compared as c
    where c.citing_document_id is not null
      and (c.cited_doi, c.source) is distinct from (c.present_doi, c.present_source)
  ),
  removed as (
    delete from citeledger.document_citations as e
    using surplus as s
    where not p_dry_run
      and e.firm_id = p_firm_id
      and e.citing_document_id = s.citing_document_id
      and e.cited_document_id = s.cited_document_id
    returning e.cited_document_id
  ),
  written as (
    insert into citeledger.document_citations (
      firm_id, citing_document_id, cited_document_id, cited_doi, source
    )
    select p_firm_id, d.citing_document_id, d.cited_document_id, d.cited_doi, d.source
    from due as d
    where not p_dry_run
    order by d.citing_document_id, d.cited_document_id
    on conflict (firm_id, citing_document_id, cited_document_id) do update
    set cited_doi = excluded.cited_doi, source = excluded.source
    returning cited_document_id
  )
  select jsonb_build_object(
    'documents_scanned', count(distinct j.citing_document_id),
    'references_found', count(*),
    'matched', count(*) filter (where j.fate = 'matched'),
    'unmatched', count(*) filter (where j.fate = 'unmatched'),
    'ambiguous', count(*) filter (where j.fate = 'ambiguous'),
    'self_citations_skipped', count(*) filter (where j.fate = 'self_citation'),
    -- In a dry run what would be written and removed.
    'rows_written', (select count(*) from due),
    'rows_removed', (select count(*) from surplus),
    'dry_run', p_dry_run
  )
  into v_report
  from judged as j
  where p_source is null or j.source = p_source;
  return v_report;
end
$$;

comment on function citeledger_private.reconcile_edges(uuid, uuid[], text[], text, boolean) is
  'Makes the edges of the documents p_document_ids, and those to whoever holds one of p_keys, '
  'agree with the lists; of the whole firm when both are null. Returns the report of '
  'resolve_references, its counts limited to the lists of p_source where that is given. The caller '
  'holds the lock of the graph.';

revoke all on function citeledger_private.reconcile_edges(uuid, uuid[], text[], text, boolean)
  from public;

reset role;

-- graph/edge_doi

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.edge_doi(text);

reset role;

-- ops/metadata_only_violations@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.metadata_only_violations();

reset role;

-- ops/check_integrity

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.check_integrity();

reset role;

-- ops/version@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.version();

reset role;

-- graph/graph_gc

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.graph_gc(boolean);

reset role;

-- graph/corpus_delete

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.corpus_delete(uuid[]);

reset role;

-- graph/graph_stage

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.graph_stage(text[], integer, boolean, jsonb, integer);
drop function citeledger_private.documents_in_scope(uuid, uuid[], jsonb);
drop function citeledger_private.scope_fault(jsonb);

reset role;

-- graph/kg_relationships

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.kg_relationships;

reset role;

-- graph/kg_entity_mentions

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.kg_entity_mentions;

reset role;

-- graph/kg_entities

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.kg_entities;

reset role;

-- graph/kg_relation_types

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.kg_relation_types;

reset role;

-- graph/chunks

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.chunks;

reset role;

-- graph/walk_citations

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.walk_citations(uuid[], integer, text);

reset role;

-- graph/get_citations

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.get_citations(uuid);
drop function citeledger_private.visible_documents(uuid, uuid[]);

reset role;

-- graph/document_triggers

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop trigger documents_left on citeledger.documents;
drop trigger documents_changed on citeledger.documents;
drop trigger documents_arrived on citeledger.documents;
drop trigger projects_before_delete on citeledger.projects;
drop trigger documents_before_delete on citeledger.documents;
drop trigger documents_before_update on citeledger.documents;
drop trigger documents_before_insert on citeledger.documents;
drop function citeledger_private.documents_left();
drop function citeledger_private.documents_changed();
drop function citeledger_private.documents_arrived();

reset role;

-- graph/record_crossref_work

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.record_crossref_work(uuid, jsonb);

reset role;

-- graph/record_references

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.record_references(uuid, text[], text);

reset role;

-- graph/resolve_references

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.resolve_references(boolean);

reset role;

-- graph/reconcile_edges@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.reconcile_edges(uuid, uuid[], text[], text, boolean);
drop function citeledger_private.judged_references(uuid, uuid[], text[]);
drop type citeledger_private.reference_fate;

reset role;

-- graph/document_citations

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.document_citations;

reset role;

-- graph/document_references

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.document_references;

reset role;

-- cite/suggest_spans

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.suggest_spans(uuid, jsonb, integer);
drop function citeledger_private.occurrences(text, text);

reset role;

-- cite/read_pages

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.read_pages(uuid, uuid, integer);

reset role;

-- cite/recheck_document

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.recheck_document(uuid);

reset role;

-- cite/cite_ledger_entry

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.cite_ledger_entry(uuid);

reset role;

-- cite/cite_many

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.cite_many(uuid, jsonb);

reset role;

-- cite/cite

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.cite(uuid, jsonb);
drop function citeledger_private.cite_resolution(text, citeledger_private.span, text);

reset role;

-- cite/record_in_matter

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.refuse_as_not_found();
drop function citeledger_private.holds_record(uuid, uuid, uuid);
drop function citeledger_private.visible_matter_number(uuid, uuid);

reset role;

-- cite/resolve_span

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.resolve_span(jsonb);
drop type citeledger.span_resolution;

reset role;

-- cite/resolve_spans

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.resolve_spans(uuid, citeledger_private.span[]);

reset role;

-- cite/deep_link

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.deep_link(text, uuid, integer, integer);

reset role;

-- cite/replace_document_pages

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.replace_document_pages(uuid, jsonb);
drop function citeledger_private.pages_fault(jsonb);

reset role;

-- cite/document_pages

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.document_page_blocks;
drop table citeledger.document_pages;

reset role;

-- cite/span

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.write_span(citeledger_private.span);
drop function citeledger_private.read_span(jsonb);
drop function citeledger_private.to_span(jsonb);
drop function citeledger_private.span_fault(jsonb);
drop function citeledger_private.is_blank(text);
drop function citeledger_private.is_whole_number(jsonb, integer);
drop type citeledger_private.span;

reset role;

-- ledger/ledger_trace

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.ledger_trace(uuid, uuid);

reset role;

-- gate/finalize_pending

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.finalize_pending(integer);

reset role;

-- gate/finalize_turns

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.finalize_turns(uuid[]);

reset role;

-- gate/finalize_turn

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.finalize_turn(uuid);

reset role;

-- gate/finalize_report

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.finalize_report(uuid, uuid);
drop function citeledger_private.count_entries(uuid, uuid);

reset role;

-- gate/source_triggers

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop trigger message_tool_sources_deleted on citeledger.message_tool_sources;
drop trigger message_tool_sources_inserted on citeledger.message_tool_sources;
drop trigger message_caselaw_citations_deleted on citeledger.message_caselaw_citations;
drop trigger message_caselaw_citations_updated on citeledger.message_caselaw_citations;
drop trigger message_caselaw_citations_inserted on citeledger.message_caselaw_citations;
drop trigger message_citations_deleted on citeledger.message_citations;
drop trigger message_citations_updated on citeledger.message_citations;
drop trigger message_citations_inserted on citeledger.message_citations;
drop function citeledger_private.source_deleted();
drop function citeledger_private.citation_updated();
drop function citeledger_private.source_inserted();

reset role;

-- gate/message_triggers

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop trigger messages_finalize_updated on citeledger.messages;
drop trigger messages_finalize_inserted on citeledger.messages;
drop trigger messages_seal on citeledger.messages;
drop function citeledger_private.finalize_updated();
drop function citeledger_private.finalize_inserted();
drop function citeledger_private.seal_message();

reset role;

-- gate/compute_and_record_gate

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.compute_and_record_gate(uuid);

reset role;

-- ledger/assemble_ledger_entries

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.assemble_ledger_entries(uuid);

reset role;

-- gate/settle

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.settle(uuid, uuid[], uuid[]);

reset role;

-- gate/settle_new

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.settle_new(uuid, uuid[]);

reset role;

-- gate/withdraw_gates

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.withdraw_gates(uuid, uuid[], text, text);
drop function citeledger_private.clear_failures(uuid, uuid[]);
drop function citeledger_private.log_failure(uuid, uuid[], text, text);

reset role;

-- gate/lock_turns

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.lock_turns(uuid, uuid[]);
drop function citeledger_private.expose_hidden_gates(uuid, uuid[]);

reset role;

-- gate/record_gates

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.record_gates(uuid, uuid[]);
drop function citeledger_private.warn_of_unrecognized(text);

reset role;

-- gate/recount

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.recount(uuid, uuid[]);

reset role;

-- gate/work_product_fiduciary_gate

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.work_product_fiduciary_gate;

reset role;

-- gate/verification_tier

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.verification_tier(text);

reset role;

-- ledger/assemble_turn

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.assemble_turn(uuid, uuid);

reset role;

-- ledger/assemble_rows

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.assemble_rows(uuid, uuid, uuid[]);

reset role;

-- ledger/assemble_set

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.assemble_set(uuid, uuid[], uuid[]);

reset role;

-- ledger/entry_values

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.entry_values(uuid, uuid[], uuid[]);

reset role;

-- ledger/finalize_failure

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.finalize_failure;

reset role;

-- ledger/keep_revisions

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop trigger citation_ledger_entry_keep_deleted on citeledger.citation_ledger_entry;
drop trigger citation_ledger_entry_keep_replaced on citeledger.citation_ledger_entry;
drop function citeledger_private.keep_deleted_values();
drop function citeledger_private.keep_replaced_values();

reset role;

-- ledger/citation_ledger_entry_revision

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.citation_ledger_entry_revision;

reset role;

-- ledger/citation_ledger_entry

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.citation_ledger_entry;

reset role;

-- ledger/message_tool_sources

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.message_tool_sources;

reset role;

-- ledger/message_caselaw_citations

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.message_caselaw_citations;

reset role;

-- ledger/message_citations

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.message_citations;

reset role;

-- ledger/messages

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.messages;

reset role;

-- tenancy/delete_firm

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.delete_firm(uuid);

reset role;

-- graph/lock_graph

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.before_ingest();
drop function citeledger_private.queue_ingest(uuid);
drop function citeledger_private.lock_graph(uuid);

reset role;

-- ledger/chats

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.chats;

reset role;

-- cite/documents

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.documents;

reset role;

-- graph/normalize_doi

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.normalize_doi(text);
drop function citeledger_private.percent_decode(text);

reset role;

-- tenancy/walls

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop policy projects_behind_a_wall on citeledger.projects;
drop function citeledger_private.is_behind_wall(uuid, uuid);

reset role;

-- tenancy/project_members

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.project_members;

reset role;

-- tenancy/projects

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.projects;

reset role;

-- tenancy/create_firm

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.create_firm(text);

reset role;

-- tenancy/firm_ids

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.firm_ids();

reset role;

-- tenancy/firms

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.firms;

reset role;

-- tenancy/acting_firm

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.leave_firm(text);
drop function citeledger_private.enter_firm(uuid);

reset role;

-- tenancy/set_context

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.set_context(uuid, uuid, text[]);

reset role;

-- tenancy/require_permission

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.require_permission(text);

reset role;

-- tenancy/has_permission

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.has_permission(text);

reset role;

-- tenancy/current_user_id

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.current_user_id();

reset role;

-- tenancy/current_firm_id

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.current_firm_id();

reset role;

-- ops/verify_object

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.verify_function(regprocedure, text);
drop function citeledger_private.verify_parts(regclass, text);
drop function citeledger_private.verify_relation(regclass, text);
drop function citeledger_private.verify_lines(text, text[], text, text);

reset role;

-- ops/describe_function

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.describe_function(regprocedure);

reset role;

-- ops/describe_relation

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.describe_relation(regclass);

reset role;

-- tenancy/schemas

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- Back to the built-in default, which removes the entries that would keep the role alive.
alter default privileges for role citeledger_owner grant execute on functions to public;
alter default privileges for role citeledger_owner grant usage on types to public;

drop schema citeledger_private;
drop schema citeledger;

reset role;

-- tenancy/roles

set local search_path = pg_catalog, pg_temp;

-- Another database of this cluster may still use a role, and people may be members of it: then the
-- role stays, and a notice says so. Dropping order: a role goes before the role it is a member of.
do $$
declare
  v_role text;
  v_reason text;
begin
  foreach v_role in array array[
    'citeledger_admin', 'citeledger_app', 'citeledger_reader', 'citeledger_owner'
  ] loop
    continue when not exists (select from pg_catalog.pg_roles as r where r.rolname = v_role);

    v_reason := null;
    if exists (
      select
      from pg_catalog.pg_shdepend as d
      where d.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass
        and d.refobjid = pg_catalog.to_regrole(v_role)
        and d.classid <> 'pg_catalog.pg_auth_members'::pg_catalog.regclass
    ) then
      v_reason := 'objects in this cluster depend on it';
    elsif exists (
      select
      from pg_catalog.pg_auth_members as m
      where m.roleid = pg_catalog.to_regrole(v_role)
        and m.member <> pg_catalog.to_regrole(pg_catalog.quote_ident(current_user))
    ) then
      v_reason := 'other roles are members of it';
    else
      begin
        execute pg_catalog.format('drop role %I', v_role);
      exception
        when insufficient_privilege then
          v_reason := 'the deployer may not drop it';
        when dependent_objects_still_exist then
          v_reason := 'objects in this cluster depend on it';
      end;
    end if;

    if v_reason is not null then
      raise notice 'role % stays: %', v_role, v_reason;
    end if;
  end loop;
end
$$;

reset role;
