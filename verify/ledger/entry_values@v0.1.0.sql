-- Verify citeledger:ledger/entry_values on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger_private.entry_values(uuid, uuid[], uuid[])', $facts$
  arguments p_firm_id uuid, p_message_ids uuid[], p_source_ids uuid[]
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns TABLE(project_id uuid, chat_id uuid, message_id uuid, source_table text, source_id uuid,
    message_citation_id uuid, message_caselaw_citation_id uuid, message_tool_source_id uuid,
    source_kind text, verification_status text, confidence double precision, provider text,
    retrieved_at timestamp with time zone)
  security invoker
  set search_path=pg_catalog, pg_temp; plan_cache_mode=force_generic_plan
  stable
$facts$);

rollback;
