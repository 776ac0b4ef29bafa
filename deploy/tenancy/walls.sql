-- Deploy citeledger:tenancy/walls to pg
-- requires: tenancy/walls@v0.1.0
-- requires: tenancy/current_user_id

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.is_behind_wall(
  p_firm_id uuid,
  p_project_id uuid
)
returns boolean
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  -- Most matters have no members; for them the second question is not even prepared.
  perform
  from citeledger.project_members as m
  where m.firm_id = p_firm_id and m.project_id = p_project_id
  limit 1;
  if not found then
    return false;
  end if;
  return not exists (
    select
    from citeledger.project_members as m
    where m.firm_id = p_firm_id
      and m.project_id = p_project_id
      and m.user_id = citeledger.current_user_id()
  );
end
$$;

comment on function citeledger_private.is_behind_wall(uuid, uuid) is
  'Whether the matter p_project_id has members and the person of the context is none of them. '
  'Security definer: the members themselves are not for the querying role to read.';

revoke all on function citeledger_private.is_behind_wall(uuid, uuid) from public;
grant execute on function citeledger_private.is_behind_wall(uuid, uuid) to citeledger_admin;

commit;
