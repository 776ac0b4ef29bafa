-- Verify citeledger:gate/finalize_report on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger_private.count_entries(uuid, uuid)', $facts$
  arguments p_firm_id uuid, p_message_id uuid
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns bigint
  security invoker
  set search_path=pg_catalog, pg_temp; plan_cache_mode=force_generic_plan
  stable
$facts$);

select citeledger_private.verify_function(
  'citeledger_private.finalize_report(uuid, uuid)', $facts$
  arguments p_firm_id uuid, p_message_id uuid
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns TABLE(entries bigint, gate jsonb, failures jsonb)
  security invoker
  set search_path=pg_catalog, pg_temp; plan_cache_mode=force_generic_plan
  stable
$facts$);

rollback;
