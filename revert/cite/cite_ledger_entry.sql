-- Revert citeledger:cite/cite_ledger_entry from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.cite_ledger_entry(uuid);

commit;
