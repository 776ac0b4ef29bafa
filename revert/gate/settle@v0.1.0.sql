-- Revert citeledger:gate/settle from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.settle(uuid, uuid[], uuid[]);

commit;
