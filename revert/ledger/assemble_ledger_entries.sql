-- Revert citeledger:ledger/assemble_ledger_entries from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.assemble_ledger_entries(uuid);

commit;
