-- Verify citeledger:gate/withdraw_gates on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger_private.log_failure(uuid, uuid[], text, text)', $facts$
  arguments p_firm_id uuid, p_message_ids uuid[], p_stage text, p_sqlstate text
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns void
  security invoker
  set search_path=pg_catalog, pg_temp
  volatile
$facts$);

select citeledger_private.verify_function(
  'citeledger_private.clear_failures(uuid, uuid[])', $facts$
  arguments p_firm_id uuid, p_message_ids uuid[]
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns void
  security invoker
  set search_path=pg_catalog, pg_temp; plan_cache_mode=force_generic_plan
  volatile
$facts$);

select citeledger_private.verify_function(
  'citeledger_private.withdraw_gates(uuid, uuid[], text, text)', $facts$
  arguments p_firm_id uuid, p_message_ids uuid[], p_stage text, p_sqlstate text
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns void
  security invoker
  set search_path=pg_catalog, pg_temp
  volatile
$facts$);

rollback;
