-- Verify citeledger:ops/metadata_only_violations on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger.metadata_only_violations()', $facts$
  arguments none
  grant execute to citeledger_admin
  grant execute to citeledger_app
  grant execute to citeledger_reader
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns TABLE(table_name text, column_name text, reason text)
  security invoker
  set search_path=pg_catalog, pg_temp; quote_all_identifiers=off
  stable
$facts$);

rollback;
