-- Verify citeledger:tenancy/current_firm_id on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger.current_firm_id()', $facts$
  arguments none
  grant execute to citeledger_admin
  grant execute to citeledger_app
  grant execute to citeledger_reader
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns uuid
  security invoker
  set search_path=pg_catalog, pg_temp
  stable
$facts$);

rollback;
