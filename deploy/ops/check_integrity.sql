-- Deploy citeledger:ops/check_integrity to pg
-- requires: tenancy/require_permission
-- requires: ledger/entry_values
-- requires: gate/recount
-- requires: gate/work_product_fiduciary_gate
-- requires: cite/document_pages
-- requires: graph/document_citations

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.check_integrity()
returns table (
  problem text,
  table_name text,
  row_key text
)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_turns uuid[];
begin
  perform citeledger.require_permission('matters:read');

  -- The turns whose ledger and verdict must follow their sources.
  v_turns := array(
    select m.id
    from citeledger.messages as m
    where m.firm_id = v_firm_id
      and m.role = 'assistant'
      and (
        m.finalized_at is not null
        or exists (
          select
          from citeledger.work_product_fiduciary_gate as g
          where g.firm_id = v_firm_id and g.message_id = m.id
        )
      )
  );

  return query
  with due as materialized (
    select * from citeledger_private.entry_values(v_firm_id, v_turns, null)
  ),
  entry as materialized (
    select
      e.*,
      coalesce(
        e.message_citation_id, e.message_caselaw_citation_id, e.message_tool_source_id
      ) as source_id
    from citeledger.citation_ledger_entry as e
    where e.firm_id = v_firm_id
  ),
  verdict as materialized (
    select g.*
    from citeledger.work_product_fiduciary_gate as g
    where g.firm_id = v_firm_id
  ),
  counted as materialized (
    select * from citeledger_private.recount(v_firm_id, v_turns)
  )
  select 'source_without_entry', d.source_table, d.source_id::text
  from due as d
  where not exists (
    select from entry as e where e.source_id = d.source_id and e.message_id = d.message_id
  )
  union all
  select 'entry_differs_from_source', 'citation_ledger_entry', e.id::text
  from entry as e
  join due as d on d.source_id = e.source_id and d.message_id = e.message_id
  where (
      e.chat_id, e.source_kind, e.verification_status, e.confidence, e.provider, e.retrieved_at
    ) is distinct from (
      d.chat_id, d.source_kind, d.verification_status, d.confidence, d.provider, d.retrieved_at
    )
  union all
  select 'verdict_differs_from_recount', 'work_product_fiduciary_gate', g.id::text
  from verdict as g
  left join counted as c on c.message_id = g.message_id
  where c.message_id is null
    or (
      g.pass_count, g.supported_count, g.fail_count, g.unrecognized_count, g.confidence
    ) is distinct from (
      c.pass_count, c.supported_count, c.fail_count, c.unrecognized_count, c.confidence
    )
  union all
  select 'finalized_turn_without_verdict', 'messages', m.id::text
  from citeledger.messages as m
  where m.firm_id = v_firm_id
    and m.role = 'assistant'
    and m.finalized_at is not null
    and not exists (select from verdict as g where g.message_id = m.id)
  union all
  select
    'page_block_gap', 'document_page_blocks', format('%s/%s', b.document_id, b.page_number)
  from citeledger.document_page_blocks as b
  where b.firm_id = v_firm_id
  group by b.document_id, b.page_number
  having max(b.block_index) <> count(*) - 1
  union all
  select
    'edge_without_endpoint', 'document_citations',
    format('%s/%s', e.citing_document_id, e.cited_document_id)
  from citeledger.document_citations as e
  where e.firm_id = v_firm_id
    and (
      select count(*)
      from citeledger.documents as d
      where d.firm_id = v_firm_id and d.id in (e.citing_document_id, e.cited_document_id)
    ) < 2
  order by 1, 2, 3;
end
$$;

comment on function citeledger.check_integrity() is
  'What is wrong in the context''s firm; no row on a healthy database. problem: '
  'source_without_entry (a source of a turn that is finalized or has a verdict), '
  'entry_differs_from_source, verdict_differs_from_recount, finalized_turn_without_verdict, '
  'page_block_gap, edge_without_endpoint. table_name: where the row is; row_key: its id, or '
  'document_id/page_number of a page, or the two document ids of an edge. It reads the whole firm '
  'in one snapshot and locks nothing. finalize_turn mends a turn that is named. Needs '
  'matters:read. For citeledger_reader. Errors: 42501 without the permission.';

revoke all on function citeledger.check_integrity() from public;
grant execute on function citeledger.check_integrity() to citeledger_reader;
grant execute on function citeledger.check_integrity() to citeledger_app;
grant execute on function citeledger.check_integrity() to citeledger_admin;

commit;
