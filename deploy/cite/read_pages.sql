-- Deploy citeledger:cite/read_pages to pg
-- requires: tenancy/require_permission
-- requires: cite/record_in_matter
-- requires: cite/document_pages

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.read_pages(
  p_matter_id uuid,
  p_document_id uuid,
  p_page_number integer default null
)
returns table (
  page_number integer,
  block_index integer,
  content text
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
begin
  perform citeledger.require_permission('matters:read');
  if citeledger_private.visible_matter_number(v_firm_id, p_matter_id) is null
    or not citeledger_private.holds_record(v_firm_id, p_matter_id, p_document_id)
  then
    perform citeledger_private.refuse_as_not_found();
  end if;

  return query
  select b.page_number, b.block_index, b.content
  from citeledger.document_page_blocks as b
  where b.firm_id = v_firm_id
    and b.document_id = p_document_id
    and (p_page_number is null or b.page_number = p_page_number)
  order by b.page_number, b.block_index;
end
$$;

comment on function citeledger.read_pages(uuid, uuid, integer) is
  'The live text of a record of the matter p_matter_id, a row for each block in reading order; of '
  'the page p_page_number alone where it is given, and no row where there is no such page. Under '
  'the very checks of cite. For citeledger_reader. Errors: 42501 without matters:read; P0002, the '
  'same whatever is not there.';

revoke all on function citeledger.read_pages(uuid, uuid, integer) from public;
grant execute on function citeledger.read_pages(uuid, uuid, integer) to citeledger_reader;
grant execute on function citeledger.read_pages(uuid, uuid, integer) to citeledger_app;
grant execute on function citeledger.read_pages(uuid, uuid, integer) to citeledger_admin;

commit;
