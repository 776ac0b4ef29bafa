-- Revert citeledger:graph/record_crossref_work from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.record_crossref_work(uuid, jsonb);

commit;
