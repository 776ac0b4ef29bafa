-- Revert citeledger:graph/resolve_references from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.resolve_references(boolean);

commit;
