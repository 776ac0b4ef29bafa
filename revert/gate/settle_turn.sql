-- Revert citeledger:gate/settle_turn from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.settle_turn(uuid, uuid);

commit;
