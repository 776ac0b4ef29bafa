-- Verify citeledger:tenancy/firm_ids on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger.firm_ids()', $facts$
  arguments none
  grant execute to citeledger_admin
  language sql
  owner citeledger_owner
  parallel safe
  returns SETOF uuid
  security definer
  set search_path=pg_catalog, pg_temp
  stable
$facts$);

rollback;
