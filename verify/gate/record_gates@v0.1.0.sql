-- Verify citeledger:gate/record_gates on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger_private.warn_of_unrecognized(text)', $facts$
  arguments p_statuses text
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns void
  security invoker
  set search_path=pg_catalog, pg_temp
  volatile
$facts$);

select citeledger_private.verify_function(
  'citeledger_private.record_gates(uuid, uuid[])', $facts$
  arguments p_firm_id uuid, p_message_ids uuid[]
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns void
  security invoker
  set search_path=pg_catalog, pg_temp
  volatile
$facts$);

rollback;
