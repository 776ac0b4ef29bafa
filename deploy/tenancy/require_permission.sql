-- Deploy citeledger:tenancy/require_permission to pg
-- requires: tenancy/has_permission

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.require_permission(
  p_permission text
)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  if not citeledger.has_permission(p_permission) then
    raise exception using
      errcode = '42501',
      message = 'permission denied by the citeledger context',
      detail = format(
        'The context does not hold the permission %s.', quote_nullable(left(p_permission, 64))
      ),
      hint = 'Set it with citeledger.set_context, or in permissions of the request''s claims.';
  end if;
end
$$;

comment on function citeledger.require_permission(text) is
  'Returns when has_permission(p_permission) holds, and raises otherwise. Errors: 42501 when the '
  'context lacks the permission; 22P02 when claims are consulted and are no JSON.';

revoke all on function citeledger.require_permission(text) from public;
grant execute on function citeledger.require_permission(text) to citeledger_reader;
grant execute on function citeledger.require_permission(text) to citeledger_app;
grant execute on function citeledger.require_permission(text) to citeledger_admin;

commit;
