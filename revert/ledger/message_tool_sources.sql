-- Revert citeledger:ledger/message_tool_sources from pg

begin;

set local role citeledger_owner;

drop table citeledger.message_tool_sources;

commit;
