-- Revert citeledger:cite/documents from pg

begin;

set local role citeledger_owner;

drop table citeledger.documents;

commit;
