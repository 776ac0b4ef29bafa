-- Deploy citeledger:tenancy/firm_ids to pg
-- requires: tenancy/firms

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.firm_ids()
returns setof uuid
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
  select f.id from citeledger.firms as f order by f.id
$$;

comment on function citeledger.firm_ids() is
  'Every firm of the database, in id order: what an operator loops over, setting the context of '
  'each firm in turn. For citeledger_admin.';

revoke all on function citeledger.firm_ids() from public;
grant execute on function citeledger.firm_ids() to citeledger_admin;

commit;
