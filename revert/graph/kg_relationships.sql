-- Revert citeledger:graph/kg_relationships from pg

begin;

set local role citeledger_owner;

drop table citeledger.kg_relationships;

commit;
