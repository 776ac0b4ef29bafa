-- Revert citeledger:cite/replace_document_pages from pg

begin;

set local role citeledger_owner;

drop function citeledger.replace_document_pages(uuid, jsonb);
drop function citeledger_private.pages_fault(jsonb);

commit;
