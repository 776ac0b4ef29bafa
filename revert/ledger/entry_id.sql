-- Revert citeledger:ledger/entry_id from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.entry_id(uuid, uuid);

commit;
