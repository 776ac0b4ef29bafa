-- Deploy citeledger:cite/cite_ledger_entry to pg
-- requires: cite/cite
-- requires: ledger/citation_ledger_entry

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.cite_ledger_entry(
  p_entry_id uuid
)
returns jsonb
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
  v_matter_id uuid;
  v_matter_number text;
  v_span citeledger_private.span;
  v_reason text;
begin
  perform citeledger.require_permission('matters:read');

  select
    e.project_id,
    k.source_document_id, k.source_page, k.source_block,
    k.source_offset_start, k.source_offset_end, k.source_text
  into
    v_matter_id,
    v_span.document_id, v_span.page_number, v_span.block_index,
    v_span.char_start, v_span.char_end, v_span.quote
  from citeledger.citation_ledger_entry as e
  join citeledger.message_citations as k
    on k.firm_id = v_firm_id and k.id = e.message_citation_id
  where e.firm_id = v_firm_id and e.id = p_entry_id;

  v_matter_number := citeledger_private.visible_matter_number(v_firm_id, v_matter_id);
  if v_matter_number is null
    or not citeledger_private.holds_record(v_firm_id, v_matter_id, v_span.document_id)
  then
    perform citeledger_private.refuse_as_not_found();
  end if;

  if v_span.page_number is null then
    v_reason := 'not_anchored';
  else
    select r.reason
    into strict v_reason
    from citeledger_private.resolve_spans(v_firm_id, array[v_span]) as r;
  end if;
  return citeledger_private.cite_resolution(v_matter_number, v_span, v_reason);
end
$$;

comment on function citeledger.cite_ledger_entry(uuid) is
  'The one click from a ledger entry of the kind kb_document to the live check of its citation, '
  'under the matter that the entry names: a CiteResolution as cite gives it. A citation without a '
  'page is verified = false with the reason not_anchored. For citeledger_reader. Errors: 42501 '
  'without matters:read; P0002, the same whatever is not there: the entry, its matter, its '
  'document as a live, non-privileged record of that matter, or an entry of another kind.';

revoke all on function citeledger.cite_ledger_entry(uuid) from public;
grant execute on function citeledger.cite_ledger_entry(uuid) to citeledger_reader;
grant execute on function citeledger.cite_ledger_entry(uuid) to citeledger_app;
grant execute on function citeledger.cite_ledger_entry(uuid) to citeledger_admin;

commit;
