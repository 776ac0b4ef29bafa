-- Revert citeledger:ledger/finalize_failure from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.finalize_failure;

commit;
