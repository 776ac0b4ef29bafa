-- Deploy citeledger:tenancy/set_context to pg
-- requires: tenancy/set_context@v0.1.0
-- requires: tenancy/current_firm_id
-- requires: tenancy/current_user_id
-- requires: tenancy/has_permission

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.set_context(
  p_firm_id uuid,
  p_user_id uuid default null,
  p_permissions text[] default '{}'
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_permissions text[] := coalesce(p_permissions, '{}');
  v_list text := v_permissions::text;
begin
  -- Behind PostgREST the claims are the caller's identity; our settings would win over them.
  if current_setting('request.jwt.claims', true) <> '' then
    raise exception using
      errcode = '42501',
      message = 'the context comes from request.jwt.claims and cannot be set',
      detail = 'request.jwt.claims is set in this session.',
      hint = 'Put firm_id, sub and permissions into the claims instead.';
  end if;

  -- Mostly a few short names: looked at all at once, since to look into the list is a query. Such a
  -- name is written without quotes, and so is a null.
  if octet_length(v_list) <= 64
    and strpos(v_list, 'NULL') = 0
    and v_list collate "C" ~ (
      '^[{](?:[A-Za-z0-9][A-Za-z0-9._:-]*(?:,[A-Za-z0-9][A-Za-z0-9._:-]*)*)?[}]$'
    )
  then
    null;
  elsif array_ndims(v_permissions) > 1
    or exists (
      select
      from unnest(v_permissions) as p (permission)
      -- The length apart: a pattern that counts costs more than all the rest.
      where p.permission is null
        or octet_length(p.permission) > 64
        or p.permission !~ '^[A-Za-z0-9][A-Za-z0-9._:-]*$'
    )
  then
    raise exception using
      errcode = '22023',
      message = 'p_permissions is not a list of permission names',
      detail = 'A permission is a letter or digit followed by at most 63 letters, digits or ._:- .',
      hint = 'Pass for example array[''matters:read''].';
  end if;

  -- SET LOCAL rather than set_config(): the settings end with the transaction either way, but only
  -- the statement is forwarded by a distributed database to its workers. Three in one go: to parse
  -- them is most of what this costs.
  execute format(
    'set local citeledger.firm_id = %L; '
    'set local citeledger.user_id = %L; '
    'set local citeledger.permissions = %L',
    coalesce(p_firm_id::text, ''), coalesce(p_user_id::text, ''), v_list
  );
end
$$;

comment on function citeledger.set_context(uuid, uuid, text[]) is
  'Sets firm, person and permissions for the rest of the transaction, never longer. A null firm '
  'clears the context: no rows, no permission. Whoever may run SQL as an application role may set '
  'any context: the role is the trust boundary, the context is what it acts for. Settings written: '
  'citeledger.firm_id, citeledger.user_id, citeledger.permissions. Errors: 42501 while '
  'request.jwt.claims is set, so that a caller behind PostgREST cannot become another firm; 22023 '
  'for a permission that is null or not a name.';

revoke all on function citeledger.set_context(uuid, uuid, text[]) from public;
grant execute on function citeledger.set_context(uuid, uuid, text[]) to citeledger_reader;
grant execute on function citeledger.set_context(uuid, uuid, text[]) to citeledger_app;
grant execute on function citeledger.set_context(uuid, uuid, text[]) to citeledger_admin;

commit;
