-- Verify citeledger:graph/documents_to_check on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_parts(
  'citeledger.documents', $facts$
  index CREATE INDEX documents_in_matters_idx ON citeledger.documents USING btree (firm_id, id)
    WHERE (num_nonnulls(project_id) = 1)
  index CREATE INDEX documents_withdrawn_idx ON citeledger.documents USING btree (firm_id, id)
    WHERE (deleted_at IS NOT NULL)
$facts$);

rollback;
