-- Verify citeledger:ledger/keep_revisions on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_parts(
  'citeledger.citation_ledger_entry', $facts$
  trigger CREATE TRIGGER citation_ledger_entry_keep_deleted AFTER DELETE ON
    citeledger.citation_ledger_entry REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE
    FUNCTION citeledger_private.keep_deleted_values()
  trigger CREATE TRIGGER citation_ledger_entry_keep_replaced AFTER UPDATE ON
    citeledger.citation_ledger_entry REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR
    EACH STATEMENT EXECUTE FUNCTION citeledger_private.keep_replaced_values()
$facts$);

select citeledger_private.verify_function(
  'citeledger_private.keep_replaced_values()', $facts$
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
  'citeledger_private.keep_deleted_values()', $facts$
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
