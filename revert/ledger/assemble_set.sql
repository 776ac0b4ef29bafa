-- Revert citeledger:ledger/assemble_set from pg

begin;

set local role citeledger_owner;

drop function citeledger_private.assemble_set(uuid, uuid[], uuid[]);

commit;
