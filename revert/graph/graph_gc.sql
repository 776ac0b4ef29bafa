-- Revert citeledger:graph/graph_gc from pg

begin;

set local role citeledger_owner;

drop function citeledger.graph_gc(boolean);

commit;
