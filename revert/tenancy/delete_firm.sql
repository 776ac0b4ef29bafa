-- Revert citeledger:tenancy/delete_firm from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.delete_firm(uuid);

commit;
