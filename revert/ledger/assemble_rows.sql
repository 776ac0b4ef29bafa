-- Revert citeledger:ledger/assemble_rows from pg

begin;

set local role citeledger_owner;

drop function citeledger_private.assemble_rows(uuid, uuid, uuid[]);

commit;
