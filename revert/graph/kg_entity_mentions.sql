-- Revert citeledger:graph/kg_entity_mentions from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.kg_entity_mentions;

commit;
