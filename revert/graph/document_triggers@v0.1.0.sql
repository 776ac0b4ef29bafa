-- Revert citeledger:graph/document_triggers from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop trigger documents_left on citeledger.documents;
drop trigger documents_changed on citeledger.documents;
drop trigger documents_arrived on citeledger.documents;
drop trigger projects_before_delete on citeledger.projects;
drop trigger documents_before_delete on citeledger.documents;
drop trigger documents_before_update on citeledger.documents;
drop trigger documents_before_insert on citeledger.documents;
drop function citeledger_private.documents_left();
drop function citeledger_private.documents_changed();
drop function citeledger_private.documents_arrived();

commit;
