-- Revert citeledger:ledger/message_caselaw_citations from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.message_caselaw_citations;

commit;
