-- Verify citeledger:cite/suggest_spans on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger_private.occurrences(text, text)', $facts$
  arguments p_text text, p_quote text
  immutable
  language sql
  owner citeledger_owner
  parallel safe
  returns SETOF integer
  security invoker
  set search_path=pg_catalog, pg_temp
$facts$);

select citeledger_private.verify_function(
  'citeledger.suggest_spans(uuid, jsonb, integer)', $facts$
  arguments p_matter_id uuid, p_span jsonb, p_limit integer DEFAULT 5
  grant execute to citeledger_admin
  grant execute to citeledger_app
  grant execute to citeledger_reader
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns TABLE(page_number integer, block_index integer, char_start integer, char_end integer)
  security definer
  set search_path=pg_catalog, pg_temp; plan_cache_mode=force_generic_plan
  stable
$facts$);

rollback;
