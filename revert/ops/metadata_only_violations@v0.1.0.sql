-- Revert citeledger:ops/metadata_only_violations from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.metadata_only_violations();

commit;
