-- Verify citeledger:ops/check_integrity on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger.check_integrity()', $facts$
  arguments none
  grant execute to citeledger_admin
  grant execute to citeledger_app
  grant execute to citeledger_reader
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns TABLE(problem text, table_name text, row_key text)
  security definer
  set search_path=pg_catalog, pg_temp
  stable
$facts$);

rollback;
