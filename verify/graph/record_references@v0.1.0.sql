-- Verify citeledger:graph/record_references on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger.record_references(uuid, text[], text)', $facts$
  arguments p_document_id uuid, p_dois text[], p_source text DEFAULT 'crossref'::text
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
