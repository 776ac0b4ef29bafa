-- Revert citeledger:graph/walk_citations from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.walk_citations(uuid[], integer, text);

commit;
