-- Revert citeledger:graph/graph_gc from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.graph_gc(boolean);

commit;
