-- Verify citeledger:gate/settle on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger_private.all_were_settled(uuid, uuid[])', $facts$
  arguments p_firm_id uuid, p_message_ids uuid[]
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns boolean
  security invoker
  set search_path=pg_catalog, pg_temp; plan_cache_mode=force_generic_plan
  volatile
$facts$);

select citeledger_private.verify_function(
  'citeledger_private.settle(uuid, uuid[], uuid[])', $facts$
  arguments p_firm_id uuid, p_message_ids uuid[], p_source_ids uuid[] DEFAULT NULL::uuid[]
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns void
  security invoker
  set search_path=pg_catalog, pg_temp
  volatile
$facts$);

rollback;
