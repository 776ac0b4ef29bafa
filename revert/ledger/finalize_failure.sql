-- Revert citeledger:ledger/finalize_failure from pg

begin;

set local role citeledger_owner;

drop table citeledger.finalize_failure;

commit;
