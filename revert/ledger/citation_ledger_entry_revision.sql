-- Revert citeledger:ledger/citation_ledger_entry_revision from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.citation_ledger_entry_revision;

commit;
