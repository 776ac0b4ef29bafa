-- Revert citeledger:graph/kg_entities from pg

begin;

set local role citeledger_owner;

drop table citeledger.kg_entities;

commit;
