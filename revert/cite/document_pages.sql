-- Revert citeledger:cite/document_pages from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.document_page_blocks;
drop table citeledger.document_pages;

commit;
