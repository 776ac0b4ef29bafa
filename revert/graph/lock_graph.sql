-- Revert citeledger:graph/lock_graph from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.before_ingest();
drop function citeledger_private.queue_ingest(uuid);
drop function citeledger_private.lock_graph(uuid);

commit;
