-- Revert citeledger:tenancy/current_user_id from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.current_user_id();

commit;
