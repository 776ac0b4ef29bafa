-- Verify citeledger:graph/record_crossref_work on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger.record_crossref_work(uuid, jsonb)', $facts$
  arguments p_document_id uuid, p_work jsonb
  grant execute to citeledger_admin
  grant execute to citeledger_app
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns jsonb
  security definer
  set search_path=pg_catalog, pg_temp
  volatile
$facts$);

rollback;
