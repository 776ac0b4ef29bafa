-- Revert citeledger:ledger/assemble_ledger_entries from pg

begin;

set local role citeledger_owner;

drop function citeledger.assemble_ledger_entries(uuid);

commit;
