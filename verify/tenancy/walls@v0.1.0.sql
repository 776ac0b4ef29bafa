-- Verify citeledger:tenancy/walls on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_parts(
  'citeledger.projects', $facts$
  policy projects_behind_a_wall restrictive for all to public using (NOT
    citeledger_private.is_behind_wall(firm_id, id)) with check true
$facts$);

select citeledger_private.verify_function(
  'citeledger_private.is_behind_wall(uuid, uuid)', $facts$
  arguments p_firm_id uuid, p_project_id uuid
  grant execute to citeledger_admin
  grant execute to citeledger_app
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns boolean
  security definer
  set search_path=pg_catalog, pg_temp
  stable
$facts$);

rollback;
