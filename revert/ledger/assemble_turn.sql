-- Revert citeledger:ledger/assemble_turn from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.assemble_turn(uuid, uuid);

commit;
