-- Revert citeledger:gate/work_product_fiduciary_gate from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.work_product_fiduciary_gate;

commit;
