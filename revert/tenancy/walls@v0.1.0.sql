-- Revert citeledger:tenancy/walls from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop policy projects_behind_a_wall on citeledger.projects;
drop function citeledger_private.is_behind_wall(uuid, uuid);

commit;
