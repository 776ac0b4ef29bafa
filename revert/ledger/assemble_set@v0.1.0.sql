-- Revert citeledger:ledger/assemble_set from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.assemble_set(uuid, uuid[], uuid[]);

commit;
