-- Revert citeledger:graph/kg_entity_mentions from pg

begin;

set local role citeledger_owner;

drop table citeledger.kg_entity_mentions;

commit;
