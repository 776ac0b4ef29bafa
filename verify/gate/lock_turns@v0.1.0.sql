-- Verify citeledger:gate/lock_turns on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger_private.expose_hidden_gates(uuid, uuid[])', $facts$
  arguments p_firm_id uuid, p_message_ids uuid[]
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns void
  security invoker
  set search_path=pg_catalog, pg_temp
  volatile
$facts$);

select citeledger_private.verify_function(
  'citeledger_private.lock_turns(uuid, uuid[])', $facts$
  arguments p_firm_id uuid, p_message_ids uuid[]
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns uuid[]
  security invoker
  set search_path=pg_catalog, pg_temp; plan_cache_mode=force_generic_plan
  volatile
$facts$);

rollback;
