-- Revert citeledger:ledger/citation_ledger_entry_revision from pg

begin;

set local role citeledger_owner;

drop table citeledger.citation_ledger_entry_revision;

commit;
