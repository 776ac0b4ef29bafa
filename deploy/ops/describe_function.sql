-- Deploy citeledger:ops/describe_function to pg
-- requires: ops/describe_function@v0.1.0

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.describe_function(
  p_function regprocedure
)
returns setof text
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
-- What is compared must not depend on how the session has names quoted.
set quote_all_identifiers = off
as $$
begin
  return query
  select line.line
  from pg_proc as f
  join pg_language as l on l.oid = f.prolang
  cross join lateral (
    values
      (format('owner %s', pg_get_userbyid(f.proowner))),
      (format('arguments %s', coalesce(nullif(pg_get_function_arguments(f.oid), ''), 'none'))),
      (format('returns %s', pg_get_function_result(f.oid))),
      (format('language %s', l.lanname)),
      (case f.provolatile when 'i' then 'immutable' when 's' then 'stable' else 'volatile' end),
      (case f.proparallel
        when 's' then 'parallel safe'
        when 'r' then 'parallel restricted'
        else 'parallel unsafe'
      end),
      (case when f.prosecdef then 'security definer' else 'security invoker' end),
      -- Less what ops/jit_off adds when all functions are there, and verifies.
      (format(
        'set %s',
        coalesce(
          nullif(array_to_string(array_remove(f.proconfig, 'jit=off'), '; '), ''), 'nothing'
        )
      )),
      (case when f.proisstrict then 'strict' end)
  ) as line (line)
  where f.oid = p_function and line.line is not null
  union all
  -- Null is the built-in default, which lets PUBLIC execute.
  select format(
    'grant execute to %s',
    case when g.grantee = 0 then 'public' else quote_ident(pg_get_userbyid(g.grantee)) end
  )
  from pg_proc as f
  cross join lateral aclexplode(coalesce(f.proacl, acldefault('f', f.proowner))) as g
  where f.oid = p_function and g.grantee <> f.proowner
  union all
  select 'uncommented'
  where coalesce(obj_description(p_function, 'pg_proc'), '') !~ '[^[:space:]]';
end
$$;

comment on function citeledger_private.describe_function(regprocedure) is
  'What a function is, a line for each fact: owner, arguments, result, language, volatility, '
  'parallel label, security, settings but jit = off, who else than the owner may execute it, and '
  'whether it has no comment. The same on every PostgreSQL version. Source: the system catalogs.';

revoke all on function citeledger_private.describe_function(regprocedure) from public;

commit;
