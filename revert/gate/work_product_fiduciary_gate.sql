-- Revert citeledger:gate/work_product_fiduciary_gate from pg

begin;

set local role citeledger_owner;

drop table citeledger.work_product_fiduciary_gate;

commit;
