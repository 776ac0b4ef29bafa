-- Verify citeledger:ledger/assemble_ledger_entries on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger.assemble_ledger_entries(uuid)', $facts$
  arguments p_message_id uuid
  grant execute to citeledger_admin
  grant execute to citeledger_app
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns integer
  security definer
  set search_path=pg_catalog, pg_temp
  volatile
$facts$);

rollback;
