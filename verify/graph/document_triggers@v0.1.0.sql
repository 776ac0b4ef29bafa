-- Verify citeledger:graph/document_triggers on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_parts(
  'citeledger.documents', $facts$
  trigger CREATE TRIGGER documents_arrived AFTER INSERT ON citeledger.documents REFERENCING NEW
    TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION citeledger_private.documents_arrived()
  trigger CREATE TRIGGER documents_before_delete BEFORE DELETE ON citeledger.documents FOR EACH
    STATEMENT EXECUTE FUNCTION citeledger_private.before_ingest()
  trigger CREATE TRIGGER documents_before_insert BEFORE INSERT ON citeledger.documents FOR EACH
    STATEMENT EXECUTE FUNCTION citeledger_private.before_ingest()
  trigger CREATE TRIGGER documents_before_update BEFORE UPDATE ON citeledger.documents FOR EACH
    STATEMENT EXECUTE FUNCTION citeledger_private.before_ingest()
  trigger CREATE TRIGGER documents_changed AFTER UPDATE ON citeledger.documents REFERENCING OLD
    TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION
    citeledger_private.documents_changed()
  trigger CREATE TRIGGER documents_left AFTER DELETE ON citeledger.documents REFERENCING OLD TABLE
    AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION citeledger_private.documents_left()
$facts$);

select citeledger_private.verify_parts(
  'citeledger.projects', $facts$
  trigger CREATE TRIGGER projects_before_delete BEFORE DELETE ON citeledger.projects FOR EACH
    STATEMENT EXECUTE FUNCTION citeledger_private.before_ingest()
$facts$);

select citeledger_private.verify_function(
  'citeledger_private.documents_arrived()', $facts$
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
  'citeledger_private.documents_changed()', $facts$
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
  'citeledger_private.documents_left()', $facts$
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
