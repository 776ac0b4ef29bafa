-- Verify citeledger:gate/message_triggers on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_parts(
  'citeledger.messages', $facts$
  trigger CREATE TRIGGER messages_finalize_inserted AFTER INSERT ON citeledger.messages REFERENCING
    NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION citeledger_private.finalize_inserted()
  trigger CREATE TRIGGER messages_finalize_updated AFTER UPDATE ON citeledger.messages REFERENCING
    OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION
    citeledger_private.finalize_updated()
  trigger CREATE TRIGGER messages_seal BEFORE UPDATE ON citeledger.messages FOR EACH ROW WHEN
    ((old.finalized_at IS NOT NULL)) EXECUTE FUNCTION citeledger_private.seal_message()
$facts$);

select citeledger_private.verify_function(
  'citeledger_private.seal_message()', $facts$
  arguments none
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns trigger
  security invoker
  set search_path=pg_catalog, pg_temp
  volatile
$facts$);

select citeledger_private.verify_function(
  'citeledger_private.finalize_inserted()', $facts$
  arguments none
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns trigger
  security definer
  set search_path=pg_catalog, pg_temp
  volatile
$facts$);

select citeledger_private.verify_function(
  'citeledger_private.finalize_updated()', $facts$
  arguments none
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns trigger
  security definer
  set search_path=pg_catalog, pg_temp
  volatile
$facts$);

rollback;
