-- Revert citeledger:gate/source_triggers from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop trigger message_tool_sources_deleted on citeledger.message_tool_sources;
drop trigger message_tool_sources_inserted on citeledger.message_tool_sources;
drop trigger message_caselaw_citations_deleted on citeledger.message_caselaw_citations;
drop trigger message_caselaw_citations_updated on citeledger.message_caselaw_citations;
drop trigger message_caselaw_citations_inserted on citeledger.message_caselaw_citations;
drop trigger message_citations_deleted on citeledger.message_citations;
drop trigger message_citations_updated on citeledger.message_citations;
drop trigger message_citations_inserted on citeledger.message_citations;
drop function citeledger_private.source_deleted();
drop function citeledger_private.citation_updated();
drop function citeledger_private.source_inserted();

commit;
