-- Verify citeledger:graph/corpus_delete on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger.corpus_delete(uuid[])', $facts$
  arguments p_document_ids uuid[]
  grant execute to citeledger_admin
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns jsonb
  security definer
  set search_path=pg_catalog, pg_temp
  volatile
$facts$);

rollback;
