-- Revert citeledger:ledger/keep_revisions from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop trigger citation_ledger_entry_keep_deleted on citeledger.citation_ledger_entry;
drop trigger citation_ledger_entry_keep_replaced on citeledger.citation_ledger_entry;
drop function citeledger_private.keep_deleted_values();
drop function citeledger_private.keep_replaced_values();

commit;
