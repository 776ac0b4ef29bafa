-- Revert citeledger:graph/graph_stage from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.graph_stage(text[], integer, boolean, jsonb, integer);
drop function citeledger_private.documents_in_scope(uuid, uuid[], jsonb);
drop function citeledger_private.scope_fault(jsonb);

commit;
