-- Revert citeledger:graph/documents_to_check from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop index citeledger.documents_in_matters_idx;
drop index citeledger.documents_withdrawn_idx;

commit;
