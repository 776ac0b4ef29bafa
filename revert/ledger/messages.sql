-- Revert citeledger:ledger/messages from pg

begin;

set local role citeledger_owner;

drop table citeledger.messages;

commit;
