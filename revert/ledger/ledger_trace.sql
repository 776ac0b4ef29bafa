-- Revert citeledger:ledger/ledger_trace from pg

begin;

set local role citeledger_owner;

drop function citeledger.ledger_trace(uuid, uuid);

commit;
