-- Verify citeledger:cite/read_pages on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger.read_pages(uuid, uuid, integer)', $facts$
  arguments p_matter_id uuid, p_document_id uuid, p_page_number integer DEFAULT NULL::integer
  grant execute to citeledger_admin
  grant execute to citeledger_app
  grant execute to citeledger_reader
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns TABLE(page_number integer, block_index integer, content text)
  security definer
  set search_path=pg_catalog, pg_temp; plan_cache_mode=force_generic_plan
  stable
$facts$);

rollback;
