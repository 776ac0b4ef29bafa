-- Verify citeledger:gate/settle_turn on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger_private.settle_turn(uuid, uuid)', $facts$
  arguments p_firm_id uuid, p_message_id uuid
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns TABLE(entries bigint, gate jsonb)
  security invoker
  set search_path=pg_catalog, pg_temp; plan_cache_mode=force_generic_plan
  volatile
$facts$);

rollback;
