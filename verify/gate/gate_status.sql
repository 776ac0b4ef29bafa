-- Verify citeledger:gate/gate_status on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger_private.gate_status(integer, integer, integer)', $facts$
  arguments p_supported_count integer, p_fail_count integer, p_unrecognized_count integer
  immutable
  language sql
  owner citeledger_owner
  parallel safe
  returns text
  security invoker
  set nothing
$facts$);

rollback;
