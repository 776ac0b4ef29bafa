-- Verify citeledger:gate/recount on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger_private.recount(uuid, uuid[])', $facts$
  arguments p_firm_id uuid, p_message_ids uuid[]
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns TABLE(message_id uuid, chat_id uuid, project_id uuid, pass_count integer, supported_count
    integer, fail_count integer, unrecognized_count integer, confidence double precision,
    unrecognized_statuses text[])
  security invoker
  set search_path=pg_catalog, pg_temp; plan_cache_mode=force_generic_plan
  stable
$facts$);

rollback;
