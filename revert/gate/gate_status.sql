-- Revert citeledger:gate/gate_status from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.gate_status(integer, integer, integer);

commit;
