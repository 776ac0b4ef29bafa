-- Revert citeledger:ledger/assemble_turn from pg

begin;

set local role citeledger_owner;

drop function citeledger_private.assemble_turn(uuid, uuid);

commit;
