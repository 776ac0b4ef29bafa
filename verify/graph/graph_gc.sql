-- Verify citeledger:graph/graph_gc on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger.graph_gc(boolean)', $facts$
  arguments p_dry_run boolean DEFAULT true
  grant execute to citeledger_admin
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns jsonb
  security definer
  set search_path=pg_catalog, pg_temp
  volatile
$facts$);

rollback;
