-- Revert citeledger:cite/document_pages from pg

begin;

set local role citeledger_owner;

drop table citeledger.document_page_blocks;
drop table citeledger.document_pages;

commit;
