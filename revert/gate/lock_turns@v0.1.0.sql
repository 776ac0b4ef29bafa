-- Revert citeledger:gate/lock_turns from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.lock_turns(uuid, uuid[]);
drop function citeledger_private.expose_hidden_gates(uuid, uuid[]);

commit;
