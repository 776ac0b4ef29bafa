-- Deploy citeledger:cite/recheck_document to pg
-- requires: cite/resolve_spans
-- requires: ledger/message_citations

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.recheck_document(
  p_document_id uuid
)
returns table (
  message_citation_id uuid,
  message_id uuid,
  verified boolean,
  reason text
)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_citation_ids uuid[];
  v_spans citeledger_private.span[];
begin
  if not exists (
    select
    from citeledger.documents as d
    where d.firm_id = v_firm_id and d.id = p_document_id
  ) then
    raise exception using
      errcode = 'P0002',
      message = 'document not found',
      detail = 'No document of this id is in the firm of the context.',
      hint = 'Check the id and the firm of the context.';
  end if;

  select
    array_agg(k.id order by k.id),
    array_agg(
      row(
        k.source_document_id, k.source_page, k.source_block,
        k.source_offset_start, k.source_offset_end, k.source_text
      )::citeledger_private.span
      order by k.id
    )
  into v_citation_ids, v_spans
  from citeledger.message_citations as k
  where k.firm_id = v_firm_id
    and k.source_document_id = p_document_id
    and k.source_page is not null;

  return query
  with checked as materialized (
    select v_citation_ids[r.span_position] as citation_id, r.reason
    from citeledger_private.resolve_spans(v_firm_id, v_spans) as r
  )
  select
    k.id,
    k.message_id,
    c.citation_id is not null and c.reason is null,
    case when k.source_page is null then 'not_anchored' else c.reason end
  from citeledger.message_citations as k
  left join checked as c on c.citation_id = k.id
  where k.firm_id = v_firm_id and k.source_document_id = p_document_id
  order by k.created_at, k.id;
end
$$;

comment on function citeledger.recheck_document(uuid) is
  'What still holds of the citations of a document, after its pages were replaced: a row for each '
  'citation, in the order in which they were recorded, with the verdict of the live check and its '
  'reason as in resolve_span, or not_anchored for a citation without a page. It reports and '
  'changes nothing: setting verified is the application''s to do. For citeledger_app. Errors: '
  'P0002 when the document is not in the firm of the context.';

revoke all on function citeledger.recheck_document(uuid) from public;
grant execute on function citeledger.recheck_document(uuid) to citeledger_app;
grant execute on function citeledger.recheck_document(uuid) to citeledger_admin;

commit;
