-- Revert citeledger:graph/kg_relation_types from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.kg_relation_types;

commit;
