-- Revert citeledger:ledger/entry_values from pg

begin;

set local role citeledger_owner;

drop function citeledger_private.entry_values(uuid, uuid[], uuid[]);

commit;
