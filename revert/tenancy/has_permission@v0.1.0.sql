-- Revert citeledger:tenancy/has_permission from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.has_permission(text);

commit;
