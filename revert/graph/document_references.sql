-- Revert citeledger:graph/document_references from pg

begin;

set local role citeledger_owner;

drop table citeledger.document_references;

commit;
