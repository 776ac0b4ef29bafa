-- Verify citeledger:tenancy/delete_firm on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger.delete_firm(uuid)', $facts$
  arguments p_firm_id uuid
  grant execute to citeledger_admin
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns void
  security definer
  set search_path=pg_catalog, pg_temp
  volatile
$facts$);

rollback;
