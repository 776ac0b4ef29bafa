-- Verify citeledger:cite/cite_many on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger.cite_many(uuid, jsonb)', $facts$
  arguments p_matter_id uuid, p_spans jsonb
  grant execute to citeledger_admin
  grant execute to citeledger_app
  grant execute to citeledger_reader
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns jsonb
  security definer
  set search_path=pg_catalog, pg_temp; plan_cache_mode=force_generic_plan
  stable
$facts$);

rollback;
