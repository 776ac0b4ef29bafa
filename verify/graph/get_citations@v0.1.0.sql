-- Verify citeledger:graph/get_citations on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger_private.visible_documents(uuid, uuid[])', $facts$
  arguments p_firm_id uuid, p_document_ids uuid[]
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns SETOF uuid
  security invoker
  set search_path=pg_catalog, pg_temp; plan_cache_mode=force_generic_plan
  stable
$facts$);

select citeledger_private.verify_function(
  'citeledger.get_citations(uuid)', $facts$
  arguments p_document_id uuid
  grant execute to citeledger_admin
  grant execute to citeledger_app
  grant execute to citeledger_reader
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns jsonb
  security definer
  set search_path=pg_catalog, pg_temp; plan_cache_mode=force_generic_plan
  stable
$facts$);

rollback;
