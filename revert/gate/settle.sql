-- Revert citeledger:gate/settle from pg

begin;

set local role citeledger_owner;

drop function citeledger_private.settle(uuid, uuid[], uuid[]);

commit;
