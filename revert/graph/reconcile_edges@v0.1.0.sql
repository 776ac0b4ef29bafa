-- Revert citeledger:graph/reconcile_edges from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.reconcile_edges(uuid, uuid[], text[], text, boolean);
drop function citeledger_private.judged_references(uuid, uuid[], text[]);
drop type citeledger_private.reference_fate;

commit;
