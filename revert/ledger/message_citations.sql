-- Revert citeledger:ledger/message_citations from pg

begin;

set local role citeledger_owner;

drop table citeledger.message_citations;

commit;
