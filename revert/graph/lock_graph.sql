-- Revert citeledger:graph/lock_graph from pg

begin;

set local role citeledger_owner;

drop function citeledger_private.lock_graph(uuid);

commit;
