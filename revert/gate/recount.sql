-- Revert citeledger:gate/recount from pg

begin;

set local role citeledger_owner;

drop function citeledger_private.recount(uuid, uuid[]);

commit;
