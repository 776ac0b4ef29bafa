-- Revert citeledger:ledger/assemble_rows from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.assemble_rows(uuid, uuid, uuid[]);

commit;
