-- Revert citeledger:graph/chunks from pg

begin;

set local role citeledger_owner;

drop table citeledger.chunks;

commit;
