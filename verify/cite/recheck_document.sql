-- Verify citeledger:cite/recheck_document on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger.recheck_document(uuid)', $facts$
  arguments p_document_id uuid
  grant execute to citeledger_admin
  grant execute to citeledger_app
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns TABLE(message_citation_id uuid, message_id uuid, verified boolean, reason text)
  security definer
  set search_path=pg_catalog, pg_temp; plan_cache_mode=force_generic_plan
  stable
$facts$);

rollback;
