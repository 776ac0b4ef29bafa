-- Verify citeledger:graph/walk_citations on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger.walk_citations(uuid[], integer, text)', $facts$
  arguments p_document_ids uuid[], p_max_hops integer DEFAULT 2, p_direction text DEFAULT
    'both'::text
  grant execute to citeledger_admin
  grant execute to citeledger_app
  grant execute to citeledger_reader
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns TABLE(document_id uuid, hop integer)
  security definer
  set search_path=pg_catalog, pg_temp; plan_cache_mode=force_generic_plan
  stable
$facts$);

rollback;
