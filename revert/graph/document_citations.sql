-- Revert citeledger:graph/document_citations from pg

begin;

set local role citeledger_owner;

drop table citeledger.document_citations;

commit;
