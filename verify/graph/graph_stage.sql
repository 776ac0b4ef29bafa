-- Verify citeledger:graph/graph_stage on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger_private.scope_fault(jsonb)', $facts$
  arguments p_scope jsonb
  immutable
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns text
  security invoker
  set search_path=pg_catalog, pg_temp
$facts$);

select citeledger_private.verify_function(
  'citeledger_private.documents_in_scope(uuid, uuid[], jsonb)', $facts$
  arguments p_firm_id uuid, p_document_ids uuid[], p_scope jsonb
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns SETOF uuid
  security invoker
  set search_path=pg_catalog, pg_temp; plan_cache_mode=force_generic_plan
  stable
$facts$);

select citeledger_private.verify_function(
  'citeledger.graph_stage(text[], integer, boolean, jsonb, integer)', $facts$
  arguments p_entity_names text[], p_max_hops integer DEFAULT 2, p_include_citations boolean DEFAULT
    false, p_scope jsonb DEFAULT '{}'::jsonb, p_limit integer DEFAULT 20
  grant execute to citeledger_admin
  grant execute to citeledger_app
  grant execute to citeledger_reader
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns TABLE(chunk_id uuid, hop integer, via text)
  security definer
  set search_path=pg_catalog, pg_temp; plan_cache_mode=force_generic_plan
  stable
$facts$);

rollback;
