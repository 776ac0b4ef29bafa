-- Verify citeledger:ledger/assemble_set on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger_private.assemble_set(uuid, uuid[], uuid[])', $facts$
  arguments p_firm_id uuid, p_message_ids uuid[], p_source_ids uuid[] DEFAULT NULL::uuid[]
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns integer
  security invoker
  set search_path=pg_catalog, pg_temp
  volatile
$facts$);

rollback;
