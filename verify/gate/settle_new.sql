-- Verify citeledger:gate/settle_new on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger_private.settle_new(uuid, uuid[])', $facts$
  arguments p_firm_id uuid, p_message_ids uuid[]
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns uuid[]
  security invoker
  set search_path=pg_catalog, pg_temp
  volatile
$facts$);

rollback;
