-- Verify citeledger:cite/cite on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger_private.cite_resolution(text, citeledger_private.span, text)', $facts$
  arguments p_matter_number text, p_span citeledger_private.span, p_reason text
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns jsonb
  security invoker
  set search_path=pg_catalog, pg_temp
  stable
$facts$);

select citeledger_private.verify_function(
  'citeledger.cite(uuid, jsonb)', $facts$
  arguments p_matter_id uuid, p_span jsonb
  grant execute to citeledger_admin
  grant execute to citeledger_app
  grant execute to citeledger_reader
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns jsonb
  security definer
  set search_path=pg_catalog, pg_temp
  stable
$facts$);

rollback;
