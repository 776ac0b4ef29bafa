-- Verify citeledger:tenancy/acting_firm on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger_private.enter_firm(uuid)', $facts$
  arguments p_firm_id uuid
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns text
  security invoker
  set search_path=pg_catalog, pg_temp
  volatile
$facts$);

select citeledger_private.verify_function(
  'citeledger_private.leave_firm(text)', $facts$
  arguments p_outer text
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns void
  security invoker
  set search_path=pg_catalog, pg_temp
  volatile
$facts$);

rollback;
