-- Revert citeledger:cite/recheck_document from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.recheck_document(uuid);

commit;
