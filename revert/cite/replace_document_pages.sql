-- Revert citeledger:cite/replace_document_pages from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.replace_document_pages(uuid, jsonb);
drop function citeledger_private.pages_fault(jsonb);

commit;
