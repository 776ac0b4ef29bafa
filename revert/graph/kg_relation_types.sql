-- Revert citeledger:graph/kg_relation_types from pg

begin;

set local role citeledger_owner;

drop table citeledger.kg_relation_types;

commit;
