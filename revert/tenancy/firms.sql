-- Revert citeledger:tenancy/firms from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.firms;

commit;
