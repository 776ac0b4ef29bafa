-- Verify citeledger:gate/finalize_turns on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger.finalize_turns(uuid[])', $facts$
  arguments p_message_ids uuid[]
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
