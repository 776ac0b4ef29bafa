-- Revert citeledger:gate/compute_and_record_gate from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.compute_and_record_gate(uuid);

commit;
