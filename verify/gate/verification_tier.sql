-- Verify citeledger:gate/verification_tier on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger.verification_tier(text)', $facts$
  arguments p_status text
  grant execute to citeledger_admin
  grant execute to citeledger_app
  grant execute to citeledger_reader
  immutable
  language sql
  owner citeledger_owner
  parallel safe
  returns text
  security invoker
  set nothing
$facts$);

rollback;
