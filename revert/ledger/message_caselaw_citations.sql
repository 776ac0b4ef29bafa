-- Revert citeledger:ledger/message_caselaw_citations from pg

begin;

set local role citeledger_owner;

drop table citeledger.message_caselaw_citations;

commit;
