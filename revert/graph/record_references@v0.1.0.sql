-- Revert citeledger:graph/record_references from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.record_references(uuid, text[], text);

commit;
