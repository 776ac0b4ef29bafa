-- Revert citeledger:gate/settle_new from pg

begin;

set local role citeledger_owner;

drop function citeledger_private.settle_new(uuid, uuid[]);

commit;
