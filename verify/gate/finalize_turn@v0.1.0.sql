-- Verify citeledger:gate/finalize_turn on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger.finalize_turn(uuid)', $facts$
  arguments p_message_id uuid
  grant execute to citeledger_admin
  grant execute to citeledger_app
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns jsonb
  security definer
  set search_path=pg_catalog, pg_temp
  volatile
$facts$);

rollback;
