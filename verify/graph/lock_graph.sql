-- Verify citeledger:graph/lock_graph on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger_private.lock_graph(uuid)', $facts$
  arguments p_firm_id uuid
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns void
  security invoker
  set search_path=pg_catalog, pg_temp
  volatile
$facts$);

select citeledger_private.verify_function(
  'citeledger_private.queue_ingest(uuid)', $facts$
  arguments p_firm_id uuid
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns void
  security invoker
  set search_path=pg_catalog, pg_temp
  volatile
$facts$);

select citeledger_private.verify_function(
  'citeledger_private.before_ingest()', $facts$
  arguments none
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns trigger
  security definer
  set search_path=pg_catalog, pg_temp
  volatile
$facts$);

rollback;
