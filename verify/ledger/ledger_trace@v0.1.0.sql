-- Verify citeledger:ledger/ledger_trace on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger.ledger_trace(uuid, uuid)', $facts$
  arguments p_chat_id uuid, p_message_id uuid DEFAULT NULL::uuid
  grant execute to citeledger_admin
  grant execute to citeledger_app
  grant execute to citeledger_reader
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns jsonb
  security definer
  set search_path=pg_catalog, pg_temp; plan_cache_mode=force_generic_plan
  stable
$facts$);

rollback;
