-- Revert citeledger:ledger/chats from pg

begin;

set local role citeledger_owner;

drop table citeledger.chats;

commit;
