-- Verify citeledger:gate/source_triggers on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_parts(
  'citeledger.message_caselaw_citations', $facts$
  trigger CREATE TRIGGER message_caselaw_citations_deleted AFTER DELETE ON
    citeledger.message_caselaw_citations REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT
    EXECUTE FUNCTION citeledger_private.source_deleted()
  trigger CREATE TRIGGER message_caselaw_citations_inserted AFTER INSERT ON
    citeledger.message_caselaw_citations REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT
    EXECUTE FUNCTION citeledger_private.source_inserted()
  trigger CREATE TRIGGER message_caselaw_citations_updated AFTER UPDATE ON
    citeledger.message_caselaw_citations REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR
    EACH STATEMENT EXECUTE FUNCTION citeledger_private.citation_updated()
$facts$);

select citeledger_private.verify_parts(
  'citeledger.message_citations', $facts$
  trigger CREATE TRIGGER message_citations_deleted AFTER DELETE ON citeledger.message_citations
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION
    citeledger_private.source_deleted()
  trigger CREATE TRIGGER message_citations_inserted AFTER INSERT ON citeledger.message_citations
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION
    citeledger_private.source_inserted()
  trigger CREATE TRIGGER message_citations_updated AFTER UPDATE ON citeledger.message_citations
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION
    citeledger_private.citation_updated()
$facts$);

select citeledger_private.verify_parts(
  'citeledger.message_tool_sources', $facts$
  trigger CREATE TRIGGER message_tool_sources_deleted AFTER DELETE ON
    citeledger.message_tool_sources REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE
    FUNCTION citeledger_private.source_deleted()
  trigger CREATE TRIGGER message_tool_sources_inserted AFTER INSERT ON
    citeledger.message_tool_sources REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE
    FUNCTION citeledger_private.source_inserted()
$facts$);

select citeledger_private.verify_function(
  'citeledger_private.source_inserted()', $facts$
  arguments none
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns trigger
  security definer
  set search_path=pg_catalog, pg_temp
  volatile
$facts$);

select citeledger_private.verify_function(
  'citeledger_private.citation_updated()', $facts$
  arguments none
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns trigger
  security definer
  set search_path=pg_catalog, pg_temp
  volatile
$facts$);

select citeledger_private.verify_function(
  'citeledger_private.source_deleted()', $facts$
  arguments none
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns trigger
  security definer
  set search_path=pg_catalog, pg_temp
  volatile
$facts$);

rollback;
