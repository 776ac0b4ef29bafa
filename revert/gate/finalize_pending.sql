-- Revert citeledger:gate/finalize_pending from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.finalize_pending(integer);

commit;
