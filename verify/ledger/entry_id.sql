-- Verify citeledger:ledger/entry_id on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger_private.entry_id(uuid, uuid)', $facts$
  arguments p_message_id uuid, p_random uuid
  immutable
  language sql
  owner citeledger_owner
  parallel safe
  returns uuid
  security invoker
  set nothing
$facts$);

rollback;
