-- Revert citeledger:graph/kg_entities from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.kg_entities;

commit;
