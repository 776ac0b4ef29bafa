-- Verify citeledger:tenancy/create_firm on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger.create_firm(text)', $facts$
  arguments p_name text
  grant execute to citeledger_admin
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns uuid
  security definer
  set search_path=pg_catalog, pg_temp
  volatile
$facts$);

rollback;
