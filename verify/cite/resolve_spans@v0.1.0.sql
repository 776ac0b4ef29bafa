-- Verify citeledger:cite/resolve_spans on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger_private.resolve_spans(uuid, citeledger_private.span[])', $facts$
  arguments p_firm_id uuid, p_spans citeledger_private.span[]
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns TABLE(span_position bigint, reason text)
  security invoker
  set search_path=pg_catalog, pg_temp; plan_cache_mode=force_generic_plan
  stable
$facts$);

rollback;
