-- citeledger 0.2.0: the whole schema, made from sqitch.plan by tools/build_sql.py. Do not edit.
--
-- psql -X -v ON_ERROR_STOP=1 -1 -f sql/citeledger.sql
--
-- Run it as the owner of the database, who needs CREATEROLE where the citeledger roles are absent.
-- The whole file is one transaction (-1): the next statement fails where there is none.

savepoint citeledger_needs_one_transaction;
release savepoint citeledger_needs_one_transaction;

-- tenancy/roles

set local search_path = pg_catalog, pg_temp;

-- Roles belong to the whole cluster, so they may already be here from another database. Runs as the
-- deployer, who needs CREATEROLE only for a role that is absent. Everything later runs as
-- citeledger_owner, which is why the deployer must be able to SET ROLE to it.
do $$
declare
  v_role record;
  v_can_become_owner boolean;
begin
  for v_role in
    select *
    from (values
      (1, 'citeledger_owner',
        'Owns every object of citeledger; never a superuser, never exempt from row security.'),
      (2, 'citeledger_reader',
        'May execute what only reads and checks for itself: traces and citations. No table.'),
      (3, 'citeledger_app',
        'What an application writes in a turn or an ingest. Member of citeledger_reader.'),
      (4, 'citeledger_admin',
        'Onboards and erases firms, keeps walls, repairs. Member of citeledger_app.')
    ) as r (position, name, meaning)
    order by r.position
  loop
    if not exists (select from pg_catalog.pg_roles as r where r.rolname = v_role.name) then
      begin
        execute pg_catalog.format(
          'create role %I nologin nosuperuser nocreatedb nocreaterole noreplication nobypassrls',
          v_role.name
        );
        execute pg_catalog.format('comment on role %I is %L', v_role.name, v_role.meaning);
      exception
        -- Another database of this cluster is being deployed at this moment.
        when duplicate_object or unique_violation then
          null;
      end;
    end if;
  end loop;

  if exists (
    select
    from pg_catalog.pg_roles as r
    where r.rolname in (
        'citeledger_owner', 'citeledger_reader', 'citeledger_app', 'citeledger_admin')
      and (r.rolsuper or r.rolbypassrls or r.rolcanlogin)
  ) then
    raise exception using
      errcode = '55000',
      message = 'a citeledger role exists with attributes that it must not have',
      detail = 'citeledger roles must be NOLOGIN, NOSUPERUSER and NOBYPASSRLS.',
      hint = 'Have an administrator ALTER or DROP the role, then deploy again.';
  end if;

  if not pg_catalog.pg_has_role('citeledger_app', 'citeledger_reader', 'member') then
    grant citeledger_reader to citeledger_app;
  end if;
  if not pg_catalog.pg_has_role('citeledger_admin', 'citeledger_app', 'member') then
    grant citeledger_app to citeledger_admin;
  end if;

  -- From PostgreSQL 16 on, whoever creates a role is its member but cannot SET ROLE to it.
  if pg_catalog.current_setting('server_version_num')::integer >= 160000 then
    v_can_become_owner := pg_catalog.pg_has_role(current_user, 'citeledger_owner', 'SET')
      and pg_catalog.pg_has_role(current_user, 'citeledger_owner', 'USAGE');
  else
    v_can_become_owner := pg_catalog.pg_has_role(current_user, 'citeledger_owner', 'USAGE');
  end if;
  if not v_can_become_owner then
    begin
      execute pg_catalog.format('grant citeledger_owner to %I', current_user);
    exception
      when insufficient_privilege then
        raise exception using
          errcode = '42501',
          message = 'the deployer cannot become citeledger_owner',
          detail = 'The role citeledger_owner exists, and the deployer may not grant it to itself.',
          hint = 'Have an administrator run: grant citeledger_owner to the deploying role.';
    end;
  end if;
end
$$;

reset role;

-- tenancy/schemas

-- As the deployer: CREATE on the database is the deployer's, not the owner role's.
create schema citeledger authorization citeledger_owner;
create schema citeledger_private authorization citeledger_owner;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

comment on schema citeledger is
  'citeledger: the ledger of the sources that assistant turns used, and the verdict of each turn. '
  'Tables and public functions; every access is granted by name, none to PUBLIC.';
comment on schema citeledger_private is
  'citeledger: helpers and trigger functions. No role but the owner may look names up in it.';

-- A new function is executable by PUBLIC unless told otherwise; here none ever is, not even for the
-- moment between its creation and its revoke, and not after it was dropped and created again.
alter default privileges for role citeledger_owner revoke execute on functions from public;
alter default privileges for role citeledger_owner revoke usage on types from public;

grant usage on schema citeledger to citeledger_reader;
grant usage on schema citeledger to citeledger_app;
grant usage on schema citeledger to citeledger_admin;

reset role;

-- ops/describe_relation

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.describe_relation(
  p_relation regclass
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
  select format('owner %s', pg_get_userbyid(c.relowner))
  from pg_class as c
  where c.oid = p_relation
  union all
  select format(
    'row security %s',
    case
      when c.relrowsecurity and c.relforcerowsecurity then 'forced'
      when c.relrowsecurity then 'enabled'
      else 'off'
    end
  )
  from pg_class as c
  where c.oid = p_relation
  union all
  select concat_ws(
    ' ',
    'column', quote_ident(a.attname), format_type(a.atttypid, a.atttypmod),
    case when a.attnotnull then 'not null' end,
    case
      when a.attgenerated = 's' then 'generated ' || pg_get_expr(d.adbin, d.adrelid)
      else 'default ' || pg_get_expr(d.adbin, d.adrelid)
    end,
    case when a.attstattarget = 0 then 'without statistics' end
  )
  from pg_attribute as a
  left join pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum
  where a.attrelid = p_relation and a.attnum > 0 and not a.attisdropped
  union all
  -- Since PostgreSQL 18 not null is a constraint too; the column's line says it on every version.
  select concat_ws(' ', 'constraint', quote_ident(k.conname), pg_get_constraintdef(k.oid))
  from pg_constraint as k
  where k.conrelid = p_relation and k.contype <> 'n'
  union all
  select concat_ws(
    ' ',
    'index', pg_get_indexdef(i.indexrelid), case when not i.indisvalid then 'invalid' end
  )
  from pg_index as i
  where i.indrelid = p_relation
    and not exists (select from pg_constraint as k where k.conindid = i.indexrelid
      and k.contype in ('p', 'u', 'x'))
  union all
  select concat_ws(
    ' ',
    'trigger', pg_get_triggerdef(t.oid),
    case t.tgenabled
      when 'O' then null
      when 'D' then 'disabled'
      when 'R' then 'enabled for replicas only'
      else 'enabled always'
    end
  )
  from pg_trigger as t
  where t.tgrelid = p_relation and not t.tgisinternal
  union all
  select concat_ws(
    ' ',
    'policy', quote_ident(p.polname),
    case when p.polpermissive then 'permissive' else 'restrictive' end,
    'for',
    case p.polcmd
      when '*' then 'all'
      when 'r' then 'select'
      when 'a' then 'insert'
      when 'w' then 'update'
      else 'delete'
    end,
    'to',
    (
      select string_agg(
        case when r.role = 0 then 'public' else pg_get_userbyid(r.role)::text end, ', '
        order by r.role
      )
      from unnest(p.polroles) as r (role)
    ),
    'using ' || pg_get_expr(p.polqual, p.polrelid),
    'with check ' || pg_get_expr(p.polwithcheck, p.polrelid)
  )
  from pg_policy as p
  where p.polrelid = p_relation
  union all
  select format(
    'grant %s to %s',
    string_agg(lower(g.privilege_type collate "C"), ', ' order by g.privilege_type collate "C"),
    case when g.grantee = 0 then 'public' else quote_ident(pg_get_userbyid(g.grantee)) end
  )
  from pg_class as c
  cross join lateral aclexplode(c.relacl) as g
  where c.oid = p_relation and g.grantee <> c.relowner
  group by g.grantee
  union all
  select format(
    'grant %s (%s) to %s',
    lower(g.privilege_type collate "C"),
    string_agg(quote_ident(a.attname), ', ' order by a.attname collate "C"),
    case when g.grantee = 0 then 'public' else quote_ident(pg_get_userbyid(g.grantee)) end
  )
  from pg_attribute as a
  join pg_class as c on c.oid = a.attrelid
  cross join lateral aclexplode(a.attacl) as g
  where a.attrelid = p_relation
    and a.attnum > 0
    and not a.attisdropped
    and g.grantee <> c.relowner
  group by g.grantee, g.privilege_type
  union all
  select 'uncommented ' || o.what
  from (
    select 'table', 'pg_class'::regclass, p_relation::oid, 0
    union all
    select 'column ' || quote_ident(a.attname), 'pg_class'::regclass, a.attrelid, a.attnum
    from pg_attribute as a
    where a.attrelid = p_relation and a.attnum > 0 and not a.attisdropped
    union all
    select 'constraint ' || quote_ident(k.conname), 'pg_constraint'::regclass, k.oid, 0
    from pg_constraint as k
    where k.conrelid = p_relation and k.contype <> 'n'
    union all
    select 'index ' || quote_ident(c.relname), 'pg_class'::regclass, c.oid, 0
    from pg_index as i
    join pg_class as c on c.oid = i.indexrelid
    where i.indrelid = p_relation
      and not exists (select from pg_constraint as k where k.conindid = i.indexrelid
        and k.contype in ('p', 'u', 'x'))
    union all
    select 'trigger ' || quote_ident(t.tgname), 'pg_trigger'::regclass, t.oid, 0
    from pg_trigger as t
    where t.tgrelid = p_relation and not t.tgisinternal
    union all
    select 'policy ' || quote_ident(p.polname), 'pg_policy'::regclass, p.oid, 0
    from pg_policy as p
    where p.polrelid = p_relation
  ) as o (what, class_id, object_id, column_number)
  where not exists (
    select
    from pg_description as d
    where d.classoid = o.class_id
      and d.objoid = o.object_id
      and d.objsubid = o.column_number
      and d.description ~ '[^[:space:]]'
  );
end
$$;

comment on function citeledger_private.describe_relation(regclass) is
  'What a table is, a line for each fact: owner, row security, columns, constraints, indexes, '
  'triggers, policies, grants to others than the owner, and what of it has no comment. The same on '
  'every PostgreSQL version. Source: the system catalogs.';

revoke all on function citeledger_private.describe_relation(regclass) from public;

reset role;

-- ops/describe_function@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.describe_function(
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
      (format('set %s', coalesce(array_to_string(f.proconfig, '; '), 'nothing'))),
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
  'parallel label, security, settings, who else than the owner may execute it, and whether it has '
  'no comment. The same on every PostgreSQL version. Source: the system catalogs.';

revoke all on function citeledger_private.describe_function(regprocedure) from public;

reset role;

-- ops/verify_object

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.verify_lines(
  p_object text,
  p_found text[],
  p_expected text,
  p_closed text
)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_expected text[];
  v_found text[];
  v_missing text[];
  v_unexpected text[];
begin
  -- A line that is indented by four or more blanks continues the one before.
  v_expected := array(
    select regexp_replace(btrim(l.line), '[[:space:]]+', ' ', 'g')
    from string_to_table(regexp_replace(p_expected, E'\n {4,}', ' ', 'g'), E'\n') as l (line)
    where btrim(l.line) <> ''
  );
  v_found := array(
    select regexp_replace(f.line, '[[:space:]]+', ' ', 'g') from unnest(p_found) as f (line)
  );
  v_missing := array(select unnest(v_expected) except select unnest(v_found) order by 1);
  v_unexpected := array(
    select f.line
    from (select unnest(v_found) except select unnest(v_expected)) as f (line)
    where f.line ~ p_closed
    order by 1
  );
  if cardinality(v_missing) + cardinality(v_unexpected) > 0 then
    raise exception using
      errcode = '55000',
      message = format('%s is not as it was deployed', p_object),
      detail = concat_ws(
        E'\n',
        'Missing: ' || nullif(array_to_string(v_missing, E'\n  '), ''),
        'Unexpected: ' || nullif(array_to_string(v_unexpected, E'\n  '), '')
      ),
      hint = 'Somebody changed it by hand: put it back, or revert and deploy the change.';
  end if;
end
$$;

create function citeledger_private.verify_relation(
  p_relation regclass,
  p_expected text
)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  -- A later change may add a column, an index or a trigger, but nothing may open another door.
  perform citeledger_private.verify_lines(
    p_relation::text,
    array(select citeledger_private.describe_relation(p_relation)),
    p_expected,
    '^(owner|row security|grant|uncommented) |^policy [^ ]+ permissive '
  );
end
$$;

create function citeledger_private.verify_parts(
  p_relation regclass,
  p_expected text
)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  perform citeledger_private.verify_lines(
    p_relation::text,
    array(select citeledger_private.describe_relation(p_relation)),
    p_expected,
    '^uncommented '
  );
end
$$;

create function citeledger_private.verify_function(
  p_function regprocedure,
  p_expected text
)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  perform citeledger_private.verify_lines(
    p_function::text,
    array(select citeledger_private.describe_function(p_function)),
    p_expected,
    ''
  );
end
$$;

comment on function citeledger_private.verify_lines(text, text[], text, text) is
  'Compares what was found of an object with the lines of p_expected; a found line that is not '
  'expected is an error where it matches the pattern p_closed. In p_expected a line indented by '
  'four or more blanks continues the one before. Errors: 55000 naming the lines.';
comment on function citeledger_private.verify_relation(regclass, text) is
  'For the verify scripts: the table is as p_expected says, a line for each fact (see '
  'describe_relation), with no other owner, grant or permissive policy and everything commented. '
  'Errors: 55000 naming the lines.';
comment on function citeledger_private.verify_parts(regclass, text) is
  'For the verify scripts of what is added to a table of another change: the lines of p_expected '
  'are there, and everything is commented. Errors: 55000 naming the lines.';
comment on function citeledger_private.verify_function(regprocedure, text) is
  'For the verify scripts: the function is exactly as p_expected says, a line for each fact (see '
  'describe_function). Errors: 55000 naming the lines.';

revoke all on function citeledger_private.verify_lines(text, text[], text, text) from public;
revoke all on function citeledger_private.verify_relation(regclass, text) from public;
revoke all on function citeledger_private.verify_parts(regclass, text) from public;
revoke all on function citeledger_private.verify_function(regprocedure, text) from public;

reset role;

-- tenancy/current_firm_id@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.current_firm_id()
returns uuid
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_setting text := current_setting('citeledger.firm_id', true);
  v_claims text;
begin
  -- SET LOCAL leaves '' behind when its transaction ends, so '' means "not set", like null.
  if v_setting is null or v_setting = '' then
    v_claims := current_setting('request.jwt.claims', true);
    if v_claims is null or v_claims = '' then
      return null;
    end if;
    v_setting := v_claims::jsonb ->> 'firm_id';
  end if;
  -- The form is looked at before the cast: an exception block would rule out parallel plans.
  -- Dashes in their places and else nothing but digits: twice as fast as a regular expression, and
  -- row security calls this for every table of every statement.
  if v_setting like '________-____-____-____-____________'
    and translate(v_setting, '0123456789abcdefABCDEF', '') = '----'
  then
    return v_setting::uuid;
  end if;
  return null;
end
$$;

comment on function citeledger.current_firm_id() is
  'The firm (tenant) of the current context, or null when there is none. Source: the setting '
  'citeledger.firm_id (see set_context); only when that is unset or empty, firm_id of the JSON '
  'object in request.jwt.claims. A malformed uuid is no context, and a malformed setting does not '
  'fall back to the claims. Errors: 22P02 when the claims are consulted and are no JSON.';

revoke all on function citeledger.current_firm_id() from public;
-- Defaults and policies of the tables call it as the querying role.
grant execute on function citeledger.current_firm_id() to citeledger_reader;
grant execute on function citeledger.current_firm_id() to citeledger_app;
grant execute on function citeledger.current_firm_id() to citeledger_admin;

reset role;

-- tenancy/current_user_id@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.current_user_id()
returns uuid
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm text := current_setting('citeledger.firm_id', true);
  v_setting text;
  v_claims text;
begin
  -- Which of the two sources holds is decided by the firm alone, so that they are never mixed.
  if v_firm is not null and v_firm <> '' then
    v_setting := current_setting('citeledger.user_id', true);
  else
    v_claims := current_setting('request.jwt.claims', true);
    if v_claims is null or v_claims = '' then
      return null;
    end if;
    v_setting := v_claims::jsonb ->> 'sub';
  end if;
  -- Dashes in their places and else nothing but digits, as in current_firm_id.
  if v_setting like '________-____-____-____-____________'
    and translate(v_setting, '0123456789abcdefABCDEF', '') = '----'
  then
    return v_setting::uuid;
  end if;
  return null;
end
$$;

comment on function citeledger.current_user_id() is
  'The person of the current context, or null when there is none; decides which walled matters are '
  'visible. Source: the setting citeledger.user_id when citeledger.firm_id is set, else sub of the '
  'JSON object in request.jwt.claims; never a mix of the two. A malformed uuid is nobody. Errors: '
  '22P02 when the claims are consulted and are no JSON.';

revoke all on function citeledger.current_user_id() from public;
grant execute on function citeledger.current_user_id() to citeledger_reader;
grant execute on function citeledger.current_user_id() to citeledger_app;
grant execute on function citeledger.current_user_id() to citeledger_admin;

reset role;

-- tenancy/has_permission@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.has_permission(
  p_permission text
)
returns boolean
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm text := current_setting('citeledger.firm_id', true);
  v_setting text;
  v_claims jsonb;
begin
  -- Without a firm there is nothing that a permission could be for.
  if p_permission is null or citeledger.current_firm_id() is null then
    return false;
  end if;

  if v_firm is not null and v_firm <> '' then
    v_setting := current_setting('citeledger.permissions', true);
    -- Only the plain form of a text[] literal counts; anything else grants nothing. Splitting it by
    -- hand cannot fail, a cast could.
    if v_setting is null
      or v_setting !~ (
        '^[{](?:[A-Za-z0-9._:-]+|"[A-Za-z0-9._:-]+")'
        || '(?:,(?:[A-Za-z0-9._:-]+|"[A-Za-z0-9._:-]+"))*[}]$'
      )
    then
      return false;
    end if;
    return p_permission = any(
      string_to_array(replace(btrim(v_setting, '{}'), '"', ''), ',')
    );
  end if;

  v_claims := current_setting('request.jwt.claims', true)::jsonb -> 'permissions';
  if jsonb_typeof(v_claims) is distinct from 'array' then
    return false;
  end if;
  return v_claims ? p_permission;
end
$$;

comment on function citeledger.has_permission(text) is
  'Whether the current context holds the permission p_permission, compared exactly. False without '
  'a firm, for null, and for settings or claims that are malformed. Source: the setting '
  'citeledger.permissions (a text[] literal) when citeledger.firm_id is set, else the array '
  'permissions in request.jwt.claims. Errors: 22P02 when the claims are consulted and are no JSON.';

revoke all on function citeledger.has_permission(text) from public;
grant execute on function citeledger.has_permission(text) to citeledger_reader;
grant execute on function citeledger.has_permission(text) to citeledger_app;
grant execute on function citeledger.has_permission(text) to citeledger_admin;

reset role;

-- tenancy/require_permission

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

reset role;

-- tenancy/set_context@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.set_context(
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
begin
  -- Behind PostgREST the claims are the caller's identity; our settings would win over them.
  if current_setting('request.jwt.claims', true) <> '' then
    raise exception using
      errcode = '42501',
      message = 'the context comes from request.jwt.claims and cannot be set',
      detail = 'request.jwt.claims is set in this session.',
      hint = 'Put firm_id, sub and permissions into the claims instead.';
  end if;

  if array_ndims(v_permissions) > 1
    or exists (
      select
      from unnest(v_permissions) as p (permission)
      where p.permission is null or p.permission !~ '^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$'
    )
  then
    raise exception using
      errcode = '22023',
      message = 'p_permissions is not a list of permission names',
      detail = 'A permission is a letter or digit followed by at most 63 letters, digits or ._:- .',
      hint = 'Pass for example array[''matters:read''].';
  end if;

  -- SET LOCAL rather than set_config(): the settings end with the transaction either way, but only
  -- the statement is forwarded by a distributed database to its workers.
  execute format('set local citeledger.firm_id = %L', coalesce(p_firm_id::text, ''));
  execute format('set local citeledger.user_id = %L', coalesce(p_user_id::text, ''));
  execute format('set local citeledger.permissions = %L', v_permissions::text);
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

reset role;

-- tenancy/acting_firm

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.enter_firm(
  p_firm_id uuid
)
returns text
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_outer text;
begin
  if citeledger.current_firm_id() = p_firm_id then
    return null;
  end if;
  v_outer := coalesce(current_setting('citeledger.firm_id', true), '');
  execute format('set local citeledger.firm_id = %L', p_firm_id);
  return v_outer;
end
$$;

create function citeledger_private.leave_firm(
  p_outer text
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_outer is not null then
    execute format('set local citeledger.firm_id = %L', p_outer);
  end if;
end
$$;

comment on function citeledger_private.enter_firm(uuid) is
  'Makes p_firm_id the firm of the context while a trigger works for that firm''s rows, whoever '
  'wrote them. Returns what leave_firm needs to put the writer''s own context back: null when the '
  'context is that firm already, else the earlier value of citeledger.firm_id. An error in between '
  'needs no leave_firm: the setting is undone with the subtransaction.';
comment on function citeledger_private.leave_firm(text) is
  'Puts back the context that enter_firm replaced. p_outer: what enter_firm returned.';

revoke all on function citeledger_private.enter_firm(uuid) from public;
revoke all on function citeledger_private.leave_firm(text) from public;

reset role;

-- tenancy/firms

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.firms (
  id uuid not null default gen_random_uuid(),
  name text not null,
  created_at timestamptz not null default now(),
  constraint firms_pkey primary key (id),
  constraint firms_name_is_not_blank check (name ~ '[^[:space:]]' and length(name) <= 200)
);

-- Enabled, not forced: the owner's functions sweep firm by firm, everybody else sees the own firm.
alter table citeledger.firms enable row level security;

create policy firms_are_their_own on citeledger.firms
  using (id = (select citeledger.current_firm_id()))
  with check (id = (select citeledger.current_firm_id()));

-- No statistics of content: an estimate would tell one firm about the texts of another.
alter table citeledger.firms alter column name set statistics 0;

comment on table citeledger.firms is
  'The tenants, one row each. Made by create_firm, erased with all that is theirs by delete_firm.';
comment on column citeledger.firms.id is 'The firm: the firm_id of every row of every other table.';
comment on column citeledger.firms.name is 'Display name: 1 to 200 characters, not blank.';
comment on column citeledger.firms.created_at is 'When the firm was onboarded.';
comment on constraint firms_pkey on citeledger.firms is 'One row for each tenant.';
comment on constraint firms_name_is_not_blank on citeledger.firms is
  'A name has a visible character and at most 200 characters.';
comment on policy firms_are_their_own on citeledger.firms is
  'A role sees the firm of its context and no other; without a context none.';

revoke all on table citeledger.firms from public;
grant select on table citeledger.firms to citeledger_app;

reset role;

-- tenancy/firm_ids

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

reset role;

-- tenancy/create_firm

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.create_firm(
  p_name text
)
returns uuid
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid;
begin
  if p_name is null or p_name !~ '[^[:space:]]' or length(p_name) > 200 then
    raise exception using
      errcode = '22023',
      message = 'p_name is not a name for a firm',
      detail = format(
        'p_name is %s.',
        case
          when p_name is null then 'null'
          when length(p_name) > 200 then length(p_name) || ' characters long'
          else 'blank'
        end
      ),
      hint = 'Pass 1 to 200 characters, not all of them white space.';
  end if;

  insert into citeledger.firms (name)
  values (p_name)
  returning id into v_firm_id;
  return v_firm_id;
end
$$;

comment on function citeledger.create_firm(text) is
  'Onboards a firm and returns its id. p_name: 1 to 200 characters, not blank; names may repeat. '
  'For citeledger_admin. Errors: 22023 for a blank, null or longer name.';

revoke all on function citeledger.create_firm(text) from public;
grant execute on function citeledger.create_firm(text) to citeledger_admin;

reset role;

-- tenancy/projects

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.projects (
  firm_id uuid not null default citeledger.current_firm_id(),
  id uuid not null default gen_random_uuid(),
  matter_number text not null,
  name text not null,
  created_at timestamptz not null default now(),
  constraint projects_pkey primary key (firm_id, id),
  constraint projects_matter_number_key unique (firm_id, matter_number),
  constraint projects_firm_fkey foreign key (firm_id)
    references citeledger.firms (id) on delete cascade,
  constraint projects_matter_number_is_short check (
    matter_number ~ '[^[:space:]]' and length(matter_number) <= 200
  )
);

alter table citeledger.projects enable row level security;
alter table citeledger.projects force row level security;

create policy projects_of_the_firm on citeledger.projects
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

-- No statistics of content: an estimate would tell one firm about the texts of another.
alter table citeledger.projects alter column matter_number set statistics 0;
alter table citeledger.projects alter column name set statistics 0;

comment on table citeledger.projects is
  'Legal matters, each of one firm. A matter with members (project_members) is walled.';
comment on column citeledger.projects.firm_id is 'The tenant; default the firm of the context.';
comment on column citeledger.projects.id is 'The matter.';
comment on column citeledger.projects.matter_number is
  'The firm''s own number of the matter, unique in the firm: 1 to 200 characters, not blank.';
comment on column citeledger.projects.name is 'Display name of the matter.';
comment on column citeledger.projects.created_at is 'When the row was recorded.';
comment on constraint projects_pkey on citeledger.projects is 'A matter is known within its firm.';
comment on constraint projects_matter_number_key on citeledger.projects is
  'A firm uses a matter number once.';
comment on constraint projects_firm_fkey on citeledger.projects is
  'A matter goes with its firm.';
comment on constraint projects_matter_number_is_short on citeledger.projects is
  'A matter number has a visible character and at most 200 characters.';
comment on policy projects_of_the_firm on citeledger.projects is
  'Only rows of the firm of the context, to read and to write.';

revoke all on table citeledger.projects from public;
grant select, insert on table citeledger.projects to citeledger_app;
grant select, insert, delete on table citeledger.projects to citeledger_admin;

reset role;

-- tenancy/project_members

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.project_members (
  firm_id uuid not null default citeledger.current_firm_id(),
  project_id uuid not null,
  user_id uuid not null,
  created_at timestamptz not null default now(),
  constraint project_members_pkey primary key (firm_id, project_id, user_id),
  constraint project_members_project_fkey foreign key (firm_id, project_id)
    references citeledger.projects (firm_id, id) on delete cascade
);

alter table citeledger.project_members enable row level security;
alter table citeledger.project_members force row level security;

create policy project_members_of_the_firm on citeledger.project_members
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

comment on table citeledger.project_members is
  'Ethical walls: a matter with rows here is visible to those people only, one without to the '
  'whole firm. Kept by citeledger_admin; unreadable to the application, which would learn of '
  'matters that its user may not know of.';
comment on column citeledger.project_members.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.project_members.project_id is 'The walled matter.';
comment on column citeledger.project_members.user_id is
  'Who may see it: compared with current_user_id().';
comment on column citeledger.project_members.created_at is 'When the person was admitted.';
comment on constraint project_members_pkey on citeledger.project_members is
  'A person is a member of a matter once.';
comment on constraint project_members_project_fkey on citeledger.project_members is
  'A wall goes with its matter, and never stands around another firm''s.';
comment on policy project_members_of_the_firm on citeledger.project_members is
  'Only rows of the firm of the context, to read and to write.';

revoke all on table citeledger.project_members from public;
grant select, insert, update, delete on table citeledger.project_members to citeledger_admin;

reset role;

-- tenancy/walls@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.is_behind_wall(
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
  return exists (
      select
      from citeledger.project_members as m
      where m.firm_id = p_firm_id and m.project_id = p_project_id
    )
    and not exists (
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
-- The policy calls it as the querying role, which may not look it up by name: the schema is closed.
grant execute on function citeledger_private.is_behind_wall(uuid, uuid) to citeledger_app;
grant execute on function citeledger_private.is_behind_wall(uuid, uuid) to citeledger_admin;

create policy projects_behind_a_wall on citeledger.projects
  as restrictive
  using (not citeledger_private.is_behind_wall(firm_id, id))
  with check (true);

comment on policy projects_behind_a_wall on citeledger.projects is
  'A matter with members is visible to them only. Restrictive: it narrows the firm''s policy, and '
  'no other policy can widen it.';

reset role;

-- graph/normalize_doi

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.percent_decode(
  p_text text
)
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_hex text := '';
  v_piece text;
  v_bytes bytea;
  v_decoded text := '';
begin
  if strpos(p_text, '%') = 0 then
    return p_text;
  end if;

  -- Runs of encoded bytes are decoded together, for a character may take several; what lies between
  -- them is copied. A percent sign that encodes nothing stands for itself.
  for v_piece in
    select p.piece[1]
    from regexp_matches(p_text collate "C", '(?:%[0-9A-Fa-f]{2})+|[^%]+|%', 'g') as p (piece)
  loop
    if v_piece collate "C" !~ '^%[0-9A-Fa-f]{2}' then
      v_decoded := v_decoded || v_piece;
      continue;
    end if;
    v_hex := lower(replace(v_piece, '%', '') collate "C");
    -- Well-formed UTF-8 and nothing else: no overlong form, no surrogate, no NUL.
    if v_hex collate "C" !~ (
      '^(?:(?!00)[0-7][0-9a-f]|c[2-9a-f][89ab][0-9a-f]|d[0-9a-f][89ab][0-9a-f]'
      || '|e0[ab][0-9a-f][89ab][0-9a-f]|e[1-9abcef][89ab][0-9a-f][89ab][0-9a-f]'
      || '|ed[89][0-9a-f][89ab][0-9a-f]|f0[9ab][0-9a-f](?:[89ab][0-9a-f]){2}'
      || '|f[1-3](?:[89ab][0-9a-f]){3}|f48[0-9a-f](?:[89ab][0-9a-f]){2})+$'
    ) then
      return null;
    end if;
    for v_bytes in
      select decode(c.hex[1], 'hex')
      from regexp_matches(
        v_hex collate "C",
        '[0-7][0-9a-f]|[cd][0-9a-f]{3}|e[0-9a-f]{5}|f[0-9a-f]{7}',
        'g'
      ) as c (hex)
    loop
      v_decoded := v_decoded || chr(
        case length(v_bytes)
          when 1 then get_byte(v_bytes, 0)
          when 2 then
            ((get_byte(v_bytes, 0) & 31) << 6) | (get_byte(v_bytes, 1) & 63)
          when 3 then
            ((get_byte(v_bytes, 0) & 15) << 12)
            | ((get_byte(v_bytes, 1) & 63) << 6)
            | (get_byte(v_bytes, 2) & 63)
          else
            ((get_byte(v_bytes, 0) & 7) << 18)
            | ((get_byte(v_bytes, 1) & 63) << 12)
            | ((get_byte(v_bytes, 2) & 63) << 6)
            | (get_byte(v_bytes, 3) & 63)
        end
      );
    end loop;
  end loop;
  return v_decoded;
end
$$;

create function citeledger.normalize_doi(
  p_doi text
)
returns text
language plpgsql
immutable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  -- White space in every script, and the zero-width characters that travel with copied text.
  v_blanks constant text :=
    E'\u0009\u000a\u000b\u000c\u000d\u0020\u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005'
    || E'\u2006\u2007\u2008\u2009\u200a\u200b\u2028\u2029\u202f\u205f\u3000\ufeff';
  v_doi text;
  v_prefix text;
  v_is_url boolean := false;
  -- Opening, closing, opening, closing: four kinds.
  v_brackets constant text := '()[]{}<>';
  v_body text;
  v_tail text;
  v_balance integer[];
  v_letter text;
  v_position integer;
  v_bracket integer;
  v_kind integer;
  v_end integer := 0;
begin
  -- No DOI of 2048 bytes grows to more, however it is encoded; beyond it nothing is looked at.
  if p_doi is null or octet_length(p_doi) > 8192 then
    return null;
  end if;
  -- What nearly every list holds: nothing to drop, nothing to decode, only letters to lower.
  if p_doi collate "C" ~ '^10[.][0-9]+(?:[.][0-9]+)*/[A-Za-z0-9._/-]*[A-Za-z0-9]$'
    and octet_length(p_doi) <= 2048
  then
    return translate(p_doi, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz');
  end if;

  v_doi := btrim(p_doi, v_blanks);
  loop
    v_prefix := substring(
      v_doi collate "C"
      from '^(?:[dD][oO][iI]:|(?:[hH][tT][tT][pP][sS]?://)?(?:[dD][xX][.]|[wW][wW][wW][.])?'
        || '[dD][oO][iI][.][oO][rR][gG]/)'
    );
    exit when v_prefix is null;
    v_is_url := v_is_url or right(v_prefix, 1) = '/';
    v_doi := ltrim(substr(v_doi, length(v_prefix) + 1), v_blanks);
  end loop;

  if v_is_url then
    v_doi := split_part(split_part(v_doi, '#', 1), '?', 1);
    -- Once: what a DOI has encoded in itself stays encoded.
    v_doi := citeledger_private.percent_decode(v_doi);
  end if;

  -- ASCII letters alone, letter by letter: lower() would ask a locale.
  v_doi := translate(v_doi, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz');

  -- An ampersand that was escaped again and again is unescaped until nothing is left to do.
  while strpos(v_doi, '&amp;') > 0 loop
    v_doi := replace(v_doi, '&amp;', '&');
  end loop;
  v_doi := replace(replace(v_doi, '&lt;', '<'), '&gt;', '>');

  -- What follows a DOI in a sentence: punctuation, opening brackets, closing ones of no pair. So it
  -- ends with the last closing bracket that is balanced up to there, or before all of these.
  v_body := rtrim(v_doi, v_blanks || E'.,;:!?''"\u2019\u201d\u00bb\u2026' || v_brackets);
  v_tail := substr(v_doi, length(v_body) + 1);
  if v_tail <> '' then
    v_balance := array(
      select length(replace(v_body, substr(v_brackets, 2 * k.kind, 1), ''))
        - length(replace(v_body, substr(v_brackets, 2 * k.kind - 1, 1), ''))
      from generate_series(1, 4) as k (kind)
      order by k.kind
    );
    for v_letter, v_position in
      select t.letter, t.position::integer
      from string_to_table(v_tail, null) with ordinality as t (letter, position)
    loop
      v_bracket := strpos(v_brackets, v_letter);
      continue when v_bracket = 0;
      v_kind := (v_bracket + 1) / 2;
      if v_bracket % 2 = 1 then
        v_balance[v_kind] := v_balance[v_kind] + 1;
      else
        v_balance[v_kind] := v_balance[v_kind] - 1;
        if v_balance[v_kind] >= 0 then
          v_end := v_position;
        end if;
      end if;
    end loop;
    v_doi := v_body || left(v_tail, v_end);
  end if;

  if v_doi collate "C" !~ '^10[.][0-9]+(?:[.][0-9]+)*/.+$'
    or octet_length(v_doi) > 2048
    or length(translate(v_doi, v_blanks, '')) < length(v_doi)
  then
    return null;
  end if;
  return v_doi;
end
$$;

comment on function citeledger_private.percent_decode(text) is
  'The text with its percent sequences decoded once; null when they decode to NUL or to what is '
  'not UTF-8. A percent sign that encodes nothing stands for itself.';
comment on function citeledger.normalize_doi(text) is
  'The key of a DOI as printed, or null when the whole text is none; it does not search for a DOI '
  'inside other text. It trims; drops doi: and the resolvers doi.org/, dx.doi.org/, www.doi.org/ '
  'with or without http:// or https://, in any case; of a resolver''s address it drops ?query and '
  '#fragment and percent-decodes once; decodes &lt; &gt; &amp; until none is left; drops trailing '
  'white space, sentence punctuation and unbalanced brackets; and lowers ASCII letters, under no '
  'locale. A key is 10.registrant/suffix without white space, the registrant digits with dotted '
  'sub-divisions, at most 2048 bytes. Idempotent. Stored keys (documents.doi_key, '
  'document_references.doi_key) do not follow a change of this function by themselves.';

revoke all on function citeledger_private.percent_decode(text) from public;
revoke all on function citeledger.normalize_doi(text) from public;
-- The generated columns call it as the inserting role, which may not look into the private schema:
-- hence security definer.
grant execute on function citeledger.normalize_doi(text) to citeledger_reader;
grant execute on function citeledger.normalize_doi(text) to citeledger_app;
grant execute on function citeledger.normalize_doi(text) to citeledger_admin;

reset role;

-- cite/documents

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.documents (
  firm_id uuid not null default citeledger.current_firm_id(),
  id uuid not null default gen_random_uuid(),
  project_id uuid,
  title text not null,
  document_kind text not null default 'record',
  is_privileged boolean not null default false,
  deleted_at timestamptz,
  doi text,
  license_class text not null default 'unknown',
  source text not null default 'local',
  publication_year integer,
  doi_key text generated always as (citeledger.normalize_doi(doi)) stored,
  created_at timestamptz not null default now(),
  constraint documents_pkey primary key (firm_id, id),
  constraint documents_firm_fkey foreign key (firm_id)
    references citeledger.firms (id) on delete cascade,
  constraint documents_project_fkey foreign key (firm_id, project_id)
    references citeledger.projects (firm_id, id) on delete set null (project_id),
  constraint documents_document_kind_is_known check (
    document_kind in ('record', 'work_product', 'authority', 'publication')
  ),
  constraint documents_source_is_label check (source ~ '^[a-z][a-z0-9_]{0,31}$')
);

create index documents_project_idx on citeledger.documents (firm_id, project_id);
create index documents_doi_key_idx on citeledger.documents (firm_id, doi_key)
  where doi_key is not null;

alter table citeledger.documents enable row level security;
alter table citeledger.documents force row level security;

create policy documents_of_the_firm on citeledger.documents
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

-- No statistics of content, nor of what a firm reads: an estimate would tell one firm about
-- another.
alter table citeledger.documents alter column title set statistics 0;
alter table citeledger.documents alter column license_class set statistics 0;
alter table citeledger.documents alter column publication_year set statistics 0;
alter table citeledger.documents alter column doi set statistics 0;
alter table citeledger.documents alter column doi_key set statistics 0;

comment on table citeledger.documents is
  'Documents that citations point to. Only a live, non-privileged record of a visible matter can '
  'be cited.';
comment on column citeledger.documents.firm_id is 'The tenant; default the firm of the context.';
comment on column citeledger.documents.id is 'The document.';
comment on column citeledger.documents.project_id is
  'The matter that holds it; null for one of the whole firm, and after its matter was deleted.';
comment on column citeledger.documents.title is 'Display title.';
comment on column citeledger.documents.document_kind is
  'record (evidence of the matter), work_product, authority or publication.';
comment on column citeledger.documents.is_privileged is
  'Privileged: never cited, and its quotes are withheld from traces.';
comment on column citeledger.documents.deleted_at is
  'When it was withdrawn; null while it is live.';
comment on column citeledger.documents.doi is 'Its DOI as printed, or null.';
comment on column citeledger.documents.license_class is
  'Licence under which its text may be used; unknown until somebody looked.';
comment on column citeledger.documents.source is
  'Where the document came from: a label such as local or crossref.';
comment on column citeledger.documents.publication_year is 'Year of publication, or null.';
comment on column citeledger.documents.doi_key is
  'The DOI''s key by normalize_doi, by which references find the document; null when doi holds '
  'none.';
comment on column citeledger.documents.created_at is 'When the row was recorded.';
comment on constraint documents_pkey on citeledger.documents is
  'A document is known within its firm.';
comment on constraint documents_firm_fkey on citeledger.documents is
  'A document goes with its firm.';
comment on constraint documents_project_fkey on citeledger.documents is
  'A document belongs to a matter of its own firm; when the matter goes it belongs to none.';
comment on constraint documents_document_kind_is_known on citeledger.documents is
  'One of record, work_product, authority, publication.';
comment on constraint documents_source_is_label on citeledger.documents is
  'A label: a lower-case letter, then at most 31 lower-case letters, digits or underscores.';
comment on index citeledger.documents_project_idx is
  'The documents of a matter; the referencing side of documents_project_fkey.';
comment on index citeledger.documents_doi_key_idx is
  'Who holds a DOI: asked when a list names it.';
comment on policy documents_of_the_firm on citeledger.documents is
  'Only rows of the firm of the context, to read and to write.';

revoke all on table citeledger.documents from public;
grant select, insert on table citeledger.documents to citeledger_app;
grant update (
  project_id, title, document_kind, is_privileged, deleted_at, doi, license_class, source,
  publication_year
) on table citeledger.documents to citeledger_app;

reset role;

-- ledger/chats

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.chats (
  firm_id uuid not null default citeledger.current_firm_id(),
  id uuid not null default gen_random_uuid(),
  project_id uuid,
  title text,
  created_at timestamptz not null default now(),
  constraint chats_pkey primary key (firm_id, id),
  constraint chats_firm_fkey foreign key (firm_id)
    references citeledger.firms (id) on delete cascade,
  constraint chats_project_fkey foreign key (firm_id, project_id)
    references citeledger.projects (firm_id, id) on delete set null (project_id)
);

create index chats_project_idx on citeledger.chats (firm_id, project_id);

alter table citeledger.chats enable row level security;
alter table citeledger.chats force row level security;

create policy chats_of_the_firm on citeledger.chats
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

-- No statistics of content: an estimate would tell one firm about the texts of another.
alter table citeledger.chats alter column title set statistics 0;

comment on table citeledger.chats is
  'Conversations with an assistant, each in one matter or in none.';
comment on column citeledger.chats.firm_id is 'The tenant; default the firm of the context.';
comment on column citeledger.chats.id is 'The chat.';
comment on column citeledger.chats.project_id is
  'The matter that the chat is about; null for none, and after its matter was deleted.';
comment on column citeledger.chats.title is 'Display title, or null.';
comment on column citeledger.chats.created_at is 'When the row was recorded.';
comment on constraint chats_pkey on citeledger.chats is 'A chat is known within its firm.';
comment on constraint chats_firm_fkey on citeledger.chats is 'A chat goes with its firm.';
comment on constraint chats_project_fkey on citeledger.chats is
  'A chat is about a matter of its own firm; when the matter goes it is about none.';
comment on index citeledger.chats_project_idx is
  'The chats of a matter; the referencing side of chats_project_fkey.';
comment on policy chats_of_the_firm on citeledger.chats is
  'Only rows of the firm of the context, to read and to write.';

revoke all on table citeledger.chats from public;
grant select, insert on table citeledger.chats to citeledger_app;
grant select, insert, delete on table citeledger.chats to citeledger_admin;

reset role;

-- graph/lock_graph

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.lock_graph(
  p_firm_id uuid
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  -- Above read committed a list would be resolved against the documents of an old snapshot.
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    raise exception using
      errcode = '25000',
      message = 'the citation graph is written under read committed only',
      detail = format('The transaction is %s.', current_setting('transaction_isolation')),
      hint = 'Start the transaction with isolation level read committed.';
  end if;
  -- One lock for the graph of a firm: of two ingests at once the second resolves what the first
  -- committed, and as there is but one lock they cannot wait for each other.
  perform pg_advisory_xact_lock(hashtextextended('citeledger graph ' || p_firm_id, 0));
end
$$;

create function citeledger_private.queue_ingest(
  p_firm_id uuid
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  -- Before any lock of a row, whatever the ingest begins with: one that held rows and then came to
  -- the graph's lock could wait for another that has that lock and wants those rows. Above read
  -- committed the graph cannot be written, so there is nothing to come to later.
  if p_firm_id is not null
    and current_setting('transaction_isolation') in ('read committed', 'read uncommitted')
  then
    perform citeledger_private.lock_graph(p_firm_id);
  end if;
end
$$;

create function citeledger_private.before_ingest()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  -- Which rows it will be is not known yet: the context tells the firm.
  perform citeledger_private.queue_ingest(citeledger.current_firm_id());
  return null;
end
$$;

comment on function citeledger_private.lock_graph(uuid) is
  'Takes the advisory lock of a firm''s citation graph until the transaction ends. Every writer of '
  'edges and lists takes it first. Errors: 25000 above read committed.';
comment on function citeledger_private.queue_ingest(uuid) is
  'Takes the lock of a firm''s graph before an ingest locks its first row, so that of two ingests '
  'of a firm one waits for the other and never both. Does nothing for a null firm, or above read '
  'committed.';
comment on function citeledger_private.before_ingest() is
  'Trigger function: takes the lock of the graph of the context''s firm before the statement locks '
  'a row.';

revoke all on function citeledger_private.lock_graph(uuid) from public;
revoke all on function citeledger_private.queue_ingest(uuid) from public;
revoke all on function citeledger_private.before_ingest() from public;

reset role;

-- tenancy/delete_firm

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.delete_firm(
  p_firm_id uuid
)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_outer text;
begin
  -- The graph's lock before the firm's: an ingest takes them in this order.
  if current_setting('transaction_isolation') in ('read committed', 'read uncommitted') then
    perform citeledger_private.lock_graph(p_firm_id);
  end if;
  -- Locked first: no session can add a row to the firm while it goes.
  perform from citeledger.firms as f where f.id = p_firm_id for update;
  if not found then
    raise exception using
      errcode = 'P0002',
      message = 'firm not found',
      detail = 'No firm has the id p_firm_id.',
      hint = 'List the firms with citeledger.firm_ids.';
  end if;

  -- Everything of a tenant hangs on its firm by cascading foreign keys. Chats and documents go
  -- first: a cascade from the top would check what hangs deep below against what is gone already.
  v_outer := citeledger_private.enter_firm(p_firm_id);
  delete from citeledger.chats as c where c.firm_id = p_firm_id;
  delete from citeledger.documents as d where d.firm_id = p_firm_id;
  perform citeledger_private.leave_firm(v_outer);
  delete from citeledger.firms as f where f.id = p_firm_id;
end
$$;

comment on function citeledger.delete_firm(uuid) is
  'Erases a firm and every row of it in every table, sealed turns included. It cannot be undone. '
  'Locks every row of the firm until the transaction ends. For citeledger_admin. Errors: P0002 '
  'when there is no such firm.';

revoke all on function citeledger.delete_firm(uuid) from public;
grant execute on function citeledger.delete_firm(uuid) to citeledger_admin;

reset role;

-- ledger/messages

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.messages (
  firm_id uuid not null default citeledger.current_firm_id(),
  id uuid not null default gen_random_uuid(),
  chat_id uuid not null,
  role text not null,
  content text,
  finalized_at timestamptz,
  created_at timestamptz not null default now(),
  constraint messages_pkey primary key (firm_id, id),
  constraint messages_chat_message_key unique (firm_id, chat_id, id),
  constraint messages_chat_fkey foreign key (firm_id, chat_id)
    references citeledger.chats (firm_id, id) on delete cascade,
  constraint messages_role_is_known check (role in ('user', 'assistant', 'system', 'tool'))
);

alter table citeledger.messages enable row level security;
alter table citeledger.messages force row level security;

create policy messages_of_the_firm on citeledger.messages
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

-- No statistics of content: an estimate would tell one firm about the texts of another.
alter table citeledger.messages alter column content set statistics 0;

comment on table citeledger.messages is
  'Messages of a chat. An assistant''s message is a turn: it has sources and, once finalized, one '
  'ledger entry for each of them and one verdict.';
comment on column citeledger.messages.firm_id is 'The tenant; default the firm of the context.';
comment on column citeledger.messages.id is 'The message.';
comment on column citeledger.messages.chat_id is 'The chat that it belongs to.';
comment on column citeledger.messages.role is
  'Who speaks: user, assistant, system or tool. Only an assistant''s message gets a verdict.';
comment on column citeledger.messages.content is
  'Its text, or null. It cannot change once the message is finalized.';
comment on column citeledger.messages.finalized_at is
  'When the message was finalized; null while it is being written. Once set it stays.';
comment on column citeledger.messages.created_at is 'When the row was recorded.';
comment on constraint messages_pkey on citeledger.messages is 'A message is known within its firm.';
comment on constraint messages_chat_message_key on citeledger.messages is
  'Lets the ledger and the gate reference chat and message at once, so that they cannot disagree. '
  'Serves the messages of a chat and the referencing side of messages_chat_fkey.';
comment on constraint messages_chat_fkey on citeledger.messages is 'A message goes with its chat.';
comment on constraint messages_role_is_known on citeledger.messages is
  'One of user, assistant, system, tool.';
comment on policy messages_of_the_firm on citeledger.messages is
  'Only rows of the firm of the context, to read and to write.';

revoke all on table citeledger.messages from public;
grant select, insert on table citeledger.messages to citeledger_app;
grant update (content, finalized_at) on table citeledger.messages to citeledger_app;
grant select, insert, delete on table citeledger.messages to citeledger_admin;

reset role;

-- ledger/message_citations

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.message_citations (
  firm_id uuid not null default citeledger.current_firm_id(),
  id uuid not null default gen_random_uuid(),
  message_id uuid not null,
  source_document_id uuid,
  source_page integer,
  source_block integer,
  source_offset_start integer,
  source_offset_end integer,
  source_text text not null,
  verified boolean not null default false,
  verification_method text,
  verification_confidence numeric(3,2),
  created_at timestamptz not null default clock_timestamp(),
  constraint message_citations_pkey primary key (firm_id, id),
  constraint message_citations_message_source_key unique (firm_id, message_id, id),
  constraint message_citations_message_fkey foreign key (firm_id, message_id)
    references citeledger.messages (firm_id, id) on delete cascade,
  constraint message_citations_document_fkey foreign key (firm_id, source_document_id)
    references citeledger.documents (firm_id, id) on delete set null (source_document_id),
  constraint message_citations_offsets_are_a_range check (
    (source_offset_start is null) = (source_offset_end is null)
    and source_offset_start >= 0
    and source_offset_end > source_offset_start
  ),
  constraint message_citations_method_is_known check (
    verification_method in (
      'exact_match', 'tolerant_match', 'paraphrase_judge', 'ensemble_strict', 'ensemble_majority',
      'failed'
    )
  ),
  constraint message_citations_confidence_is_a_share check (
    verification_confidence >= 0 and verification_confidence <= 1
  ),
  constraint message_citations_verified_names_method check (
    not verified or verification_method is not null
  ),
  -- A year within the calendar's ends, so that it is in it under every zone.
  constraint message_citations_created_at_is_in_the_calendar check (
    isfinite(created_at) and extract(year from created_at at time zone 'UTC') between 2 and 9998
  )
);

create index message_citations_document_idx
  on citeledger.message_citations (firm_id, source_document_id);

alter table citeledger.message_citations enable row level security;
alter table citeledger.message_citations force row level security;

create policy message_citations_of_the_firm on citeledger.message_citations
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

-- No statistics of content: an estimate would tell one firm about the texts of another.
alter table citeledger.message_citations alter column source_text set statistics 0;

comment on table citeledger.message_citations is
  'Citations of the firm''s own documents that a turn made. Record failed ones too, as verified = '
  'false: the gate cannot see a citation that nobody recorded.';
comment on column citeledger.message_citations.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.message_citations.id is 'The citation.';
comment on column citeledger.message_citations.message_id is 'The turn that made it.';
comment on column citeledger.message_citations.source_document_id is
  'The cited document; null when unknown, and after the document was deleted.';
comment on column citeledger.message_citations.source_page is 'Page of the quote, from 1, or null.';
comment on column citeledger.message_citations.source_block is
  'Block of the page, from 0; null when the offsets count in the whole page.';
comment on column citeledger.message_citations.source_offset_start is
  'First character of the quote, in Unicode code points from 0, in the block or page; or null.';
comment on column citeledger.message_citations.source_offset_end is
  'One past the last character of the quote, counted alike; null exactly when the start is.';
comment on column citeledger.message_citations.source_text is 'The quote, as the turn gave it.';
comment on column citeledger.message_citations.verified is
  'Whether the method of verification found the quote to hold.';
comment on column citeledger.message_citations.verification_method is
  'How it was verified: exact_match, tolerant_match, paraphrase_judge, ensemble_strict, '
  'ensemble_majority or failed; null when nobody has tried.';
comment on column citeledger.message_citations.verification_confidence is
  'The verifier''s confidence, 0 to 1 with two decimals, or null.';
comment on column citeledger.message_citations.created_at is
  'When it was recorded, by the clock, so that the order within a transaction shows.';
comment on constraint message_citations_pkey on citeledger.message_citations is
  'A citation is known within its firm.';
comment on constraint message_citations_message_source_key on citeledger.message_citations is
  'Lets a ledger entry reference turn and citation at once, so that it cannot mix two turns. '
  'Serves the citations of a turn and the referencing side of message_citations_message_fkey.';
comment on constraint message_citations_message_fkey on citeledger.message_citations is
  'A citation goes with its turn.';
comment on constraint message_citations_document_fkey on citeledger.message_citations is
  'A citation points to a document of its own firm; the quote stays when the document goes.';
comment on constraint message_citations_offsets_are_a_range on citeledger.message_citations is
  'Offsets are both there or both absent, start at 0 or later, and end after they start.';
comment on constraint message_citations_method_is_known on citeledger.message_citations is
  'One of the six methods, or null.';
comment on constraint message_citations_confidence_is_a_share on citeledger.message_citations is
  'From 0 to 1, or null; NaN is neither.';
comment on constraint message_citations_verified_names_method on citeledger.message_citations is
  'What is verified says by which method.';
comment on constraint message_citations_created_at_is_in_the_calendar
  on citeledger.message_citations is
  'A time that every client can read: neither infinite nor beyond the years 2 to 9998.';
comment on index citeledger.message_citations_document_idx is
  'The citations of a document; the referencing side of message_citations_document_fkey.';
comment on policy message_citations_of_the_firm on citeledger.message_citations is
  'Only rows of the firm of the context, to read and to write.';

revoke all on table citeledger.message_citations from public;
grant select, insert, delete on table citeledger.message_citations to citeledger_app;
grant update (verified, verification_method, verification_confidence)
  on table citeledger.message_citations to citeledger_app;

reset role;

-- ledger/message_caselaw_citations

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.message_caselaw_citations (
  firm_id uuid not null default citeledger.current_firm_id(),
  id uuid not null default gen_random_uuid(),
  message_id uuid not null,
  opinion_id bigint not null,
  cluster_id bigint not null,
  source_offset_start integer,
  source_offset_end integer,
  source_text text not null,
  verified boolean not null default false,
  verification_method text,
  verification_confidence double precision,
  partial boolean not null default false,
  created_at timestamptz not null default clock_timestamp(),
  constraint message_caselaw_citations_pkey primary key (firm_id, id),
  constraint message_caselaw_citations_message_source_key unique (firm_id, message_id, id),
  constraint message_caselaw_citations_message_fkey foreign key (firm_id, message_id)
    references citeledger.messages (firm_id, id) on delete cascade,
  constraint message_caselaw_citations_offsets_are_a_range check (
    (source_offset_start is null) = (source_offset_end is null)
    and source_offset_start >= 0
    and source_offset_end > source_offset_start
  ),
  constraint message_caselaw_citations_method_is_known check (
    verification_method in (
      'exact_match', 'tolerant_match', 'paraphrase_judge', 'ensemble_strict', 'ensemble_majority',
      'failed'
    )
  ),
  constraint message_caselaw_citations_confidence_is_a_share check (
    verification_confidence >= 0 and verification_confidence <= 1
  ),
  constraint message_caselaw_citations_verified_names_method check (
    not verified or verification_method is not null
  ),
  -- A year within the calendar's ends, so that it is in it under every zone.
  constraint message_caselaw_citations_created_at_is_in_the_calendar check (
    isfinite(created_at) and extract(year from created_at at time zone 'UTC') between 2 and 9998
  )
);

alter table citeledger.message_caselaw_citations enable row level security;
alter table citeledger.message_caselaw_citations force row level security;

create policy message_caselaw_citations_of_the_firm on citeledger.message_caselaw_citations
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

-- No statistics of content, nor of what a firm relies on: an estimate would tell one firm about
-- another.
alter table citeledger.message_caselaw_citations alter column opinion_id set statistics 0;
alter table citeledger.message_caselaw_citations alter column cluster_id set statistics 0;
alter table citeledger.message_caselaw_citations alter column source_text set statistics 0;

comment on table citeledger.message_caselaw_citations is
  'Citations of court opinions that a turn made, by CourtListener''s numbers. Record failed ones '
  'too, as verified = false: the gate cannot see a citation that nobody recorded.';
comment on column citeledger.message_caselaw_citations.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.message_caselaw_citations.id is 'The citation.';
comment on column citeledger.message_caselaw_citations.message_id is 'The turn that made it.';
comment on column citeledger.message_caselaw_citations.opinion_id is
  'CourtListener''s number of the opinion.';
comment on column citeledger.message_caselaw_citations.cluster_id is
  'CourtListener''s number of the cluster, the case that the opinion belongs to.';
comment on column citeledger.message_caselaw_citations.source_offset_start is
  'First character of the quote, in Unicode code points from 0, in the opinion''s text; or null.';
comment on column citeledger.message_caselaw_citations.source_offset_end is
  'One past the last character of the quote, counted alike; null exactly when the start is.';
comment on column citeledger.message_caselaw_citations.source_text is
  'The quote, as the turn gave it.';
comment on column citeledger.message_caselaw_citations.verified is
  'Whether the method of verification found the quote to hold.';
comment on column citeledger.message_caselaw_citations.verification_method is
  'How it was verified: exact_match, tolerant_match, paraphrase_judge, ensemble_strict, '
  'ensemble_majority or failed; null when nobody has tried.';
comment on column citeledger.message_caselaw_citations.verification_confidence is
  'The verifier''s confidence, 0 to 1, or null.';
comment on column citeledger.message_caselaw_citations.partial is
  'Whether only a part of the opinion''s text was to be had for the verification.';
comment on column citeledger.message_caselaw_citations.created_at is
  'When it was recorded, by the clock; the ledger takes it as the time of retrieval.';
comment on constraint message_caselaw_citations_pkey on citeledger.message_caselaw_citations is
  'A citation is known within its firm.';
comment on constraint message_caselaw_citations_message_source_key
  on citeledger.message_caselaw_citations is
  'Lets a ledger entry reference turn and citation at once, so that it cannot mix two turns. '
  'Serves the citations of a turn and the referencing side of '
  'message_caselaw_citations_message_fkey.';
comment on constraint message_caselaw_citations_message_fkey
  on citeledger.message_caselaw_citations is
  'A citation goes with its turn.';
comment on constraint message_caselaw_citations_offsets_are_a_range
  on citeledger.message_caselaw_citations is
  'Offsets are both there or both absent, start at 0 or later, and end after they start.';
comment on constraint message_caselaw_citations_method_is_known
  on citeledger.message_caselaw_citations is
  'One of the six methods, or null.';
comment on constraint message_caselaw_citations_confidence_is_a_share
  on citeledger.message_caselaw_citations is
  'From 0 to 1, or null; NaN is neither.';
comment on constraint message_caselaw_citations_verified_names_method
  on citeledger.message_caselaw_citations is
  'What is verified says by which method.';
comment on constraint message_caselaw_citations_created_at_is_in_the_calendar
  on citeledger.message_caselaw_citations is
  'A time that every client can read: neither infinite nor beyond the years 2 to 9998.';
comment on policy message_caselaw_citations_of_the_firm on citeledger.message_caselaw_citations is
  'Only rows of the firm of the context, to read and to write.';

revoke all on table citeledger.message_caselaw_citations from public;
grant select, insert, delete on table citeledger.message_caselaw_citations to citeledger_app;
grant update (verified, verification_method, verification_confidence)
  on table citeledger.message_caselaw_citations to citeledger_app;

reset role;

-- ledger/message_tool_sources

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.message_tool_sources (
  firm_id uuid not null default citeledger.current_firm_id(),
  id uuid not null default gen_random_uuid(),
  message_id uuid not null,
  source_kind text not null,
  label text not null,
  subtitle text,
  url text,
  external_ref text,
  provider text,
  tool text,
  created_at timestamptz not null default clock_timestamp(),
  constraint message_tool_sources_pkey primary key (firm_id, id),
  constraint message_tool_sources_message_source_key unique (firm_id, message_id, id),
  constraint message_tool_sources_message_fkey foreign key (firm_id, message_id)
    references citeledger.messages (firm_id, id) on delete cascade,
  constraint message_tool_sources_source_kind_is_label check (
    source_kind ~ '^[a-z][a-z0-9_]{0,31}$'
  ),
  constraint message_tool_sources_provider_is_name check (
    provider ~ '^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$'
  ),
  -- A year within the calendar's ends, so that it is in it under every zone.
  constraint message_tool_sources_created_at_is_in_the_calendar check (
    isfinite(created_at) and extract(year from created_at at time zone 'UTC') between 2 and 9998
  )
);

alter table citeledger.message_tool_sources enable row level security;
alter table citeledger.message_tool_sources force row level security;

create policy message_tool_sources_of_the_firm on citeledger.message_tool_sources
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

-- No statistics of content: an estimate would tell one firm about the texts of another.
alter table citeledger.message_tool_sources alter column label set statistics 0;
alter table citeledger.message_tool_sources alter column subtitle set statistics 0;
alter table citeledger.message_tool_sources alter column url set statistics 0;
alter table citeledger.message_tool_sources alter column external_ref set statistics 0;
alter table citeledger.message_tool_sources alter column tool set statistics 0;

comment on table citeledger.message_tool_sources is
  'What a tool brought into the context of a turn: provenance, not an assertion that could be '
  'verified.';
comment on column citeledger.message_tool_sources.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.message_tool_sources.id is 'The source.';
comment on column citeledger.message_tool_sources.message_id is 'The turn that used it.';
comment on column citeledger.message_tool_sources.source_kind is
  'What kind of source: a label such as web_search.';
comment on column citeledger.message_tool_sources.label is 'Display title.';
comment on column citeledger.message_tool_sources.subtitle is 'Second display line, or null.';
comment on column citeledger.message_tool_sources.url is 'Where it stands, or null.';
comment on column citeledger.message_tool_sources.external_ref is
  'The provider''s own identifier, or null.';
comment on column citeledger.message_tool_sources.provider is
  'Who delivered it: a name such as courtlistener, or null.';
comment on column citeledger.message_tool_sources.tool is 'The tool that was called, or null.';
comment on column citeledger.message_tool_sources.created_at is
  'When it was recorded, by the clock; the ledger takes it as the time of retrieval.';
comment on constraint message_tool_sources_pkey on citeledger.message_tool_sources is
  'A source is known within its firm.';
comment on constraint message_tool_sources_message_source_key on citeledger.message_tool_sources is
  'Lets a ledger entry reference turn and source at once, so that it cannot mix two turns. Serves '
  'the sources of a turn and the referencing side of message_tool_sources_message_fkey.';
comment on constraint message_tool_sources_message_fkey on citeledger.message_tool_sources is
  'A source goes with its turn.';
comment on constraint message_tool_sources_source_kind_is_label
  on citeledger.message_tool_sources is
  'A label: a lower-case letter, then at most 31 lower-case letters, digits or underscores.';
comment on constraint message_tool_sources_provider_is_name on citeledger.message_tool_sources is
  'A name: a letter or digit, then at most 63 letters, digits or ._:- .';
comment on constraint message_tool_sources_created_at_is_in_the_calendar
  on citeledger.message_tool_sources is
  'A time that every client can read: neither infinite nor beyond the years 2 to 9998.';
comment on policy message_tool_sources_of_the_firm on citeledger.message_tool_sources is
  'Only rows of the firm of the context, to read and to write.';

revoke all on table citeledger.message_tool_sources from public;
grant select, insert, delete on table citeledger.message_tool_sources to citeledger_app;

reset role;

-- ledger/citation_ledger_entry

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.citation_ledger_entry (
  firm_id uuid not null default citeledger.current_firm_id(),
  id uuid not null default gen_random_uuid(),
  project_id uuid,
  chat_id uuid not null,
  message_id uuid not null,
  source_kind text not null,
  message_citation_id uuid,
  message_caselaw_citation_id uuid,
  message_tool_source_id uuid,
  verification_status text not null,
  confidence double precision,
  provider text,
  retrieved_at timestamptz,
  treatment_id uuid,
  created_at timestamptz not null default now(),
  constraint citation_ledger_entry_pkey primary key (firm_id, id),
  constraint citation_ledger_entry_message_fkey foreign key (firm_id, chat_id, message_id)
    references citeledger.messages (firm_id, chat_id, id) on delete cascade,
  constraint citation_ledger_entry_citation_fkey
    foreign key (firm_id, message_id, message_citation_id)
    references citeledger.message_citations (firm_id, message_id, id) on delete cascade,
  constraint citation_ledger_entry_caselaw_citation_fkey
    foreign key (firm_id, message_id, message_caselaw_citation_id)
    references citeledger.message_caselaw_citations (firm_id, message_id, id) on delete cascade,
  constraint citation_ledger_entry_tool_source_fkey
    foreign key (firm_id, message_id, message_tool_source_id)
    references citeledger.message_tool_sources (firm_id, message_id, id) on delete cascade,
  constraint citation_ledger_entry_has_one_source check (
    num_nonnulls(message_citation_id, message_caselaw_citation_id, message_tool_source_id) = 1
  ),
  constraint citation_ledger_entry_provenance_is_a_tool_source check (
    (verification_status = 'provenance') = (message_tool_source_id is not null)
  ),
  constraint citation_ledger_entry_citation_is_kb_document check (
    message_citation_id is null or source_kind = 'kb_document'
  ),
  constraint citation_ledger_entry_caselaw_citation_is_caselaw check (
    message_caselaw_citation_id is null or source_kind = 'caselaw'
  ),
  constraint citation_ledger_entry_confidence_is_a_share check (
    confidence >= 0 and confidence <= 1
  ),
  constraint citation_ledger_entry_source_kind_is_label check (
    source_kind ~ '^[a-z][a-z0-9_]{0,31}$'
  ),
  constraint citation_ledger_entry_verification_status_is_label check (
    verification_status ~ '^[a-z][a-z0-9_]{0,31}$'
  ),
  constraint citation_ledger_entry_provider_is_name check (
    provider ~ '^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$'
  ),
  constraint citation_ledger_entry_treatment_is_reserved check (treatment_id is null)
);

-- Partial, because an entry has one of the three: the other two cost nothing.
create unique index citation_ledger_entry_citation_key
  on citeledger.citation_ledger_entry (firm_id, message_citation_id)
  where message_citation_id is not null;
create unique index citation_ledger_entry_caselaw_citation_key
  on citeledger.citation_ledger_entry (firm_id, message_caselaw_citation_id)
  where message_caselaw_citation_id is not null;
create unique index citation_ledger_entry_tool_source_key
  on citeledger.citation_ledger_entry (firm_id, message_tool_source_id)
  where message_tool_source_id is not null;
create index citation_ledger_entry_chat_idx
  on citeledger.citation_ledger_entry (firm_id, chat_id, message_id);
create index citation_ledger_entry_message_idx
  on citeledger.citation_ledger_entry (firm_id, message_id);
create index citation_ledger_entry_project_idx
  on citeledger.citation_ledger_entry (firm_id, project_id);

alter table citeledger.citation_ledger_entry enable row level security;
alter table citeledger.citation_ledger_entry force row level security;

create policy citation_ledger_entry_of_the_firm on citeledger.citation_ledger_entry
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

comment on table citeledger.citation_ledger_entry is
  'The ledger: one row of metadata for each source that a turn used, never a word of its content. '
  'Written by assemble_ledger_entries, finalize and the triggers of the source tables; by no role.';
comment on column citeledger.citation_ledger_entry.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.citation_ledger_entry.id is
  'The entry; it stays when it is refreshed.';
comment on column citeledger.citation_ledger_entry.project_id is
  'The matter of the chat when the entry was written, kept when the chat moves or the matter goes; '
  'null when there was none.';
comment on column citeledger.citation_ledger_entry.chat_id is 'The chat of the turn.';
comment on column citeledger.citation_ledger_entry.message_id is 'The turn.';
comment on column citeledger.citation_ledger_entry.source_kind is
  'kb_document, caselaw, or the source_kind of the tool source.';
comment on column citeledger.citation_ledger_entry.message_citation_id is
  'The source when it is a citation of an own document, else null.';
comment on column citeledger.citation_ledger_entry.message_caselaw_citation_id is
  'The source when it is a citation of an opinion, else null.';
comment on column citeledger.citation_ledger_entry.message_tool_source_id is
  'The source when a tool brought it, else null.';
comment on column citeledger.citation_ledger_entry.verification_status is
  'The method when the source is verified, unverified when it is not, provenance for a tool''s.';
comment on column citeledger.citation_ledger_entry.confidence is
  'The verifier''s confidence when the source is verified, 0 to 1, else null.';
comment on column citeledger.citation_ledger_entry.provider is
  'courtlistener for caselaw, the tool source''s own provider, null for an own document.';
comment on column citeledger.citation_ledger_entry.retrieved_at is
  'When a source from outside was recorded; null for an own document.';
comment on column citeledger.citation_ledger_entry.treatment_id is
  'Reserved for the later treatment of an opinion; always null.';
comment on column citeledger.citation_ledger_entry.created_at is 'When the entry was written.';
comment on constraint citation_ledger_entry_pkey on citeledger.citation_ledger_entry is
  'An entry is known within its firm.';
comment on constraint citation_ledger_entry_message_fkey on citeledger.citation_ledger_entry is
  'An entry goes with its turn, and its chat is the turn''s.';
comment on constraint citation_ledger_entry_citation_fkey on citeledger.citation_ledger_entry is
  'An entry goes with its citation, and both belong to the same turn.';
comment on constraint citation_ledger_entry_caselaw_citation_fkey
  on citeledger.citation_ledger_entry is
  'An entry goes with its citation, and both belong to the same turn.';
comment on constraint citation_ledger_entry_tool_source_fkey on citeledger.citation_ledger_entry is
  'An entry goes with its tool source, and both belong to the same turn.';
comment on constraint citation_ledger_entry_has_one_source on citeledger.citation_ledger_entry is
  'Exactly one of the three sources is named.';
comment on constraint citation_ledger_entry_provenance_is_a_tool_source
  on citeledger.citation_ledger_entry is
  'What a tool brought is provenance, and nothing else is.';
comment on constraint citation_ledger_entry_citation_is_kb_document
  on citeledger.citation_ledger_entry is
  'A citation of an own document is of the kind kb_document.';
comment on constraint citation_ledger_entry_caselaw_citation_is_caselaw
  on citeledger.citation_ledger_entry is
  'A citation of an opinion is of the kind caselaw.';
comment on constraint citation_ledger_entry_confidence_is_a_share
  on citeledger.citation_ledger_entry is
  'From 0 to 1, or null; NaN is neither.';
comment on constraint citation_ledger_entry_source_kind_is_label
  on citeledger.citation_ledger_entry is
  'A label: it cannot hold content.';
comment on constraint citation_ledger_entry_verification_status_is_label
  on citeledger.citation_ledger_entry is
  'A label: it cannot hold content. A status that verification_tier does not know can be stored, '
  'so that it is counted and flags its turn.';
comment on constraint citation_ledger_entry_provider_is_name on citeledger.citation_ledger_entry is
  'A name: it cannot hold content.';
comment on constraint citation_ledger_entry_treatment_is_reserved
  on citeledger.citation_ledger_entry is
  'Nothing writes a treatment yet.';
comment on index citeledger.citation_ledger_entry_citation_key is
  'A citation has one entry. Referencing side of citation_ledger_entry_citation_fkey.';
comment on index citeledger.citation_ledger_entry_caselaw_citation_key is
  'A citation has one entry. Referencing side of citation_ledger_entry_caselaw_citation_fkey.';
comment on index citeledger.citation_ledger_entry_tool_source_key is
  'A tool source has one entry. Referencing side of citation_ledger_entry_tool_source_fkey.';
comment on index citeledger.citation_ledger_entry_chat_idx is
  'The ledger of a chat. Referencing side of citation_ledger_entry_message_fkey.';
comment on index citeledger.citation_ledger_entry_message_idx is
  'The ledger of a turn, which the gate counts.';
comment on index citeledger.citation_ledger_entry_project_idx is 'The ledger of a matter.';
comment on policy citation_ledger_entry_of_the_firm on citeledger.citation_ledger_entry is
  'Only rows of the firm of the context, to read and to write.';

revoke all on table citeledger.citation_ledger_entry from public;
grant select on table citeledger.citation_ledger_entry to citeledger_app;

reset role;

-- ledger/citation_ledger_entry_revision

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.citation_ledger_entry_revision (
  firm_id uuid not null default citeledger.current_firm_id(),
  id uuid not null default gen_random_uuid(),
  message_id uuid not null,
  entry_id uuid not null,
  source_kind text not null,
  verification_status text not null,
  confidence double precision,
  provider text,
  retrieved_at timestamptz,
  superseded_at timestamptz not null default clock_timestamp(),
  created_at timestamptz not null default now(),
  constraint citation_ledger_entry_revision_pkey primary key (firm_id, id),
  constraint citation_ledger_entry_revision_message_fkey foreign key (firm_id, message_id)
    references citeledger.messages (firm_id, id) on delete cascade,
  constraint citation_ledger_entry_revision_source_kind_is_label check (
    source_kind ~ '^[a-z][a-z0-9_]{0,31}$'
  ),
  constraint citation_ledger_entry_revision_status_is_label check (
    verification_status ~ '^[a-z][a-z0-9_]{0,31}$'
  ),
  constraint citation_ledger_entry_revision_provider_is_name check (
    provider ~ '^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$'
  )
);

create index citation_ledger_entry_revision_message_idx
  on citeledger.citation_ledger_entry_revision (firm_id, message_id);
create index citation_ledger_entry_revision_entry_idx
  on citeledger.citation_ledger_entry_revision (firm_id, entry_id);

alter table citeledger.citation_ledger_entry_revision enable row level security;
alter table citeledger.citation_ledger_entry_revision force row level security;

create policy citation_ledger_entry_revision_of_the_firm
  on citeledger.citation_ledger_entry_revision
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

comment on table citeledger.citation_ledger_entry_revision is
  'What a ledger entry said before it was refreshed, or before it was deleted with its source '
  'while the turn stays. Written by triggers of the ledger; by no role.';
comment on column citeledger.citation_ledger_entry_revision.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.citation_ledger_entry_revision.id is 'The revision.';
comment on column citeledger.citation_ledger_entry_revision.message_id is 'The turn.';
comment on column citeledger.citation_ledger_entry_revision.entry_id is
  'The entry; it may be gone, so there is no foreign key.';
comment on column citeledger.citation_ledger_entry_revision.source_kind is
  'The entry''s source_kind until superseded_at.';
comment on column citeledger.citation_ledger_entry_revision.verification_status is
  'The entry''s verification_status until superseded_at.';
comment on column citeledger.citation_ledger_entry_revision.confidence is
  'The entry''s confidence until superseded_at.';
comment on column citeledger.citation_ledger_entry_revision.provider is
  'The entry''s provider until superseded_at.';
comment on column citeledger.citation_ledger_entry_revision.retrieved_at is
  'The entry''s retrieved_at until superseded_at.';
comment on column citeledger.citation_ledger_entry_revision.superseded_at is
  'When the values were replaced or taken, by the clock.';
comment on column citeledger.citation_ledger_entry_revision.created_at is
  'When the row was recorded: the start of that transaction.';
comment on constraint citation_ledger_entry_revision_pkey
  on citeledger.citation_ledger_entry_revision is
  'A revision is known within its firm.';
comment on constraint citation_ledger_entry_revision_message_fkey
  on citeledger.citation_ledger_entry_revision is
  'A revision goes with its turn.';
comment on constraint citation_ledger_entry_revision_source_kind_is_label
  on citeledger.citation_ledger_entry_revision is
  'A label: it cannot hold content.';
comment on constraint citation_ledger_entry_revision_status_is_label
  on citeledger.citation_ledger_entry_revision is
  'A label: it cannot hold content.';
comment on constraint citation_ledger_entry_revision_provider_is_name
  on citeledger.citation_ledger_entry_revision is
  'A name: it cannot hold content.';
comment on index citeledger.citation_ledger_entry_revision_message_idx is
  'The revisions of a turn. Referencing side of citation_ledger_entry_revision_message_fkey.';
comment on index citeledger.citation_ledger_entry_revision_entry_idx is
  'The history of an entry.';
comment on policy citation_ledger_entry_revision_of_the_firm
  on citeledger.citation_ledger_entry_revision is
  'Only rows of the firm of the context, to read and to write.';

revoke all on table citeledger.citation_ledger_entry_revision from public;
grant select on table citeledger.citation_ledger_entry_revision to citeledger_app;

reset role;

-- ledger/keep_revisions

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.keep_replaced_values()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid;
  v_outer text;
begin
  for v_firm_id in
    select distinct o.firm_id from old_rows as o order by o.firm_id
  loop
    v_outer := citeledger_private.enter_firm(v_firm_id);
    insert into citeledger.citation_ledger_entry_revision (
      firm_id, message_id, entry_id,
      source_kind, verification_status, confidence, provider, retrieved_at
    )
    select
      o.firm_id, o.message_id, o.id,
      o.source_kind, o.verification_status, o.confidence, o.provider, o.retrieved_at
    from old_rows as o
    join new_rows as n on n.firm_id = o.firm_id and n.id = o.id
    where o.firm_id = v_firm_id
      and (o.source_kind, o.verification_status, o.confidence, o.provider, o.retrieved_at)
        is distinct from
        (n.source_kind, n.verification_status, n.confidence, n.provider, n.retrieved_at)
    on conflict do nothing;
    perform citeledger_private.leave_firm(v_outer);
  end loop;
  return null;
end
$$;

create function citeledger_private.keep_deleted_values()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid;
  v_outer text;
begin
  for v_firm_id in
    select distinct o.firm_id from old_rows as o order by o.firm_id
  loop
    v_outer := citeledger_private.enter_firm(v_firm_id);
    -- When the turn itself goes, its message is gone already and so is the history.
    insert into citeledger.citation_ledger_entry_revision (
      firm_id, message_id, entry_id,
      source_kind, verification_status, confidence, provider, retrieved_at
    )
    select
      o.firm_id, o.message_id, o.id,
      o.source_kind, o.verification_status, o.confidence, o.provider, o.retrieved_at
    from old_rows as o
    join citeledger.messages as m on m.firm_id = v_firm_id and m.id = o.message_id
    where o.firm_id = v_firm_id
    on conflict do nothing;
    perform citeledger_private.leave_firm(v_outer);
  end loop;
  return null;
end
$$;

comment on function citeledger_private.keep_replaced_values() is
  'Trigger function: records what updated ledger entries said before, for those whose mirrored '
  'values changed.';
comment on function citeledger_private.keep_deleted_values() is
  'Trigger function: records what deleted ledger entries said, for those whose turn stays.';

revoke all on function citeledger_private.keep_replaced_values() from public;
revoke all on function citeledger_private.keep_deleted_values() from public;

create trigger citation_ledger_entry_keep_replaced
  after update on citeledger.citation_ledger_entry
  referencing old table as old_rows new table as new_rows
  for each statement
  execute function citeledger_private.keep_replaced_values();

create trigger citation_ledger_entry_keep_deleted
  after delete on citeledger.citation_ledger_entry
  referencing old table as old_rows
  for each statement
  execute function citeledger_private.keep_deleted_values();

comment on trigger citation_ledger_entry_keep_replaced on citeledger.citation_ledger_entry is
  'Every change of an entry leaves a revision.';
comment on trigger citation_ledger_entry_keep_deleted on citeledger.citation_ledger_entry is
  'An entry that goes while its turn stays leaves a revision.';

reset role;

-- ledger/finalize_failure

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.finalize_failure (
  firm_id uuid not null default citeledger.current_firm_id(),
  id uuid not null default gen_random_uuid(),
  message_id uuid not null,
  stage text not null,
  sqlstate text not null,
  failed_at timestamptz not null default clock_timestamp(),
  created_at timestamptz not null default now(),
  constraint finalize_failure_pkey primary key (firm_id, id),
  constraint finalize_failure_message_fkey foreign key (firm_id, message_id)
    references citeledger.messages (firm_id, id) on delete cascade,
  constraint finalize_failure_stage_is_label check (stage ~ '^[a-z][a-z0-9_]{0,31}$'),
  constraint finalize_failure_sqlstate_is_code check (sqlstate ~ '^[0-9A-Z]{5}$')
);

create index finalize_failure_message_idx on citeledger.finalize_failure (firm_id, message_id);

alter table citeledger.finalize_failure enable row level security;
alter table citeledger.finalize_failure force row level security;

create policy finalize_failure_of_the_firm on citeledger.finalize_failure
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

comment on table citeledger.finalize_failure is
  'What went wrong when a turn was finalized: the stage and the code, never the text of the error, '
  'which could hold content. Cleared when the turn is finalized again without that failure.';
comment on column citeledger.finalize_failure.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.finalize_failure.id is 'The failure.';
comment on column citeledger.finalize_failure.message_id is 'The turn.';
comment on column citeledger.finalize_failure.stage is
  'lock (the turn was busy), isolation (no verdict can be had under this isolation level), '
  'assemble (the ledger), assemble_row (one source of it was skipped), gate (the verdict) or '
  'withdraw (an old verdict could not be removed).';
comment on column citeledger.finalize_failure.sqlstate is
  'The SQLSTATE of the error: five characters.';
comment on column citeledger.finalize_failure.failed_at is 'When it failed, by the clock.';
comment on column citeledger.finalize_failure.created_at is
  'When the row was recorded: the start of that transaction.';
comment on constraint finalize_failure_pkey on citeledger.finalize_failure is
  'A failure is known within its firm.';
comment on constraint finalize_failure_message_fkey on citeledger.finalize_failure is
  'A failure goes with its turn.';
comment on constraint finalize_failure_stage_is_label on citeledger.finalize_failure is
  'A label: it cannot hold content.';
comment on constraint finalize_failure_sqlstate_is_code on citeledger.finalize_failure is
  'Five digits or capital letters: it cannot hold content.';
comment on index citeledger.finalize_failure_message_idx is
  'The failures of a turn. Referencing side of finalize_failure_message_fkey.';
comment on policy finalize_failure_of_the_firm on citeledger.finalize_failure is
  'Only rows of the firm of the context, to read and to write.';

revoke all on table citeledger.finalize_failure from public;
grant select on table citeledger.finalize_failure to citeledger_app;

reset role;

-- ledger/entry_values@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.entry_values(
  p_firm_id uuid,
  p_message_ids uuid[],
  p_source_ids uuid[]
)
returns table (
  project_id uuid,
  chat_id uuid,
  message_id uuid,
  source_table text,
  source_id uuid,
  message_citation_id uuid,
  message_caselaw_citation_id uuid,
  message_tool_source_id uuid,
  source_kind text,
  verification_status text,
  confidence double precision,
  provider text,
  retrieved_at timestamptz
)
language plpgsql
stable
parallel safe
security invoker
rows 10
set search_path = pg_catalog, pg_temp
-- An array of one looks cheaper than the generic plan's ten, so each call would be planned anew.
set plan_cache_mode = force_generic_plan
as $$
begin
  -- Laterally, an index look-up for each turn, whatever the planner knows of the tables: "offset 0"
  -- keeps it from turning this into a scan of the firm. All sources or the changed ones, each by a
  -- key of its own: an "or" would read the whole turn for one late source.
  return query
  with turn as materialized (
    select m.id, m.chat_id, c.project_id
    from unnest(p_message_ids) as t (id)
    cross join lateral (
      select m.id, m.chat_id
      from citeledger.messages as m
      where m.firm_id = p_firm_id and m.id = t.id and m.role = 'assistant'
      offset 0
    ) as m
    cross join lateral (
      select c.project_id
      from citeledger.chats as c
      where c.firm_id = p_firm_id and c.id = m.chat_id
      offset 0
    ) as c
  )
  select
    t.project_id, t.chat_id, t.id, 'message_citations', s.id,
    s.id, null::uuid, null::uuid,
    'kb_document',
    case when s.verified then s.verification_method else 'unverified' end,
    case when s.verified then s.verification_confidence::double precision end,
    null::text,
    null::timestamptz
  from turn as t
  cross join lateral (
    select s.*
    from citeledger.message_citations as s
    where s.firm_id = p_firm_id and s.message_id = t.id and p_source_ids is null
    union all
    select s.*
    from citeledger.message_citations as s
    where s.firm_id = p_firm_id and s.message_id = t.id and s.id = any(p_source_ids)
    offset 0
  ) as s
  union all
  select
    t.project_id, t.chat_id, t.id, 'message_caselaw_citations', s.id,
    null, s.id, null,
    'caselaw',
    case when s.verified then s.verification_method else 'unverified' end,
    case when s.verified then s.verification_confidence end,
    'courtlistener',
    s.created_at
  from turn as t
  cross join lateral (
    select s.*
    from citeledger.message_caselaw_citations as s
    where s.firm_id = p_firm_id and s.message_id = t.id and p_source_ids is null
    union all
    select s.*
    from citeledger.message_caselaw_citations as s
    where s.firm_id = p_firm_id and s.message_id = t.id and s.id = any(p_source_ids)
    offset 0
  ) as s
  union all
  select
    t.project_id, t.chat_id, t.id, 'message_tool_sources', s.id,
    null, null, s.id,
    s.source_kind,
    'provenance',
    null,
    s.provider,
    s.created_at
  from turn as t
  cross join lateral (
    select s.*
    from citeledger.message_tool_sources as s
    where s.firm_id = p_firm_id and s.message_id = t.id and p_source_ids is null
    union all
    select s.*
    from citeledger.message_tool_sources as s
    where s.firm_id = p_firm_id and s.message_id = t.id and s.id = any(p_source_ids)
    offset 0
  ) as s;
end
$$;

comment on function citeledger_private.entry_values(uuid, uuid[], uuid[]) is
  'What the ledger must say of the sources of the given turns: the one place that maps a source '
  'row to an entry. p_source_ids limits it to those sources; null means all of them. A message '
  'that is unknown, or not the assistant''s, has none.';

revoke all on function citeledger_private.entry_values(uuid, uuid[], uuid[]) from public;

reset role;

-- ledger/assemble_set@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.assemble_set(
  p_firm_id uuid,
  p_message_ids uuid[],
  p_source_ids uuid[] default null
)
returns integer
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_due integer;
  v_written integer;
  v_stale_ids uuid[];
  v_kinds text[];
  v_statuses text[];
  v_confidences double precision[];
  v_providers text[];
  v_retrieved timestamptz[];
begin
  with due as materialized (
    select * from citeledger_private.entry_values(p_firm_id, p_message_ids, p_source_ids)
  ),
  written as (
    insert into citeledger.citation_ledger_entry (
      firm_id, project_id, chat_id, message_id,
      source_kind, message_citation_id, message_caselaw_citation_id, message_tool_source_id,
      verification_status, confidence, provider, retrieved_at
    )
    select
      p_firm_id, d.project_id, d.chat_id, d.message_id,
      d.source_kind, d.message_citation_id, d.message_caselaw_citation_id, d.message_tool_source_id,
      d.verification_status, d.confidence, d.provider, d.retrieved_at
    from due as d
    on conflict do nothing
    returning id
  )
  select (select count(*) from due)::integer, (select count(*) from written)::integer
  into v_due, v_written;

  -- All of them are new: nothing can be out of date.
  if v_written = v_due then
    return v_written;
  end if;

  -- What no longer mirrors its source. One indexed equality for each source, whatever the planner
  -- believes of tables without statistics: "offset 0" keeps it from turning this around. The
  -- replaced values are kept by the ledger's own trigger.
  select
    array_agg(e.id),
    array_agg(d.source_kind),
    array_agg(d.verification_status),
    array_agg(d.confidence),
    array_agg(d.provider),
    array_agg(d.retrieved_at)
  into v_stale_ids, v_kinds, v_statuses, v_confidences, v_providers, v_retrieved
  from citeledger_private.entry_values(p_firm_id, p_message_ids, p_source_ids) as d
  cross join lateral (
    select e.*
    from citeledger.citation_ledger_entry as e
    where e.firm_id = p_firm_id and e.message_citation_id = d.message_citation_id
    union all
    select e.*
    from citeledger.citation_ledger_entry as e
    where e.firm_id = p_firm_id and e.message_caselaw_citation_id = d.message_caselaw_citation_id
    union all
    select e.*
    from citeledger.citation_ledger_entry as e
    where e.firm_id = p_firm_id and e.message_tool_source_id = d.message_tool_source_id
    offset 0
  ) as e
  where (e.source_kind, e.verification_status, e.confidence, e.provider, e.retrieved_at)
    is distinct from
    (d.source_kind, d.verification_status, d.confidence, d.provider, d.retrieved_at);

  if v_stale_ids is not null then
    update citeledger.citation_ledger_entry as e
    set
      source_kind = d.source_kind,
      verification_status = d.verification_status,
      confidence = d.confidence,
      provider = d.provider,
      retrieved_at = d.retrieved_at
    from unnest(
      v_stale_ids, v_kinds, v_statuses, v_confidences, v_providers, v_retrieved
    ) as d (id, source_kind, verification_status, confidence, provider, retrieved_at)
    where e.firm_id = p_firm_id and e.id = d.id;
  end if;

  return v_written;
end
$$;

comment on function citeledger_private.assemble_set(uuid, uuid[], uuid[]) is
  'Writes the missing ledger entries of the given turns and refreshes those that no longer mirror '
  'their source, all at once; returns how many are new. p_source_ids limits it to those sources; '
  'null means all of them. The caller holds the lock of every turn.';

revoke all on function citeledger_private.assemble_set(uuid, uuid[], uuid[]) from public;

reset role;

-- ledger/assemble_rows

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.assemble_rows(
  p_firm_id uuid,
  p_message_id uuid,
  p_source_ids uuid[] default null
)
returns integer
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_source_id uuid;
  v_written integer := 0;
  v_sqlstates text[] := array[]::text[];
begin
  for v_source_id in
    select v.source_id
    from citeledger_private.entry_values(p_firm_id, array[p_message_id], p_source_ids) as v
    order by v.source_id
  loop
    begin
      v_written := v_written + citeledger_private.assemble_set(
        p_firm_id, array[p_message_id], array[v_source_id]
      );
    exception
      -- Class 22 and class 23: the fault lies in the row. Every other error is not the row's.
      when data_exception or integrity_constraint_violation then
        v_sqlstates := v_sqlstates || sqlstate;
        -- An entry that cannot be refreshed says what is past: better none, which counts as failed.
        delete from citeledger.citation_ledger_entry as e
        where e.firm_id = p_firm_id
          and e.message_id = p_message_id
          and v_source_id in (
            e.message_citation_id, e.message_caselaw_citation_id, e.message_tool_source_id
          );
    end;
  end loop;

  if cardinality(v_sqlstates) > 0 then
    insert into citeledger.finalize_failure (firm_id, message_id, stage, sqlstate)
    select p_firm_id, p_message_id, 'assemble_row', s.code
    from unnest(v_sqlstates) as s (code)
    on conflict do nothing;
    raise warning using
      message = 'sources of a turn got no ledger entry',
      detail = format(
        '%s of the sources were skipped, SQLSTATE %s.',
        cardinality(v_sqlstates),
        (select string_agg(distinct s.code, ', ') from unnest(v_sqlstates) as s (code))
      ),
      hint = 'See citeledger.finalize_failure; each of them counts as failed in the verdict.';
  end if;
  return v_written;
end
$$;

comment on function citeledger_private.assemble_rows(uuid, uuid, uuid[]) is
  'Assembles one turn source by source, where all at once failed: a source whose entry cannot be '
  'written (SQLSTATE class 22 or 23) is skipped, logged and warned about, and left without the '
  'entry that it may have had; any other error is raised. Returns how many entries are new. The '
  'caller holds the lock of the turn.';

revoke all on function citeledger_private.assemble_rows(uuid, uuid, uuid[]) from public;

reset role;

-- ledger/assemble_turn

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.assemble_turn(
  p_firm_id uuid,
  p_message_id uuid
)
returns integer
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  begin
    return citeledger_private.assemble_set(p_firm_id, array[p_message_id]);
  exception
    -- The fault may lie in single rows: try each.
    when data_exception or integrity_constraint_violation then
      null;
  end;
  delete from citeledger.finalize_failure as f
  where f.firm_id = p_firm_id and f.message_id = p_message_id and f.stage = 'assemble_row';
  return citeledger_private.assemble_rows(p_firm_id, p_message_id);
end
$$;

comment on function citeledger_private.assemble_turn(uuid, uuid) is
  'Assembles one turn, all at once or, where that fails by SQLSTATE class 22 or 23, source by '
  'source; returns how many entries are new. Any other error is raised. The caller holds the lock '
  'of the turn.';

revoke all on function citeledger_private.assemble_turn(uuid, uuid) from public;

reset role;

-- gate/verification_tier@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.verification_tier(
  p_status text
)
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  return case p_status collate "C"
    when 'exact_match' then 'pass'
    when 'tolerant_match' then 'pass'
    when 'paraphrase_judge' then 'supported'
    when 'ensemble_strict' then 'supported'
    when 'ensemble_majority' then 'supported'
    when 'unverified' then 'fail'
    when 'failed' then 'fail'
    when 'provenance' then 'provenance'
  end;
end
$$;

comment on function citeledger.verification_tier(text) is
  'The tier of a verification status: pass (exact_match, tolerant_match), supported '
  '(paraphrase_judge, ensemble_strict, ensemble_majority), fail (unverified, failed) or '
  'provenance. Null for any other status, compared exactly: no case is folded and no blank '
  'trimmed.';

revoke all on function citeledger.verification_tier(text) from public;
grant execute on function citeledger.verification_tier(text) to citeledger_reader;
grant execute on function citeledger.verification_tier(text) to citeledger_app;
grant execute on function citeledger.verification_tier(text) to citeledger_admin;

reset role;

-- gate/work_product_fiduciary_gate

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.work_product_fiduciary_gate (
  firm_id uuid not null default citeledger.current_firm_id(),
  id uuid not null default gen_random_uuid(),
  message_id uuid not null,
  chat_id uuid not null,
  project_id uuid,
  gate_status text not null,
  pass_count integer not null,
  supported_count integer not null,
  fail_count integer not null,
  total_assertions integer not null,
  unrecognized_count integer not null,
  confidence double precision,
  computed_at timestamptz not null default clock_timestamp(),
  created_at timestamptz not null default now(),
  constraint work_product_fiduciary_gate_pkey primary key (firm_id, id),
  constraint work_product_fiduciary_gate_message_key unique (firm_id, message_id),
  constraint work_product_fiduciary_gate_message_fkey foreign key (firm_id, chat_id, message_id)
    references citeledger.messages (firm_id, chat_id, id) on delete cascade,
  constraint work_product_fiduciary_gate_project_fkey foreign key (firm_id, project_id)
    references citeledger.projects (firm_id, id) on delete set null (project_id),
  constraint work_product_fiduciary_gate_counts_are_not_negative check (
    pass_count >= 0 and supported_count >= 0 and fail_count >= 0 and unrecognized_count >= 0
  ),
  constraint work_product_fiduciary_gate_total_is_the_sum check (
    total_assertions = pass_count + supported_count + fail_count
  ),
  constraint work_product_fiduciary_gate_status_is_what_counts_say check (
    gate_status = case
      when fail_count > 0 or unrecognized_count > 0 then 'flagged'
      when supported_count > 0 then 'supported_only'
      else 'fiduciary_grade'
    end
  ),
  constraint work_product_fiduciary_gate_status_is_label check (
    gate_status ~ '^[a-z][a-z0-9_]{0,31}$'
  ),
  constraint work_product_fiduciary_gate_confidence_is_a_share check (
    confidence >= 0 and confidence <= 1
  )
)
-- Room on the page for a verdict that changes, which then costs no index entry.
with (fillfactor = 90);

create index work_product_fiduciary_gate_chat_idx
  on citeledger.work_product_fiduciary_gate (firm_id, chat_id, message_id);
create index work_product_fiduciary_gate_project_idx
  on citeledger.work_product_fiduciary_gate (firm_id, project_id);

alter table citeledger.work_product_fiduciary_gate enable row level security;
alter table citeledger.work_product_fiduciary_gate force row level security;

create policy work_product_fiduciary_gate_of_the_firm on citeledger.work_product_fiduciary_gate
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

comment on table citeledger.work_product_fiduciary_gate is
  'The verdict of each turn, computed from its ledger and never set by hand: one row a turn. A '
  'verdict of fiduciary_grade with total_assertions 0 means that the turn asserted nothing that '
  'was recorded; show it as such.';
comment on column citeledger.work_product_fiduciary_gate.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.work_product_fiduciary_gate.id is 'The verdict.';
comment on column citeledger.work_product_fiduciary_gate.message_id is 'The turn.';
comment on column citeledger.work_product_fiduciary_gate.chat_id is 'The chat of the turn.';
comment on column citeledger.work_product_fiduciary_gate.project_id is
  'The matter of the chat when the verdict was computed; null for none, and after it was deleted.';
comment on column citeledger.work_product_fiduciary_gate.gate_status is
  'flagged when something failed or is unrecognised, else supported_only when something is merely '
  'supported, else fiduciary_grade.';
comment on column citeledger.work_product_fiduciary_gate.pass_count is
  'Assertions whose quote matched: exact_match, tolerant_match.';
comment on column citeledger.work_product_fiduciary_gate.supported_count is
  'Assertions that a judge found supported: paraphrase_judge, ensemble_strict, ensemble_majority.';
comment on column citeledger.work_product_fiduciary_gate.fail_count is
  'Assertions that are unverified or failed, or that have no ledger entry.';
comment on column citeledger.work_product_fiduciary_gate.total_assertions is
  'pass_count + supported_count + fail_count. What a tool brought is provenance, not an assertion.';
comment on column citeledger.work_product_fiduciary_gate.unrecognized_count is
  'Entries with a status that verification_tier does not know: in no other count, but flagging.';
comment on column citeledger.work_product_fiduciary_gate.confidence is
  'Mean of the confidences of the counted entries that have one, 0 to 1, or null.';
comment on column citeledger.work_product_fiduciary_gate.computed_at is
  'When this verdict was computed, by the clock; an unchanged verdict is not written again.';
comment on column citeledger.work_product_fiduciary_gate.created_at is
  'When the turn got its first verdict.';
comment on constraint work_product_fiduciary_gate_pkey on citeledger.work_product_fiduciary_gate is
  'A verdict is known within its firm.';
comment on constraint work_product_fiduciary_gate_message_key
  on citeledger.work_product_fiduciary_gate is
  'A turn has one verdict.';
comment on constraint work_product_fiduciary_gate_message_fkey
  on citeledger.work_product_fiduciary_gate is
  'A verdict goes with its turn, and its chat is the turn''s.';
comment on constraint work_product_fiduciary_gate_project_fkey
  on citeledger.work_product_fiduciary_gate is
  'A verdict names a matter of its own firm; it stays when the matter goes.';
comment on constraint work_product_fiduciary_gate_counts_are_not_negative
  on citeledger.work_product_fiduciary_gate is
  'Counts are zero or more.';
comment on constraint work_product_fiduciary_gate_total_is_the_sum
  on citeledger.work_product_fiduciary_gate is
  'The total is what passed, is supported and failed: nothing is dropped, nothing counted twice.';
comment on constraint work_product_fiduciary_gate_status_is_what_counts_say
  on citeledger.work_product_fiduciary_gate is
  'A verdict that contradicts its counts cannot be stored: fail or unrecognised > 0 is flagged, '
  'else supported > 0 is supported_only, else fiduciary_grade.';
comment on constraint work_product_fiduciary_gate_status_is_label
  on citeledger.work_product_fiduciary_gate is
  'A label: it cannot hold content.';
comment on constraint work_product_fiduciary_gate_confidence_is_a_share
  on citeledger.work_product_fiduciary_gate is
  'From 0 to 1, or null; NaN is neither.';
comment on index citeledger.work_product_fiduciary_gate_chat_idx is
  'The verdicts of a chat. Referencing side of work_product_fiduciary_gate_message_fkey.';
comment on index citeledger.work_product_fiduciary_gate_project_idx is
  'The verdicts of a matter. Referencing side of work_product_fiduciary_gate_project_fkey.';
comment on policy work_product_fiduciary_gate_of_the_firm
  on citeledger.work_product_fiduciary_gate is
  'Only rows of the firm of the context, to read and to write.';

revoke all on table citeledger.work_product_fiduciary_gate from public;
grant select on table citeledger.work_product_fiduciary_gate to citeledger_app;

reset role;

-- gate/recount@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.recount(
  p_firm_id uuid,
  p_message_ids uuid[]
)
returns table (
  message_id uuid,
  chat_id uuid,
  project_id uuid,
  pass_count integer,
  supported_count integer,
  fail_count integer,
  unrecognized_count integer,
  confidence double precision,
  unrecognized_statuses text[]
)
language plpgsql
stable
parallel safe
security invoker
rows 1
set search_path = pg_catalog, pg_temp
-- An array of one looks cheaper than the generic plan's ten, so each call would be planned anew.
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  select
    m.id,
    m.chat_id,
    c.project_id,
    counted.pass_count,
    counted.supported_count,
    -- A citation without an entry resolves to nothing. An entry's citation is of the same turn and
    -- has no other entry, so the difference of the counts is exactly those.
    (counted.fail_count
      + (
        select count(*)
        from citeledger.message_citations as s
        where s.firm_id = p_firm_id and s.message_id = m.id
      )
      + (
        select count(*)
        from citeledger.message_caselaw_citations as s
        where s.firm_id = p_firm_id and s.message_id = m.id
      )
      - counted.citation_entries)::integer,
    counted.unrecognized_count,
    counted.confidence,
    counted.unrecognized_statuses
  -- Laterally, an index look-up for each turn, whatever the planner knows of the tables.
  from unnest(p_message_ids) as t (id)
  cross join lateral (
    select m.id, m.chat_id
    from citeledger.messages as m
    where m.firm_id = p_firm_id and m.id = t.id and m.role = 'assistant'
    offset 0
  ) as m
  cross join lateral (
    select c.project_id
    from citeledger.chats as c
    where c.firm_id = p_firm_id and c.id = m.chat_id
    offset 0
  ) as c
  cross join lateral (
    select
      coalesce(sum(g.entries) filter (where g.tier = 'pass'), 0)::integer as pass_count,
      coalesce(sum(g.entries) filter (where g.tier = 'supported'), 0)::integer as supported_count,
      coalesce(sum(g.entries) filter (where g.tier = 'fail'), 0)::integer as fail_count,
      coalesce(sum(g.entries) filter (where g.tier is null), 0)::integer as unrecognized_count,
      coalesce(sum(g.citation_entries), 0) as citation_entries,
      -- As numeric: a mean over double precision depends on the order of the rows.
      (sum(g.confidence) filter (where g.tier in ('pass', 'supported', 'fail'))
        / nullif(sum(g.confidences) filter (where g.tier in ('pass', 'supported', 'fail')), 0)
      )::double precision as confidence,
      array_agg(g.verification_status order by g.verification_status collate "C")
        filter (where g.tier is null) as unrecognized_statuses
    from (
      select
        v.verification_status,
        citeledger.verification_tier(v.verification_status) as tier,
        sum(v.entries) as entries,
        sum(v.citation_entries) as citation_entries,
        sum(v.confidence::numeric * v.entries) as confidence,
        coalesce(sum(v.entries) filter (where v.confidence is not null), 0) as confidences
      from (
        -- A turn has few different confidences: each becomes a numeric once.
        select
          e.verification_status,
          e.confidence,
          count(*) as entries,
          count(*) filter (where e.message_tool_source_id is null) as citation_entries
        from citeledger.citation_ledger_entry as e
        where e.firm_id = p_firm_id and e.message_id = m.id
        group by e.verification_status, e.confidence
      ) as v
      group by v.verification_status
    ) as g
  ) as counted;
end
$$;

comment on function citeledger_private.recount(uuid, uuid[]) is
  'What the ledger of the given turns says now: one row for each message that is the assistant''s. '
  'fail_count includes the citations that have no entry. unrecognized_statuses: the distinct '
  'statuses that verification_tier does not know, or null.';

revoke all on function citeledger_private.recount(uuid, uuid[]) from public;

reset role;

-- gate/record_gates@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.warn_of_unrecognized(
  p_statuses text
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  raise warning using
    message = format('unrecognized verification status: %s', p_statuses),
    detail = 'Entries with such a status count in no tier, and flag their turn.',
    hint = 'Finalize the turn again once its sources carry a known verification_method.';
end
$$;

create function citeledger_private.record_gates(
  p_firm_id uuid,
  p_message_ids uuid[]
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_unrecognized text;
begin
  with counted as materialized (
    select * from citeledger_private.recount(p_firm_id, p_message_ids)
  ),
  recorded as (
    insert into citeledger.work_product_fiduciary_gate as g (
      firm_id, message_id, chat_id, project_id,
      gate_status,
      pass_count, supported_count, fail_count, total_assertions, unrecognized_count,
      confidence, computed_at
    )
    select
      p_firm_id, c.message_id, c.chat_id, c.project_id,
      case
        when c.fail_count > 0 or c.unrecognized_count > 0 then 'flagged'
        when c.supported_count > 0 then 'supported_only'
        else 'fiduciary_grade'
      end,
      c.pass_count, c.supported_count, c.fail_count,
      c.pass_count + c.supported_count + c.fail_count,
      c.unrecognized_count,
      c.confidence, clock_timestamp()
    from counted as c
    on conflict (firm_id, message_id) do update
    set
      project_id = excluded.project_id,
      gate_status = excluded.gate_status,
      pass_count = excluded.pass_count,
      supported_count = excluded.supported_count,
      fail_count = excluded.fail_count,
      total_assertions = excluded.total_assertions,
      unrecognized_count = excluded.unrecognized_count,
      confidence = excluded.confidence,
      computed_at = excluded.computed_at
    where (
        g.project_id, g.gate_status, g.pass_count, g.supported_count, g.fail_count,
        g.total_assertions, g.unrecognized_count, g.confidence
      ) is distinct from (
        excluded.project_id, excluded.gate_status, excluded.pass_count, excluded.supported_count,
        excluded.fail_count, excluded.total_assertions, excluded.unrecognized_count,
        excluded.confidence
      )
    returning g.message_id
  )
  select string_agg(distinct s.status, ', ')
  into v_unrecognized
  from counted as c
  cross join unnest(c.unrecognized_statuses) as s (status);

  if v_unrecognized is not null then
    perform citeledger_private.warn_of_unrecognized(v_unrecognized);
  end if;
end
$$;

comment on function citeledger_private.warn_of_unrecognized(text) is
  'Raises the WARNING that names the statuses, of one call, that belong to no tier.';
comment on function citeledger_private.record_gates(uuid, uuid[]) is
  'Computes and stores the verdict of each of the given turns, in one statement; an unchanged '
  'verdict is not written. Warns once, naming the distinct unrecognised statuses. The caller holds '
  'the lock of every turn.';

revoke all on function citeledger_private.warn_of_unrecognized(text) from public;
revoke all on function citeledger_private.record_gates(uuid, uuid[]) from public;

reset role;

-- gate/lock_turns@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.expose_hidden_gates(
  p_firm_id uuid,
  p_message_ids uuid[]
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_probe_ids uuid[];
begin
  -- A unique key knows what a snapshot does not show: where a verdict is hidden, this raises 40001.
  with probe as (
    insert into citeledger.work_product_fiduciary_gate (
      firm_id, message_id, chat_id,
      gate_status, pass_count, supported_count, fail_count, total_assertions, unrecognized_count
    )
    select p_firm_id, m.id, m.chat_id, 'fiduciary_grade', 0, 0, 0, 0, 0
    from citeledger.messages as m
    where m.firm_id = p_firm_id and m.id = any(p_message_ids) and m.role = 'assistant'
    on conflict (firm_id, message_id) do nothing
    returning id
  )
  select array_agg(p.id) into v_probe_ids from probe as p;

  delete from citeledger.work_product_fiduciary_gate as g
  where g.firm_id = p_firm_id and g.id = any(v_probe_ids);
end
$$;

create function citeledger_private.lock_turns(
  p_firm_id uuid,
  p_message_ids uuid[]
)
returns uuid[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
-- An array of one looks cheaper than the generic plan's ten, so each call would be planned anew.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_followers uuid[];
begin
  -- NO KEY UPDATE lets foreign keys to the message through: two sessions that both inserted sources
  -- and both finalize would deadlock under FOR UPDATE. In id order, whoever asks.
  perform
  from citeledger.messages as m
  where m.firm_id = p_firm_id and m.id = any(p_message_ids)
  order by m.id
  for no key update;

  begin
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
      perform citeledger_private.expose_hidden_gates(p_firm_id, p_message_ids);
    end if;

    -- A new statement, so that it sees what was committed while this one waited for the locks.
    v_followers := array(
      select m.id
      from citeledger.messages as m
      where m.firm_id = p_firm_id
        and m.id = any(p_message_ids)
        and m.role = 'assistant'
        and (
          m.finalized_at is not null
          or exists (
            select
            from citeledger.work_product_fiduciary_gate as g
            where g.firm_id = p_firm_id and g.message_id = m.id
          )
        )
      order by m.id
    );
  exception
    -- A verdict that nobody can read breaks no turn: those that should have one go on to fail in
    -- the guard of their step, where it is logged. One that cannot be read only now would be left
    -- stale: then the statement that changes a source fails.
    when undefined_table or undefined_column then
      v_followers := array(
        select m.id
        from citeledger.messages as m
        where m.firm_id = p_firm_id
          and m.id = any(p_message_ids)
          and m.role = 'assistant'
          and m.finalized_at is not null
        order by m.id
      );
  end;
  return v_followers;
end
$$;

comment on function citeledger_private.expose_hidden_gates(uuid, uuid[]) is
  'Above read committed: raises 40001 when one of the turns has a verdict that was recorded after '
  'the snapshot, so that it cannot be overlooked and left stale. Writes nothing that stays. The '
  'caller holds the lock of every turn.';
comment on function citeledger_private.lock_turns(uuid, uuid[]) is
  'Locks the messages FOR NO KEY UPDATE in id order until the transaction ends: the one lock that '
  'every writer of a turn takes before it reads the turn''s state. Returns, in id order, those '
  'whose verdict must follow their sources: the assistant''s messages that are finalized or have a '
  'verdict.';

revoke all on function citeledger_private.expose_hidden_gates(uuid, uuid[]) from public;
revoke all on function citeledger_private.lock_turns(uuid, uuid[]) from public;

reset role;

-- gate/withdraw_gates@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.log_failure(
  p_firm_id uuid,
  p_message_ids uuid[],
  p_stage text,
  p_sqlstate text
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  -- A log that cannot be written must not break the turn: the warning still says it.
  begin
    delete from citeledger.finalize_failure as f
    where f.firm_id = p_firm_id and f.message_id = any(p_message_ids) and f.stage = p_stage;
    insert into citeledger.finalize_failure (firm_id, message_id, stage, sqlstate)
    select p_firm_id, m.id, p_stage, p_sqlstate
    from unnest(p_message_ids) as m (id)
    on conflict do nothing;
  exception
    when serialization_failure then
      raise;
    when others then
      raise warning using
        message = 'a failure of finalize could not be logged',
        detail = format('Writing the log failed with SQLSTATE %s.', sqlstate),
        hint = 'See whether citeledger.finalize_failure is whole.';
  end;
  raise warning using
    message = format('a turn could not be finalized: %s failed', p_stage),
    detail = format(
      'Stage %s failed with SQLSTATE %s for %s turn(s).',
      p_stage, p_sqlstate, cardinality(p_message_ids)
    ),
    hint = 'See citeledger.finalize_failure; citeledger.finalize_pending tries again.';
end
$$;

create function citeledger_private.clear_failures(
  p_firm_id uuid,
  p_message_ids uuid[]
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
-- An array of one looks cheaper than the generic plan's ten, so each call would be planned anew.
set plan_cache_mode = force_generic_plan
as $$
begin
  delete from citeledger.finalize_failure as f
  where f.firm_id = p_firm_id and f.message_id = any(p_message_ids);
end
$$;

create function citeledger_private.withdraw_gates(
  p_firm_id uuid,
  p_message_ids uuid[],
  p_stage text,
  p_sqlstate text
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stale boolean := false;
begin
  begin
    if p_stage = 'isolation' then
      perform citeledger_private.expose_hidden_gates(p_firm_id, p_message_ids);
    end if;
    delete from citeledger.work_product_fiduciary_gate as g
    where g.firm_id = p_firm_id and g.message_id = any(p_message_ids);
  exception
    when serialization_failure then
      raise;
    when others then
      perform citeledger_private.log_failure(p_firm_id, p_message_ids, 'withdraw', sqlstate);
      -- No verdict can be read from a broken table. But one that can be read, and is stale, must
      -- not be committed: then the turn fails rather than the promise.
      begin
        v_stale := exists (
          select
          from citeledger.work_product_fiduciary_gate as g
          where g.firm_id = p_firm_id and g.message_id = any(p_message_ids)
        );
      exception
        when others then
          v_stale := false;
      end;
      if v_stale then
        raise;
      end if;
  end;
  perform citeledger_private.log_failure(p_firm_id, p_message_ids, p_stage, p_sqlstate);
end
$$;

comment on function citeledger_private.log_failure(uuid, uuid[], text, text) is
  'Records in finalize_failure that p_stage failed with p_sqlstate for the given turns, in place '
  'of an earlier failure of that stage, and warns. Never raises, except for 40001.';
comment on function citeledger_private.clear_failures(uuid, uuid[]) is
  'Forgets the logged failures of the given turns.';
comment on function citeledger_private.withdraw_gates(uuid, uuid[], text, text) is
  'Removes the verdicts of turns whose stage p_stage failed with p_sqlstate, logs and warns: no '
  'ledger means no verdict, never an old one. Raises only when an old verdict can be read but not '
  'removed.';

revoke all on function citeledger_private.log_failure(uuid, uuid[], text, text) from public;
revoke all on function citeledger_private.clear_failures(uuid, uuid[]) from public;
revoke all on function citeledger_private.withdraw_gates(uuid, uuid[], text, text) from public;

reset role;

-- gate/settle_new@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.settle_new(
  p_firm_id uuid,
  p_message_ids uuid[]
)
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_unrecognized text;
begin
  -- The array through a sub-select, here and below: its length would else make each plan look worth
  -- making anew.
  if exists (
    select
    from unnest((select p_message_ids)) as t (id)
    where exists (
        select
        from citeledger.work_product_fiduciary_gate as g
        where g.firm_id = p_firm_id and g.message_id = t.id
        offset 0
      )
      or exists (
        select
        from citeledger.citation_ledger_entry as e
        where e.firm_id = p_firm_id and e.message_id = t.id
        offset 0
      )
  ) then
    return false;
  end if;

  -- The caller holds the messages, so nobody else writes what was not there: no conflict to look
  -- for in every unique key. What is counted is what was written, so nothing is read again; and as
  -- every source has just got its entry, no citation is without one.
  with turn as materialized (
    select m.id, m.chat_id, c.project_id
    from unnest((select p_message_ids)) as t (id)
    cross join lateral (
      select m.id, m.chat_id
      from citeledger.messages as m
      where m.firm_id = p_firm_id and m.id = t.id and m.role = 'assistant'
      offset 0
    ) as m
    cross join lateral (
      select c.project_id
      from citeledger.chats as c
      where c.firm_id = p_firm_id and c.id = m.chat_id
      offset 0
    ) as c
  ),
  written as (
    insert into citeledger.citation_ledger_entry (
      firm_id, project_id, chat_id, message_id,
      source_kind, message_citation_id, message_caselaw_citation_id, message_tool_source_id,
      verification_status, confidence, provider, retrieved_at
    )
    select
      p_firm_id, t.project_id, t.chat_id, t.id,
      d.source_kind, d.message_citation_id, d.message_caselaw_citation_id, d.message_tool_source_id,
      d.verification_status, d.confidence, d.provider, d.retrieved_at
    from turn as t
    -- What entry_values says, word for word: called, it would cost a fifth of all this.
    cross join lateral (
      select
        'kb_document' as source_kind,
        s.id as message_citation_id,
        null::uuid as message_caselaw_citation_id,
        null::uuid as message_tool_source_id,
        case when s.verified then s.verification_method else 'unverified' end
          as verification_status,
        case when s.verified then s.verification_confidence::double precision end as confidence,
        null::text as provider,
        null::timestamptz as retrieved_at
      from citeledger.message_citations as s
      where s.firm_id = p_firm_id and s.message_id = t.id
      union all
      select
        'caselaw', null, s.id, null,
        case when s.verified then s.verification_method else 'unverified' end,
        case when s.verified then s.verification_confidence end,
        'courtlistener',
        s.created_at
      from citeledger.message_caselaw_citations as s
      where s.firm_id = p_firm_id and s.message_id = t.id
      union all
      select s.source_kind, null, null, s.id, 'provenance', null, s.provider, s.created_at
      from citeledger.message_tool_sources as s
      where s.firm_id = p_firm_id and s.message_id = t.id
      offset 0
    ) as d
    returning message_id, verification_status, confidence
  ),
  status as materialized (
    select
      w.message_id,
      w.verification_status,
      citeledger.verification_tier(w.verification_status) as tier,
      count(*) as entries,
      sum(w.confidence::numeric) as confidence,
      count(w.confidence) as confidences
    from written as w
    group by w.message_id, w.verification_status
  ),
  counted as (
    select
      t.id as message_id,
      t.chat_id,
      t.project_id,
      coalesce(sum(s.entries) filter (where s.tier = 'pass'), 0)::integer as pass_count,
      coalesce(sum(s.entries) filter (where s.tier = 'supported'), 0)::integer as supported_count,
      coalesce(sum(s.entries) filter (where s.tier = 'fail'), 0)::integer as fail_count,
      coalesce(sum(s.entries) filter (where s.tier is null), 0)::integer as unrecognized_count,
      (sum(s.confidence) filter (where s.tier in ('pass', 'supported', 'fail'))
        / nullif(sum(s.confidences) filter (where s.tier in ('pass', 'supported', 'fail')), 0)
      )::double precision as confidence
    from turn as t
    left join status as s on s.message_id = t.id
    group by t.id, t.chat_id, t.project_id
  ),
  recorded as (
    insert into citeledger.work_product_fiduciary_gate (
      firm_id, message_id, chat_id, project_id,
      gate_status,
      pass_count, supported_count, fail_count, total_assertions, unrecognized_count,
      confidence
    )
    select
      p_firm_id, c.message_id, c.chat_id, c.project_id,
      case
        when c.fail_count > 0 or c.unrecognized_count > 0 then 'flagged'
        when c.supported_count > 0 then 'supported_only'
        else 'fiduciary_grade'
      end,
      c.pass_count, c.supported_count, c.fail_count,
      c.pass_count + c.supported_count + c.fail_count,
      c.unrecognized_count,
      c.confidence
    from counted as c
    returning message_id
  )
  select string_agg(distinct s.verification_status, ', ')
  into v_unrecognized
  from status as s
  where s.tier is null;

  if v_unrecognized is not null then
    perform citeledger_private.warn_of_unrecognized(v_unrecognized);
  end if;
  return true;
end
$$;

comment on function citeledger_private.settle_new(uuid, uuid[]) is
  'Assembles the ledger and records the verdicts of turns of the assistant that have neither an '
  'entry nor a verdict yet, in one statement; what it writes is what assemble_set and record_gates '
  'would. False, and nothing is done, where a turn has something already. The caller holds the '
  'lock of every turn, acts for p_firm_id, and is under read committed: above it others may have '
  'written what the snapshot does not show. Raises the WARNING of warn_of_unrecognized. Errors: '
  'those of the constraints.';

revoke all on function citeledger_private.settle_new(uuid, uuid[]) from public;

reset role;

-- gate/settle@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.settle(
  p_firm_id uuid,
  p_message_ids uuid[],
  p_source_ids uuid[] default null
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_source_ids uuid[] := p_source_ids;
  v_stage text := 'assemble';
  v_sqlstate text;
  v_message_id uuid;
begin
  if cardinality(p_message_ids) = 0 then
    return;
  end if;

  -- Above read committed a statement does not see what others committed while the lock was awaited,
  -- so a verdict could be stale: none is recorded, and finalize_pending does it later.
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    -- What the session itself changed it sees: those entries must not say what is past.
    if cardinality(v_source_ids) > 0 then
      begin
        perform citeledger_private.assemble_set(p_firm_id, p_message_ids, v_source_ids);
      exception
        when serialization_failure then
          raise;
        when others or assert_failure then
          perform citeledger_private.log_failure(p_firm_id, p_message_ids, 'assemble', sqlstate);
      end;
    end if;
    perform citeledger_private.withdraw_gates(p_firm_id, p_message_ids, 'isolation', '25000');
    return;
  end if;

  -- Nearly always a turn is new and all is well: one statement. Whatever goes wrong with it, the
  -- steps below find out which of them it is.
  if v_source_ids is null then
    begin
      perform citeledger_private.clear_failures(p_firm_id, p_message_ids);
      if citeledger_private.settle_new(p_firm_id, p_message_ids) then
        return;
      end if;
    exception
      when serialization_failure then
        raise;
      when others or assert_failure then
        null;
    end;
  end if;

  -- Each step has a guard of its own. 40001 passes: only the caller can run its transaction again.
  -- A query cancel or a timeout (57014) is not caught by "others"; nor would a failed assertion be.
  begin
    -- Where an earlier attempt failed, more than the changed sources may be missing.
    -- Nested, so that a whole turn is assembled even where the gate's table is broken.
    if v_source_ids is not null then
      if (
        select count(*)
        from citeledger.work_product_fiduciary_gate as g
        where g.firm_id = p_firm_id
          and g.message_id = any(p_message_ids)
          and not exists (
            select
            from citeledger.finalize_failure as f
            where f.firm_id = p_firm_id and f.message_id = g.message_id
          )
      ) < cardinality(p_message_ids) then
        v_source_ids := null;
      end if;
    end if;
    perform citeledger_private.clear_failures(p_firm_id, p_message_ids);
    perform citeledger_private.assemble_set(p_firm_id, p_message_ids, v_source_ids);
  exception
    when serialization_failure then
      raise;
    when others or assert_failure then
      v_sqlstate := sqlstate;
  end;

  -- The fault may lie in single rows of the one turn: try each.
  if left(v_sqlstate, 2) in ('22', '23') and cardinality(p_message_ids) = 1 then
    v_sqlstate := null;
    begin
      perform citeledger_private.clear_failures(p_firm_id, p_message_ids);
      perform citeledger_private.assemble_rows(p_firm_id, p_message_ids[1], v_source_ids);
    exception
      when serialization_failure then
        raise;
      when others or assert_failure then
        v_sqlstate := sqlstate;
    end;
  end if;

  if v_sqlstate is null then
    v_stage := 'gate';
    begin
      perform citeledger_private.record_gates(p_firm_id, p_message_ids);
    exception
      when serialization_failure then
        raise;
      when others or assert_failure then
        v_sqlstate := sqlstate;
    end;
  end if;

  if v_sqlstate is null then
    return;
  end if;

  if cardinality(p_message_ids) = 1 then
    perform citeledger_private.withdraw_gates(p_firm_id, p_message_ids, v_stage, v_sqlstate);
  else
    -- One bad turn spoils no other.
    foreach v_message_id in array p_message_ids loop
      perform citeledger_private.settle(p_firm_id, array[v_message_id], p_source_ids);
    end loop;
  end if;
end
$$;

comment on function citeledger_private.settle(uuid, uuid[], uuid[]) is
  'Assembles the ledger of the given turns of the assistant, then records their verdicts, each '
  'step in its own guard; p_source_ids limits the assembly to those sources, null means all of '
  'them. When a step fails, the turn has no verdict, the failure is logged and warned about, and '
  'nothing is raised. The caller holds the lock of every turn and acts for p_firm_id. Errors that '
  'pass: 40001, 57014.';

revoke all on function citeledger_private.settle(uuid, uuid[], uuid[]) from public;

reset role;

-- ledger/assemble_ledger_entries

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.assemble_ledger_entries(
  p_message_id uuid
)
returns integer
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_followers uuid[];
  v_written integer;
begin
  v_followers := citeledger_private.lock_turns(v_firm_id, array[p_message_id]);
  v_written := citeledger_private.assemble_turn(v_firm_id, p_message_id);

  -- A verdict that is there already must agree with the ledger as it is now.
  if cardinality(v_followers) > 0 then
    if current_setting('transaction_isolation') in ('read committed', 'read uncommitted') then
      perform citeledger_private.record_gates(v_firm_id, v_followers);
    else
      perform citeledger_private.withdraw_gates(v_firm_id, v_followers, 'isolation', '25000');
    end if;
  end if;

  return v_written;
end
$$;

comment on function citeledger.assemble_ledger_entries(uuid) is
  'Writes one ledger entry for each source of the turn p_message_id that has none, and refreshes '
  'the entries that no longer mirror their source; the replaced values go to '
  'citation_ledger_entry_revision. Returns how many entries are new: 0 for an unknown message and '
  'for one that is not the assistant''s. A source whose entry cannot be written is skipped, logged '
  'in finalize_failure (stage assemble_row) and warned about. A verdict that the turn already has '
  'is computed again. Locks the message until the transaction ends. For citeledger_app. Errors: '
  'any but SQLSTATE class 22 and 23 fails the assembly; finalize_turn catches them.';

revoke all on function citeledger.assemble_ledger_entries(uuid) from public;
grant execute on function citeledger.assemble_ledger_entries(uuid) to citeledger_app;
grant execute on function citeledger.assemble_ledger_entries(uuid) to citeledger_admin;

reset role;

-- gate/compute_and_record_gate@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.compute_and_record_gate(
  p_message_id uuid
)
returns citeledger.work_product_fiduciary_gate
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_gate citeledger.work_product_fiduciary_gate;
begin
  perform citeledger_private.lock_turns(v_firm_id, array[p_message_id]);

  if not exists (
    select
    from citeledger.messages as m
    where m.firm_id = v_firm_id and m.id = p_message_id and m.role = 'assistant'
  ) then
    return null;
  end if;

  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    perform citeledger_private.withdraw_gates(v_firm_id, array[p_message_id], 'isolation', '25000');
    return null;
  end if;

  -- Where an earlier attempt failed, the ledger may be behind its sources: it is caught up first.
  if exists (
    select
    from citeledger.finalize_failure as f
    where f.firm_id = v_firm_id and f.message_id = p_message_id
  ) then
    perform citeledger_private.assemble_turn(v_firm_id, p_message_id);
  end if;

  perform citeledger_private.record_gates(v_firm_id, array[p_message_id]);

  select g.*
  into v_gate
  from citeledger.work_product_fiduciary_gate as g
  where g.firm_id = v_firm_id and g.message_id = p_message_id;
  return v_gate;
end
$$;

comment on function citeledger.compute_and_record_gate(uuid) is
  'Computes the verdict of the turn p_message_id from its ledger entries, stores it, and returns '
  'the row; an unchanged verdict is not written again. A citation that has no entry counts as '
  'failed. A turn with logged failures is assembled first. An unrecognised status counts in no '
  'tier, flags the turn, and is named in one warning. Null, and no row, for an unknown message and '
  'for one that is not the assistant''s. Above read committed no verdict is recorded: null, logged '
  'in finalize_failure (stage isolation). What it cannot see is a citation that the application '
  'never recorded: record failed ones too, as verified = false, also for caselaw. Locks the '
  'message until the transaction ends. For citeledger_app.';

revoke all on function citeledger.compute_and_record_gate(uuid) from public;
grant execute on function citeledger.compute_and_record_gate(uuid) to citeledger_app;
grant execute on function citeledger.compute_and_record_gate(uuid) to citeledger_admin;

reset role;

-- gate/message_triggers@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.seal_message()
returns trigger
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  if new.content is distinct from old.content
    or new.finalized_at is distinct from old.finalized_at
    or new.role is distinct from old.role
  then
    raise exception using
      errcode = '55000',
      message = 'the message is finalized and sealed',
      detail = format(
        'Of a finalized message, %s cannot change.',
        case
          when new.content is distinct from old.content then 'content'
          when new.finalized_at is distinct from old.finalized_at then 'finalized_at'
          else 'role'
        end
      ),
      hint = 'Answer in a new message; the verification columns of its sources stay open.';
  end if;
  return new;
end
$$;

create function citeledger_private.finalize_inserted()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm record;
  v_outer text;
begin
  for v_firm in
    select n.firm_id, array_agg(n.id order by n.id) as message_ids
    from new_rows as n
    where n.finalized_at is not null and n.role = 'assistant'
    group by n.firm_id
    order by n.firm_id
  loop
    v_outer := citeledger_private.enter_firm(v_firm.firm_id);
    perform citeledger_private.settle(v_firm.firm_id, v_firm.message_ids);
    perform citeledger_private.leave_firm(v_outer);
  end loop;
  return null;
end
$$;

create function citeledger_private.finalize_updated()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm record;
  v_outer text;
begin
  -- The UPDATE itself holds the lock of every row that is here.
  for v_firm in
    select n.firm_id, array_agg(n.id order by n.id) as message_ids
    from new_rows as n
    join old_rows as o on o.firm_id = n.firm_id and o.id = n.id
    where n.finalized_at is not null and o.finalized_at is null and n.role = 'assistant'
    group by n.firm_id
    order by n.firm_id
  loop
    v_outer := citeledger_private.enter_firm(v_firm.firm_id);
    perform citeledger_private.settle(v_firm.firm_id, v_firm.message_ids);
    perform citeledger_private.leave_firm(v_outer);
  end loop;
  return null;
end
$$;

comment on function citeledger_private.seal_message() is
  'Trigger function: refuses to change content, role or finalized_at of a finalized message. '
  'Errors: 55000.';
comment on function citeledger_private.finalize_inserted() is
  'Trigger function: finalizes the turns that were inserted with finalized_at already set.';
comment on function citeledger_private.finalize_updated() is
  'Trigger function: finalizes the turns whose finalized_at was just set.';

revoke all on function citeledger_private.seal_message() from public;
revoke all on function citeledger_private.finalize_inserted() from public;
revoke all on function citeledger_private.finalize_updated() from public;

create trigger messages_seal
  before update on citeledger.messages
  for each row
  when (old.finalized_at is not null)
  execute function citeledger_private.seal_message();

create trigger messages_finalize_inserted
  after insert on citeledger.messages
  referencing new table as new_rows
  for each statement
  execute function citeledger_private.finalize_inserted();

create trigger messages_finalize_updated
  after update on citeledger.messages
  referencing old table as old_rows new table as new_rows
  for each statement
  execute function citeledger_private.finalize_updated();

comment on trigger messages_seal on citeledger.messages is
  'A finalized message is sealed.';
comment on trigger messages_finalize_inserted on citeledger.messages is
  'No call site can forget to finalize: a turn that arrives finalized gets its verdict.';
comment on trigger messages_finalize_updated on citeledger.messages is
  'No call site can forget to finalize: setting finalized_at is enough.';

reset role;

-- gate/source_triggers@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.source_inserted()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm record;
  v_outer text;
begin
  for v_firm in
    select
      n.firm_id,
      array_agg(distinct n.message_id) as message_ids,
      array_agg(n.id) as source_ids
    from new_rows as n
    group by n.firm_id
    order by n.firm_id
  loop
    v_outer := citeledger_private.enter_firm(v_firm.firm_id);
    perform citeledger_private.settle(
      v_firm.firm_id,
      citeledger_private.lock_turns(v_firm.firm_id, v_firm.message_ids),
      v_firm.source_ids
    );
    perform citeledger_private.leave_firm(v_outer);
  end loop;
  return null;
end
$$;

create function citeledger_private.citation_updated()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm record;
  v_outer text;
  v_followers uuid[];
  v_assembled uuid[];
begin
  -- Only where the verification changed: a document that goes sets its citations' reference to
  -- null, and that must not touch a single turn.
  for v_firm in
    select
      n.firm_id,
      array_agg(distinct n.message_id) as message_ids,
      array_agg(n.id) as source_ids
    from new_rows as n
    join old_rows as o on o.firm_id = n.firm_id and o.id = n.id
    where (o.verified, o.verification_method, o.verification_confidence)
      is distinct from
      (n.verified, n.verification_method, n.verification_confidence)
    group by n.firm_id
    order by n.firm_id
  loop
    v_outer := citeledger_private.enter_firm(v_firm.firm_id);
    v_followers := citeledger_private.lock_turns(v_firm.firm_id, v_firm.message_ids);
    -- A turn that was assembled and nothing more has entries too: they follow at once, or the gate
    -- would count what its sources no longer say.
    v_assembled := array(
      select distinct e.message_id
      from citeledger.citation_ledger_entry as e
      where e.firm_id = v_firm.firm_id
        and e.message_id = any(v_firm.message_ids)
        and e.message_id <> all(v_followers)
    );
    if cardinality(v_assembled) > 0 then
      perform citeledger_private.assemble_set(v_firm.firm_id, v_assembled, v_firm.source_ids);
    end if;
    perform citeledger_private.settle(v_firm.firm_id, v_followers, v_firm.source_ids);
    perform citeledger_private.leave_firm(v_outer);
  end loop;
  return null;
end
$$;

create function citeledger_private.source_deleted()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm record;
  v_outer text;
  v_followers uuid[];
begin
  for v_firm in
    select o.firm_id, array_agg(distinct o.message_id) as message_ids
    from old_rows as o
    group by o.firm_id
    order by o.firm_id
  loop
    v_outer := citeledger_private.enter_firm(v_firm.firm_id);
    -- When the turn itself goes, its message is gone already: nothing to lock, nothing to seal.
    v_followers := citeledger_private.lock_turns(v_firm.firm_id, v_firm.message_ids);

    if exists (
        select
        from citeledger.messages as m
        where m.firm_id = v_firm.firm_id
          and m.id = any(v_firm.message_ids)
          and m.finalized_at is not null
      )
      -- This function runs as the owner; the setting role still tells who deletes.
      and not pg_has_role(
        coalesce(nullif(current_setting('role'), 'none'), session_user)::name,
        'citeledger_owner',
        'member'
      )
    then
      raise exception using
        errcode = '55000',
        message = 'the turn is finalized and its sources are sealed',
        detail = format('The source is a row of %s.', tg_table_name),
        hint = 'Set verified = false on it, or delete the whole message as citeledger_admin.';
    end if;

    -- Its entries went with the sources; what is left is to count again.
    perform citeledger_private.settle(v_firm.firm_id, v_followers, '{}');
    perform citeledger_private.leave_firm(v_outer);
  end loop;
  return null;
end
$$;

comment on function citeledger_private.source_inserted() is
  'Trigger function: locks the turns of the inserted sources and lets ledger and verdict follow, '
  'where the turn is finalized or has a verdict; only the new sources are assembled.';
comment on function citeledger_private.citation_updated() is
  'Trigger function: where the verification of a citation changed, locks its turn and lets its '
  'ledger entry follow, and the verdict too if the turn is finalized or has one.';
comment on function citeledger_private.source_deleted() is
  'Trigger function: locks the turns of the deleted sources, refuses when one of them is finalized '
  'and whoever deletes is no member of citeledger_owner, and lets the verdicts follow. Errors: '
  '55000.';

revoke all on function citeledger_private.source_inserted() from public;
revoke all on function citeledger_private.citation_updated() from public;
revoke all on function citeledger_private.source_deleted() from public;

create trigger message_citations_inserted
  after insert on citeledger.message_citations
  referencing new table as new_rows
  for each statement
  execute function citeledger_private.source_inserted();
create trigger message_citations_updated
  after update on citeledger.message_citations
  referencing old table as old_rows new table as new_rows
  for each statement
  execute function citeledger_private.citation_updated();
create trigger message_citations_deleted
  after delete on citeledger.message_citations
  referencing old table as old_rows
  for each statement
  execute function citeledger_private.source_deleted();

create trigger message_caselaw_citations_inserted
  after insert on citeledger.message_caselaw_citations
  referencing new table as new_rows
  for each statement
  execute function citeledger_private.source_inserted();
create trigger message_caselaw_citations_updated
  after update on citeledger.message_caselaw_citations
  referencing old table as old_rows new table as new_rows
  for each statement
  execute function citeledger_private.citation_updated();
create trigger message_caselaw_citations_deleted
  after delete on citeledger.message_caselaw_citations
  referencing old table as old_rows
  for each statement
  execute function citeledger_private.source_deleted();

create trigger message_tool_sources_inserted
  after insert on citeledger.message_tool_sources
  referencing new table as new_rows
  for each statement
  execute function citeledger_private.source_inserted();
create trigger message_tool_sources_deleted
  after delete on citeledger.message_tool_sources
  referencing old table as old_rows
  for each statement
  execute function citeledger_private.source_deleted();

comment on trigger message_citations_inserted on citeledger.message_citations is
  'A late source gets its entry, and the verdict follows.';
comment on trigger message_citations_updated on citeledger.message_citations is
  'A late verification reaches the entry, and the verdict follows.';
comment on trigger message_citations_deleted on citeledger.message_citations is
  'A finalized turn keeps its sources; elsewhere the verdict follows.';
comment on trigger message_caselaw_citations_inserted on citeledger.message_caselaw_citations is
  'A late source gets its entry, and the verdict follows.';
comment on trigger message_caselaw_citations_updated on citeledger.message_caselaw_citations is
  'A late verification reaches the entry, and the verdict follows.';
comment on trigger message_caselaw_citations_deleted on citeledger.message_caselaw_citations is
  'A finalized turn keeps its sources; elsewhere the verdict follows.';
comment on trigger message_tool_sources_inserted on citeledger.message_tool_sources is
  'A late source gets its entry, and the verdict follows.';
comment on trigger message_tool_sources_deleted on citeledger.message_tool_sources is
  'A finalized turn keeps its sources; elsewhere the verdict follows.';

reset role;

-- gate/finalize_report

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.count_entries(
  p_firm_id uuid,
  p_message_id uuid
)
returns bigint
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
begin
  return (
    select count(*)
    from citeledger.citation_ledger_entry as e
    where e.firm_id = p_firm_id and e.message_id = p_message_id
  );
end
$$;

create function citeledger_private.finalize_report(
  p_firm_id uuid,
  p_message_id uuid
)
returns table (
  entries bigint,
  gate jsonb,
  failures jsonb
)
language plpgsql
stable
parallel safe
security invoker
rows 1
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  select
    citeledger_private.count_entries(p_firm_id, p_message_id),
    (
      select to_jsonb(g) - 'firm_id'
      from citeledger.work_product_fiduciary_gate as g
      where g.firm_id = p_firm_id and g.message_id = p_message_id
    ),
    (
      select
        coalesce(
          jsonb_agg(
            jsonb_build_object('stage', f.stage, 'sqlstate', f.sqlstate)
            order by f.failed_at, f.id
          ),
          '[]'
        )
      from citeledger.finalize_failure as f
      where f.firm_id = p_firm_id and f.message_id = p_message_id
    );
end
$$;

comment on function citeledger_private.count_entries(uuid, uuid) is
  'How many entries the turn has.';
comment on function citeledger_private.finalize_report(uuid, uuid) is
  'What finalize_turn reports of a turn: how many entries it has, its verdict''s row less firm_id '
  'or null, and its logged failures as a list of {"stage", "sqlstate"}.';

revoke all on function citeledger_private.count_entries(uuid, uuid) from public;
revoke all on function citeledger_private.finalize_report(uuid, uuid) from public;

reset role;

-- gate/finalize_turn@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.finalize_turn(
  p_message_id uuid
)
returns jsonb
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_role text;
  v_finalized_at timestamptz;
  v_lock_error text;
  v_entries_before bigint;
  v_entries_written bigint;
  v_gate jsonb;
  v_failures jsonb := '[]'::jsonb;
begin
  begin
    -- The table first, where waiting has an end: a guard that takes no row lock costs no multixact.
    if current_setting('lock_timeout') <> '0' then
      lock table citeledger.messages in row exclusive mode;
    end if;
  exception
    when lock_not_available or deadlock_detected then
      v_lock_error := sqlstate;
  end;

  if v_lock_error is null then
    -- Nearly always the message is free. Waiting for it in a guard would cost every turn a
    -- multixact: a lock of a subtransaction, then an update of its parent.
    select m.role, m.finalized_at
    into v_role, v_finalized_at
    from citeledger.messages as m
    where m.firm_id = v_firm_id and m.id = p_message_id
    for no key update skip locked;

    if not found then
      begin
        select m.role, m.finalized_at
        into v_role, v_finalized_at
        from citeledger.messages as m
        where m.firm_id = v_firm_id and m.id = p_message_id
        for no key update;
      exception
        when lock_not_available or deadlock_detected then
          v_lock_error := sqlstate;
      end;
    end if;
  end if;

  if v_lock_error is not null then
    perform citeledger_private.log_failure(v_firm_id, array[p_message_id], 'lock', v_lock_error);
    v_failures := jsonb_build_array(
      jsonb_build_object('stage', 'lock', 'sqlstate', v_lock_error)
    );
  end if;
  -- A message that is busy, not there, or not the assistant's.
  if v_role is distinct from 'assistant' then
    return jsonb_build_object(
      'message_id', p_message_id,
      'finalized', false,
      'entries_written', 0,
      'gate', null,
      'failures', v_failures
    );
  end if;

  -- What is only read for the report has guards too: a broken table must not break the turn.
  begin
    v_entries_before := citeledger_private.count_entries(v_firm_id, p_message_id);
  exception
    when others then
      v_entries_before := 0;
  end;

  if v_finalized_at is null then
    -- The trigger of messages does the work, as for everybody else who sets finalized_at.
    update citeledger.messages as m
    set finalized_at = clock_timestamp()
    where m.firm_id = v_firm_id and m.id = p_message_id;
  else
    perform citeledger_private.settle(v_firm_id, array[p_message_id]);
  end if;

  begin
    select r.entries - v_entries_before, r.gate, r.failures
    into v_entries_written, v_gate, v_failures
    from citeledger_private.finalize_report(v_firm_id, p_message_id) as r;
  exception
    when others then
      v_failures := jsonb_build_array(
        jsonb_build_object('stage', 'report', 'sqlstate', sqlstate)
      );
  end;

  return jsonb_build_object(
    'message_id', p_message_id,
    'finalized', true,
    'entries_written', coalesce(v_entries_written, 0),
    'gate', v_gate,
    'failures', v_failures
  );
end
$$;

comment on function citeledger.finalize_turn(uuid) is
  'Finalizes the turn p_message_id: sets finalized_at if it is null, assembles its ledger, records '
  'its verdict. Called again, it assembles and counts again. Returns {"message_id", "finalized", '
  '"entries_written", "gate", "failures"}: finalized is false for a message that is unknown, not '
  'the assistant''s, or busy; gate is the verdict''s row less firm_id, or null; failures lists '
  '{"stage", "sqlstate"}. It never raises because a step failed: the failure is logged in '
  'finalize_failure and warned about, an old verdict is withdrawn, and finalize_pending tries '
  'again. Under repeatable read or serializable no verdict is recorded (stage isolation). Locks '
  'the message until the transaction ends. For citeledger_app. Errors that pass: 57014 (cancel, '
  'timeouts), 40001 (run the transaction again), 55P03 while DDL holds messages itself, and what a '
  'deferred constraint raises at commit. Call it in a savepoint, or in a transaction of its own, '
  'where the turn must survive those.';

revoke all on function citeledger.finalize_turn(uuid) from public;
grant execute on function citeledger.finalize_turn(uuid) to citeledger_app;
grant execute on function citeledger.finalize_turn(uuid) to citeledger_admin;

reset role;

-- gate/finalize_turns@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.finalize_turns(
  p_message_ids uuid[]
)
returns integer
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_again uuid[];
  v_verdicts integer;
begin
  perform
  from citeledger.messages as m
  where m.firm_id = v_firm_id and m.id = any(p_message_ids)
  order by m.id
  for no key update;

  -- Read before the update, which settles the others through the trigger of messages.
  v_again := array(
    select m.id
    from citeledger.messages as m
    where m.firm_id = v_firm_id
      and m.id = any(p_message_ids)
      and m.role = 'assistant'
      and m.finalized_at is not null
    order by m.id
  );

  update citeledger.messages as m
  set finalized_at = clock_timestamp()
  where m.firm_id = v_firm_id
    and m.id = any(p_message_ids)
    and m.role = 'assistant'
    and m.finalized_at is null;

  perform citeledger_private.settle(v_firm_id, v_again);

  begin
    select count(*)::integer
    into v_verdicts
    from citeledger.work_product_fiduciary_gate as g
    where g.firm_id = v_firm_id and g.message_id = any(p_message_ids);
  exception
    when others then
      v_verdicts := 0;
  end;
  return v_verdicts;
end
$$;

comment on function citeledger.finalize_turns(uuid[]) is
  'finalize_turn for many turns at once, set-based; returns how many of them have a verdict now. '
  'Messages that are unknown or not the assistant''s are passed over, nulls and repeats do no '
  'harm. One turn whose step fails spoils no other: it is logged in finalize_failure and has no '
  'verdict. Locks the messages in id order until the transaction ends. For citeledger_app. Errors '
  'that pass: as for finalize_turn, and 55P03 or 40P01 while it waits for its locks.';

revoke all on function citeledger.finalize_turns(uuid[]) from public;
grant execute on function citeledger.finalize_turns(uuid[]) to citeledger_app;
grant execute on function citeledger.finalize_turns(uuid[]) to citeledger_admin;

reset role;

-- gate/finalize_pending

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.finalize_pending(
  p_limit integer default 1000
)
returns integer
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_message_ids uuid[];
  v_verdicts integer;
begin
  if p_limit is null or p_limit < 1 then
    raise exception using
      errcode = '22023',
      message = 'p_limit is not a number of turns',
      detail = format('p_limit is %s.', coalesce(p_limit::text, 'null')),
      hint = 'Pass a number from 1 up, or leave it out for 1000.';
  end if;

  -- Those that failed longest ago first, so that turns that fail again and again starve no other.
  v_message_ids := array(
    select pending.id
    from (
      select m.id
      from citeledger.messages as m
      where m.firm_id = v_firm_id
        and m.role = 'assistant'
        and m.finalized_at is not null
        and (
          not exists (
            select
            from citeledger.work_product_fiduciary_gate as g
            where g.firm_id = v_firm_id and g.message_id = m.id
          )
          or exists (
            select
            from citeledger.finalize_failure as f
            where f.firm_id = v_firm_id and f.message_id = m.id
          )
        )
      order by
        (
          select max(f.failed_at)
          from citeledger.finalize_failure as f
          where f.firm_id = v_firm_id and f.message_id = m.id
        ) nulls first,
        m.id
      limit p_limit
      for no key update of m skip locked
    ) as pending
    order by pending.id
  );

  perform citeledger_private.settle(v_firm_id, v_message_ids);

  select count(*)::integer
  into v_verdicts
  from citeledger.work_product_fiduciary_gate as g
  where g.firm_id = v_firm_id and g.message_id = any(v_message_ids);
  return v_verdicts;
end
$$;

comment on function citeledger.finalize_pending(integer) is
  'Finalizes up to p_limit of the context firm''s finalized turns that lack a verdict or have '
  'logged failures, skipping those that another session has locked; returns how many of them have '
  'a verdict now. Run it from a job, under read committed; a turn whose source cannot be written '
  'keeps its flagged verdict and its failure, and is tried again each time, after all others. '
  'Locks those messages until the transaction ends. For citeledger_app. Errors: 22023 for a '
  'p_limit that is null or below 1; those that pass, as for finalize_turn.';

revoke all on function citeledger.finalize_pending(integer) from public;
grant execute on function citeledger.finalize_pending(integer) to citeledger_app;
grant execute on function citeledger.finalize_pending(integer) to citeledger_admin;

reset role;

-- ledger/ledger_trace@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.ledger_trace(
  p_chat_id uuid,
  p_message_id uuid default null
)
returns jsonb
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_entries jsonb;
  v_gates jsonb;
begin
  perform citeledger.require_permission('matters:read');

  -- A matter is reached through projects alone, where row security decides. The wall is asked for
  -- by name besides: inside the cascade of a foreign key, which anybody may set up on a temporary
  -- table, the owner passes row security.
  if not exists (
    select
    from citeledger.chats as c
    where c.firm_id = v_firm_id
      and c.id = p_chat_id
      and (
        c.project_id is null
        or exists (
          select
          from citeledger.projects as p
          where p.firm_id = v_firm_id
            and p.id = c.project_id
            and not citeledger_private.is_behind_wall(v_firm_id, p.id)
        )
      )
  ) then
    raise exception using
      errcode = 'P0002',
      message = 'chat not found',
      detail = 'No chat of this id is visible in the context.',
      hint = 'Check the id, the firm of the context, and who may see the matter.';
  end if;

  select coalesce(
    jsonb_agg(
      jsonb_build_object(
        'id', e.id,
        'message_id', e.message_id,
        'source_kind', e.source_kind,
        'verification_status', e.verification_status,
        'tier', citeledger.verification_tier(e.verification_status),
        'confidence', e.confidence,
        'provider', e.provider,
        'retrieved_at', e.retrieved_at,
        'treatment_id', e.treatment_id,
        'created_at', e.created_at,
        'source', case
          when k.id is not null then
            jsonb_build_object(
              'kind', 'kb_document',
              'document_id', k.source_document_id,
              'page', k.source_page,
              'block', k.source_block
            )
            || case
              when k.source_document_id is not null and d.id is null then
                jsonb_build_object('passages', null, 'withheld', true)
              else
                jsonb_build_object(
                  'passages', jsonb_build_array(
                    jsonb_build_object(
                      'text', k.source_text,
                      'offset_start', k.source_offset_start,
                      'offset_end', k.source_offset_end
                    )
                  )
                )
            end
          when l.id is not null then
            jsonb_build_object(
              'kind', 'caselaw',
              'opinion_id', l.opinion_id,
              'cluster_id', l.cluster_id,
              'partial', l.partial,
              'passages', jsonb_build_array(
                jsonb_build_object(
                  'text', l.source_text,
                  'offset_start', l.source_offset_start,
                  'offset_end', l.source_offset_end
                )
              )
            )
          else
            jsonb_build_object(
              'kind', t.source_kind,
              'label', t.label,
              'subtitle', t.subtitle,
              'url', t.url,
              'external_ref', t.external_ref,
              'tool', t.tool
            )
        end
      )
      order by coalesce(k.created_at, l.created_at, t.created_at), e.id
    ),
    '[]'
  )
  into v_entries
  from citeledger.citation_ledger_entry as e
  left join citeledger.message_citations as k
    on k.firm_id = v_firm_id and k.id = e.message_citation_id
  -- Only a document whose quotes may be shown: live, not privileged, in no matter that is hidden.
  left join citeledger.documents as d
    on d.firm_id = v_firm_id
    and d.id = k.source_document_id
    and not d.is_privileged
    and d.deleted_at is null
    and (
      d.project_id is null
      or exists (
        select
        from citeledger.projects as p
        where p.firm_id = v_firm_id
          and p.id = d.project_id
          and not citeledger_private.is_behind_wall(v_firm_id, p.id)
      )
    )
  left join citeledger.message_caselaw_citations as l
    on l.firm_id = v_firm_id and l.id = e.message_caselaw_citation_id
  left join citeledger.message_tool_sources as t
    on t.firm_id = v_firm_id and t.id = e.message_tool_source_id
  where e.firm_id = v_firm_id
    and e.chat_id = p_chat_id
    and (p_message_id is null or e.message_id = p_message_id);

  select coalesce(
    jsonb_agg(to_jsonb(g) - 'firm_id' order by m.created_at, m.id),
    '[]'
  )
  into v_gates
  from citeledger.work_product_fiduciary_gate as g
  join citeledger.messages as m on m.firm_id = v_firm_id and m.id = g.message_id
  where g.firm_id = v_firm_id
    and g.chat_id = p_chat_id
    and (p_message_id is null or g.message_id = p_message_id);

  return jsonb_build_object('chat_id', p_chat_id, 'entries', v_entries, 'gates', v_gates);
end
$$;

comment on function citeledger.ledger_trace(uuid, uuid) is
  'The ledger and the verdicts of the chat p_chat_id, or of its message p_message_id alone: '
  '{"chat_id", "entries", "gates"}. An entry: {"id", "message_id", "source_kind", '
  '"verification_status", "tier", "confidence", "provider", "retrieved_at", "treatment_id", '
  '"created_at", "source"}, in the order in which the sources were recorded, then by id. The '
  'source is read from the content tables now: {"kind": "kb_document", "document_id", "page", '
  '"block", "passages"}, {"kind": "caselaw", "opinion_id", "cluster_id", "partial", "passages"}, '
  'or for a tool {"kind": its source_kind, "label", "subtitle", "url", "external_ref", "tool"}; a '
  'passage is {"text", "offset_start", "offset_end"}, offsets in Unicode code points. Passages of '
  'a document that is privileged, withdrawn or in a matter hidden from the caller are null, with '
  '"withheld": true. A gate: the row of work_product_fiduciary_gate less firm_id. A p_message_id '
  'that is not of the chat gives empty lists. Needs matters:read. For citeledger_reader. Errors: '
  '42501 without the permission; P0002 when the chat is not there for the caller or belongs to a '
  'matter that is not.';

revoke all on function citeledger.ledger_trace(uuid, uuid) from public;
grant execute on function citeledger.ledger_trace(uuid, uuid) to citeledger_reader;
grant execute on function citeledger.ledger_trace(uuid, uuid) to citeledger_app;
grant execute on function citeledger.ledger_trace(uuid, uuid) to citeledger_admin;

reset role;

-- cite/span@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create type citeledger_private.span as (
  document_id uuid,
  page_number integer,
  block_index integer,
  char_start integer,
  char_end integer,
  quote text
);

create function citeledger_private.is_whole_number(
  p_value jsonb,
  p_least integer
)
returns boolean
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_number numeric;
begin
  if p_value is null or jsonb_typeof(p_value) <> 'number' then
    return false;
  end if;
  v_number := p_value::numeric;
  return v_number = trunc(v_number) and v_number between p_least and 2147483647;
end
$$;

create function citeledger_private.is_blank(
  p_text text
)
returns boolean
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_invisible constant text :=
    -- Controls that are white space, blanks, the no-break space and the soft hyphen.
    E'\u0009\u000a\u000b\u000c\u000d\u001c\u001d\u001e\u001f\u0020\u0085\u00a0\u00ad'
    -- Joiners and fillers that show nothing.
    || E'\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f'
    -- Spaces of every width, zero-width characters, direction marks, line separators.
    || E'\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u200b\u200c\u200d'
    || E'\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u202f\u205f\u2060\u2061\u2062'
    || E'\u2063\u2064\u2066\u2067\u2068\u2069\u206a\u206b\u206c\u206d\u206e\u206f'
    -- Wide fillers, variation selectors, byte order mark, annotation marks.
    || E'\u2800\u3000\u3164\ufe00\ufe01\ufe02\ufe03\ufe04\ufe05\ufe06\ufe07\ufe08\ufe09\ufe0a'
    || E'\ufe0b\ufe0c\ufe0d\ufe0e\ufe0f\ufeff\uffa0\ufff9\ufffa\ufffb';
  v_rest text;
begin
  -- Nearly always the first character is a letter, digit or sign of ASCII.
  if ascii(p_text) between 33 and 126 then
    return false;
  end if;
  v_rest := ltrim(p_text, v_invisible);
  -- Or the first one that is left can be seen. Tags and further variation selectors fill a plane
  -- that shows nothing.
  if v_rest = '' or ascii(v_rest) not between 917504 and 921599 then
    return v_rest = '';
  end if;
  return not exists (
    select
    from string_to_table(v_rest, null) as l (letter)
    where ascii(l.letter) not between 917504 and 921599
      and strpos(v_invisible, l.letter) = 0
  );
end
$$;

create function citeledger_private.span_fault(
  p_span jsonb
)
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  -- Null for an optional key means that the key is absent.
  v_span jsonb;
  v_unknown text;
begin
  if p_span is null or jsonb_typeof(p_span) <> 'object' then
    return 'span: not an object';
  end if;
  v_span := p_span;
  if v_span -> 'block_index' = 'null' then
    v_span := v_span - 'block_index';
  end if;
  if v_span -> 'char_start' = 'null' then
    v_span := v_span - 'char_start';
  end if;
  if v_span -> 'char_end' = 'null' then
    v_span := v_span - 'char_end';
  end if;

  select min(k.key collate "C")
  into v_unknown
  from jsonb_object_keys(
    v_span - array[
      'document_id', 'page_number', 'block_index', 'char_start', 'char_end', 'quote'
    ]
  ) as k (key);
  if v_unknown is not null then
    -- Named only where it has the form of a name, which holds no content.
    return case
      when v_unknown ~ '^[A-Za-z_][A-Za-z0-9_]{0,31}$' then format('%s: unknown key', v_unknown)
      else 'span: it has an unknown key'
    end;
  end if;
  if not v_span ? 'document_id' then
    return 'document_id: missing';
  end if;
  if jsonb_typeof(v_span -> 'document_id') <> 'string'
    or v_span ->> 'document_id' !~ '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'
  then
    return 'document_id: not a uuid';
  end if;
  if not v_span ? 'page_number' then
    return 'page_number: missing';
  end if;
  if not citeledger_private.is_whole_number(v_span -> 'page_number', 1) then
    return 'page_number: not a whole number from 1 to 2147483647';
  end if;
  if v_span ? 'block_index'
    and not citeledger_private.is_whole_number(v_span -> 'block_index', 0)
  then
    return 'block_index: not a whole number from 0 to 2147483647';
  end if;
  if v_span ? 'char_start'
    and not citeledger_private.is_whole_number(v_span -> 'char_start', 0)
  then
    return 'char_start: not a whole number from 0 to 2147483647';
  end if;
  if v_span ? 'char_end'
    and not citeledger_private.is_whole_number(v_span -> 'char_end', 0)
  then
    return 'char_end: not a whole number from 0 to 2147483647';
  end if;
  if v_span ? 'char_start' and not v_span ? 'char_end' then
    return 'char_end: missing, for there is a char_start';
  end if;
  if v_span ? 'char_end' and not v_span ? 'char_start' then
    return 'char_start: missing, for there is a char_end';
  end if;
  if v_span ? 'char_start'
    and (v_span -> 'char_end')::numeric <= (v_span -> 'char_start')::numeric
  then
    return 'char_end: not after char_start';
  end if;
  if not v_span ? 'quote' then
    return 'quote: missing';
  end if;
  if jsonb_typeof(v_span -> 'quote') <> 'string' then
    return 'quote: not a text';
  end if;
  if citeledger_private.is_blank(v_span ->> 'quote') then
    return 'quote: empty, or nothing in it can be seen';
  end if;
  return null;
end
$$;

create function citeledger_private.to_span(
  p_span jsonb
)
returns citeledger_private.span
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  return row(
    (p_span ->> 'document_id')::uuid,
    (p_span ->> 'page_number')::numeric::integer,
    (p_span ->> 'block_index')::numeric::integer,
    (p_span ->> 'char_start')::numeric::integer,
    (p_span ->> 'char_end')::numeric::integer,
    p_span ->> 'quote'
  );
end
$$;

create function citeledger_private.read_span(
  p_span jsonb
)
returns citeledger_private.span
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fault text := citeledger_private.span_fault(p_span);
begin
  if v_fault is not null then
    raise exception using
      errcode = '22023',
      message = 'the span is malformed',
      detail = format('%s.', v_fault),
      hint = 'A span is {"document_id": uuid, "page_number": from 1, "block_index": from 0, '
        '"char_start": from 0, "char_end": exclusive, "quote": text}; block_index and the two '
        'offsets may be left out.';
  end if;
  return citeledger_private.to_span(p_span);
end
$$;

create function citeledger_private.write_span(
  p_span citeledger_private.span
)
returns jsonb
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  return jsonb_strip_nulls(to_jsonb(p_span));
end
$$;

comment on type citeledger_private.span is
  'A quote and where it is said to stand. page_number from 1, block_index from 0 or null, offsets '
  'in Unicode code points from 0, end exclusive, both or neither, counted in the block, or in the '
  'page where block_index is null.';
comment on column citeledger_private.span.document_id is 'The document.';
comment on column citeledger_private.span.page_number is 'The page, from 1.';
comment on column citeledger_private.span.block_index is 'The block, from 0; null for the page.';
comment on column citeledger_private.span.char_start is
  'First character of the quote, in code points from 0; null when it may stand anywhere.';
comment on column citeledger_private.span.char_end is
  'One past the last character of the quote; null exactly when the start is.';
comment on column citeledger_private.span.quote is 'The quote, byte for byte.';
comment on function citeledger_private.is_whole_number(jsonb, integer) is
  'Whether a JSON value is a whole number from p_least to 2147483647; a text or a boolean never '
  'is.';
comment on function citeledger_private.is_blank(text) is
  'Whether nothing in the text can be seen: it is empty, or only white space, Unicode spaces, soft '
  'hyphens, zero-width characters, joiners, direction marks, variation selectors and byte order '
  'marks, or it is null.';
comment on function citeledger_private.span_fault(jsonb) is
  'What is wrong with a span, as "key: problem" without any of its text; null when it is '
  'well-formed.';
comment on function citeledger_private.to_span(jsonb) is
  'The span that a well-formed p_span is; whoever calls it has asked span_fault.';
comment on function citeledger_private.read_span(jsonb) is
  'A well-formed span as a row. Errors: 22023 with the offending key in DETAIL.';
comment on function citeledger_private.write_span(citeledger_private.span) is
  'A span as JSON, without the optional keys that are absent.';

revoke all on type citeledger_private.span from public;
revoke all on function citeledger_private.is_whole_number(jsonb, integer) from public;
revoke all on function citeledger_private.is_blank(text) from public;
revoke all on function citeledger_private.span_fault(jsonb) from public;
revoke all on function citeledger_private.to_span(jsonb) from public;
revoke all on function citeledger_private.read_span(jsonb) from public;
revoke all on function citeledger_private.write_span(citeledger_private.span) from public;

reset role;

-- cite/document_pages

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- Offsets are Unicode code points and quotes are compared byte by byte: only UTF8 has both.
do $$
begin
  if pg_catalog.getdatabaseencoding() <> 'UTF8' then
    raise exception using
      errcode = '55000',
      message = 'the database is not encoded in UTF8',
      detail = pg_catalog.format('Its encoding is %s.', pg_catalog.getdatabaseencoding()),
      hint = 'Create a database with encoding UTF8 and deploy there.';
  end if;
end
$$;

create table citeledger.document_pages (
  firm_id uuid not null default citeledger.current_firm_id(),
  document_id uuid not null,
  page_number integer not null,
  created_at timestamptz not null default now(),
  constraint document_pages_pkey primary key (firm_id, document_id, page_number),
  constraint document_pages_document_fkey foreign key (firm_id, document_id)
    references citeledger.documents (firm_id, id) on delete cascade,
  constraint document_pages_page_number_from_one check (page_number >= 1)
);

create table citeledger.document_page_blocks (
  firm_id uuid not null default citeledger.current_firm_id(),
  document_id uuid not null,
  page_number integer not null,
  block_index integer not null,
  content text not null,
  created_at timestamptz not null default now(),
  constraint document_page_blocks_pkey
    primary key (firm_id, document_id, page_number, block_index),
  constraint document_page_blocks_page_fkey foreign key (firm_id, document_id, page_number)
    references citeledger.document_pages (firm_id, document_id, page_number) on delete cascade,
  constraint document_page_blocks_block_index_from_zero check (block_index >= 0)
);

alter table citeledger.document_pages enable row level security;
alter table citeledger.document_pages force row level security;
alter table citeledger.document_page_blocks enable row level security;
alter table citeledger.document_page_blocks force row level security;

create policy document_pages_of_the_firm on citeledger.document_pages
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));
create policy document_page_blocks_of_the_firm on citeledger.document_page_blocks
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

-- No statistics of content: an estimate would tell one firm about the texts of another.
alter table citeledger.document_page_blocks alter column content set statistics 0;

comment on table citeledger.document_pages is
  'The pages of a document as it is now. Replaced as a whole by replace_document_pages.';
comment on column citeledger.document_pages.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.document_pages.document_id is 'The document.';
comment on column citeledger.document_pages.page_number is 'The page, counted from 1.';
comment on column citeledger.document_pages.created_at is 'When the pages were last replaced.';
comment on constraint document_pages_pkey on citeledger.document_pages is
  'A document has a page once.';
comment on constraint document_pages_document_fkey on citeledger.document_pages is
  'A page goes with its document.';
comment on constraint document_pages_page_number_from_one on citeledger.document_pages is
  'Pages are counted from 1.';
comment on policy document_pages_of_the_firm on citeledger.document_pages is
  'Only rows of the firm of the context, to read and to write.';

comment on table citeledger.document_page_blocks is
  'The text of each page, a row for each block. No role may select it: the text is reached through '
  'functions that check who asks.';
comment on column citeledger.document_page_blocks.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.document_page_blocks.document_id is 'The document.';
comment on column citeledger.document_page_blocks.page_number is 'The page, counted from 1.';
comment on column citeledger.document_page_blocks.block_index is
  'The block of the page, counted from 0 without a gap.';
comment on column citeledger.document_page_blocks.content is
  'The block''s text, byte for byte as it was given. The text of a page is its blocks joined by '
  'one line feed.';
comment on column citeledger.document_page_blocks.created_at is
  'When the pages were last replaced.';
comment on constraint document_page_blocks_pkey on citeledger.document_page_blocks is
  'A page has a block once.';
comment on constraint document_page_blocks_page_fkey on citeledger.document_page_blocks is
  'A block goes with its page.';
comment on constraint document_page_blocks_block_index_from_zero
  on citeledger.document_page_blocks is
  'Blocks are counted from 0.';
comment on policy document_page_blocks_of_the_firm on citeledger.document_page_blocks is
  'Only rows of the firm of the context, to read and to write.';

revoke all on table citeledger.document_pages from public;
revoke all on table citeledger.document_page_blocks from public;
grant select on table citeledger.document_pages to citeledger_app;

reset role;

-- cite/replace_document_pages

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.pages_fault(
  p_pages jsonb
)
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_page jsonb;
  v_position bigint;
begin
  if p_pages is null or jsonb_typeof(p_pages) <> 'array' then
    return 'p_pages: not a list of pages';
  end if;
  for v_page, v_position in
    select p.page, p.position
    from jsonb_array_elements(p_pages) with ordinality as p (page, position)
  loop
    if jsonb_typeof(v_page) <> 'object' then
      return format('page %s of the list: not an object', v_position);
    end if;
    if not v_page ?& array['page_number', 'blocks']
      or v_page - array['page_number', 'blocks'] <> '{}'
    then
      return format('page %s of the list: its keys are not page_number and blocks', v_position);
    end if;
    if not citeledger_private.is_whole_number(v_page -> 'page_number', 1) then
      return format(
        'page_number of page %s of the list: not a whole number from 1 to 2147483647', v_position
      );
    end if;
    if jsonb_typeof(v_page -> 'blocks') <> 'array'
      or jsonb_path_exists(v_page -> 'blocks', 'strict $[*] ? (@.type() != "string")')
    then
      return format('blocks of page %s of the list: not a list of texts', v_position);
    end if;
  end loop;
  if (
    select count(*) > count(distinct (p.page ->> 'page_number')::numeric)
    from jsonb_array_elements(p_pages) as p (page)
  ) then
    return 'page_number: a page is given twice';
  end if;
  return null;
end
$$;

create function citeledger.replace_document_pages(
  p_document_id uuid,
  p_pages jsonb
)
returns integer
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_fault text := citeledger_private.pages_fault(p_pages);
  v_pages integer;
begin
  if v_fault is not null then
    raise exception using
      errcode = '22023',
      message = 'the pages are malformed',
      detail = format('%s.', v_fault),
      hint = 'Pass [{"page_number": 1, "blocks": ["...", "..."]}, ...].';
  end if;

  perform citeledger_private.queue_ingest(v_firm_id);
  -- Locked before it is read, so that of two replacements at once the second sees all that the
  -- first did.
  perform
  from citeledger.documents as d
  where d.firm_id = v_firm_id and d.id = p_document_id
  for no key update;
  if not found then
    raise exception using
      errcode = 'P0002',
      message = 'document not found',
      detail = 'No document of this id is in the firm of the context.',
      hint = 'Check the id and the firm of the context.';
  end if;

  delete from citeledger.document_pages as p
  where p.firm_id = v_firm_id and p.document_id = p_document_id;

  with written as (
    insert into citeledger.document_pages (firm_id, document_id, page_number)
    select v_firm_id, p_document_id, (p.page ->> 'page_number')::numeric::integer
    from jsonb_array_elements(p_pages) as p (page)
    on conflict do nothing
    returning page_number
  )
  select count(*)::integer into v_pages from written;

  insert into citeledger.document_page_blocks (
    firm_id, document_id, page_number, block_index, content
  )
  select
    v_firm_id, p_document_id, (p.page ->> 'page_number')::numeric::integer,
    b.position - 1, b.content
  from jsonb_array_elements(p_pages) as p (page)
  cross join lateral jsonb_array_elements_text(p.page -> 'blocks') with ordinality
    as b (content, position)
  on conflict do nothing;

  return v_pages;
end
$$;

comment on function citeledger_private.pages_fault(jsonb) is
  'What is wrong with a list of pages, naming the key and the place but none of the text; null '
  'when it is well-formed.';
comment on function citeledger.replace_document_pages(uuid, jsonb) is
  'Replaces all pages of the document p_document_id by p_pages: [{"page_number": from 1, "blocks": '
  '["text", ...]}, ...], in any order; an empty list leaves none. Returns how many pages the '
  'document has now. The text is kept byte for byte. A reader sees the old pages or the new, never '
  'a mixture; of two replacements at once one whole result stays. Locks the firm''s graph and the '
  'document until the transaction ends. For citeledger_app. Errors: 22023 for malformed pages, '
  'naming the key; P0002 when the document is not in the firm; 40001 above read committed when the '
  'pages were replaced after the snapshot.';

revoke all on function citeledger_private.pages_fault(jsonb) from public;
revoke all on function citeledger.replace_document_pages(uuid, jsonb) from public;
grant execute on function citeledger.replace_document_pages(uuid, jsonb) to citeledger_app;
grant execute on function citeledger.replace_document_pages(uuid, jsonb) to citeledger_admin;

reset role;

-- cite/deep_link@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.deep_link(
  p_matter_number text,
  p_document_id uuid,
  p_page_number integer,
  p_block_index integer default null
)
returns text
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_matter text := p_matter_number;
begin
  -- Percent-encoding of RFC 3986: every byte that is not unreserved. Most numbers have none.
  if translate(
    p_matter_number, 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~-', ''
  ) <> '' then
    select string_agg(
      case
        when c.letter collate "C" ~ '^[A-Za-z0-9._~-]$' then c.letter
        else regexp_replace(
          upper(encode(convert_to(c.letter, 'UTF8'), 'hex')), '(..)', E'%\\1', 'g'
        )
      end,
      ''
      order by c.position
    )
    into v_matter
    from string_to_table(p_matter_number, null) with ordinality as c (letter, position);
  end if;

  return format('/matters/%s/record/doc/%s?page=%s', v_matter, p_document_id, p_page_number)
    || coalesce('&block=' || p_block_index, '');
end
$$;

comment on function citeledger.deep_link(text, uuid, integer, integer) is
  'The link to a page of a document, with the block where p_block_index is given: '
  '/matters/{matter_number}/record/doc/{document_id}?page={page_number}[&block={block_index}], the '
  'matter number percent-encoded. Built here and nowhere else, and granted to nobody: no link '
  'exists for what did not verify.';

revoke all on function citeledger.deep_link(text, uuid, integer, integer) from public;

reset role;

-- cite/resolve_spans@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.resolve_spans(
  p_firm_id uuid,
  p_spans citeledger_private.span[]
)
returns table (
  span_position bigint,
  reason text
)
language plpgsql
stable
parallel safe
security invoker
rows 10
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  with span as materialized (
    select s.*
    from unnest(p_spans) with ordinality as s (
      document_id, page_number, block_index, char_start, char_end, quote, span_position
    )
  ),
  -- A page is put together once, however many spans are anchored in it.
  page as materialized (
    select a.document_id, a.page_number, t.content
    from (
      select distinct s.document_id, s.page_number from span as s where s.block_index is null
    ) as a
    join citeledger.document_pages as p
      on p.firm_id = p_firm_id
      and p.document_id = a.document_id
      and p.page_number = a.page_number
    cross join lateral (
      select coalesce(string_agg(b.content, E'\n' order by b.block_index), '') as content
      from citeledger.document_page_blocks as b
      where b.firm_id = p_firm_id
        and b.document_id = p.document_id
        and b.page_number = p.page_number
    ) as t
  ),
  unit as (
    select s.*, b.content
    from span as s
    left join citeledger.document_page_blocks as b
      on b.firm_id = p_firm_id
      and b.document_id = s.document_id
      and b.page_number = s.page_number
      and b.block_index = s.block_index
    where s.block_index is not null
    union all
    select s.*, p.content
    from span as s
    left join page as p on p.document_id = s.document_id and p.page_number = s.page_number
    where s.block_index is null
  )
  select
    u.span_position,
    case
      when u.content is null then
        case
          when not exists (
            select
            from citeledger.document_pages as p
            where p.firm_id = p_firm_id and p.document_id = u.document_id
          )
            then 'no_pages'
          when not exists (
            select
            from citeledger.document_pages as p
            where p.firm_id = p_firm_id
              and p.document_id = u.document_id
              and p.page_number = u.page_number
          )
            then 'page_missing'
          else 'block_out_of_range'
        end
      when u.char_start is null then
        case
          when strpos(u.content collate "C", u.quote collate "C") = 0
            or citeledger_private.is_blank(u.quote)
            then 'quote_absent'
        end
      -- Checked before the slice is cut: substring would clip to the text without a word.
      when u.char_end > char_length(u.content) then 'offsets_out_of_range'
      when substring(u.content from u.char_start + 1 for u.char_end - u.char_start) collate "C"
          <> u.quote collate "C"
        or citeledger_private.is_blank(u.quote)
        then 'text_mismatch'
    end
  from unit as u;
end
$$;

comment on function citeledger_private.resolve_spans(uuid, citeledger_private.span[]) is
  'Compares each span with the live page, byte for byte: one row a span, reason null where it '
  'verifies, else no_pages, page_missing, block_out_of_range, offsets_out_of_range, text_mismatch '
  'or quote_absent. span_position: the span''s place in the array, from 1. A blank quote verifies '
  'nowhere. The one place where a span is compared.';

revoke all on function citeledger_private.resolve_spans(uuid, citeledger_private.span[])
  from public;

reset role;

-- cite/resolve_span

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create type citeledger.span_resolution as (
  verified boolean,
  reason text
);

create function citeledger.resolve_span(
  p_span jsonb
)
returns citeledger.span_resolution
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_span citeledger_private.span := citeledger_private.read_span(p_span);
  v_resolution citeledger.span_resolution;
begin
  select r.reason is null, r.reason
  into v_resolution
  from citeledger_private.resolve_spans(citeledger.current_firm_id(), array[v_span]) as r;
  return v_resolution;
end
$$;

comment on type citeledger.span_resolution is
  'Whether a span holds against the live page now, and why not: reason is null exactly when '
  'verified is true.';
comment on column citeledger.span_resolution.verified is
  'Whether the quote stands where the span says, byte for byte.';
comment on column citeledger.span_resolution.reason is
  'Null when verified, else no_pages, page_missing, block_out_of_range, offsets_out_of_range, '
  'text_mismatch or quote_absent.';
comment on function citeledger.resolve_span(jsonb) is
  'Compares a span with the live page of its document: {"document_id", "page_number" from 1, '
  '"block_index" from 0, "char_start", "char_end", "quote"}; null for block_index or the offsets '
  'means absent. Offsets are Unicode code points from 0, end exclusive, in the block, or in the '
  'page (its blocks joined by one line feed) without block_index. With offsets the slice must '
  'equal the quote byte for byte; without, the quote must stand somewhere in the block or page. '
  'Nothing is normalised, trimmed or folded. Every drift is verified = false with a reason: '
  'no_pages (also for a document that is not there), page_missing, block_out_of_range, '
  'offsets_out_of_range, text_mismatch, quote_absent. It checks no matter: for applications that '
  'cite, there is cite. For citeledger_app. Errors: 22023 for a malformed span, with the offending '
  'key in DETAIL.';

revoke all on type citeledger.span_resolution from public;
grant usage on type citeledger.span_resolution to citeledger_app;
grant usage on type citeledger.span_resolution to citeledger_admin;
revoke all on function citeledger.resolve_span(jsonb) from public;
grant execute on function citeledger.resolve_span(jsonb) to citeledger_app;
grant execute on function citeledger.resolve_span(jsonb) to citeledger_admin;

reset role;

-- cite/record_in_matter@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.visible_matter_number(
  p_firm_id uuid,
  p_matter_id uuid
)
returns text
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
begin
  return (
    -- Row security decides, and the wall is asked for by name besides: inside the cascade of a
    -- foreign key, which anybody may set up on a temporary table, the owner passes row security.
    select p.matter_number
    from citeledger.projects as p
    where p.firm_id = p_firm_id
      and p.id = p_matter_id
      and not citeledger_private.is_behind_wall(p_firm_id, p_matter_id)
  );
end
$$;

create function citeledger_private.holds_record(
  p_firm_id uuid,
  p_matter_id uuid,
  p_document_id uuid
)
returns boolean
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
begin
  return exists (
    select
    from citeledger.documents as d
    where d.firm_id = p_firm_id
      and d.id = p_document_id
      and d.project_id = p_matter_id
      and d.document_kind = 'record'
      and not d.is_privileged
      and d.deleted_at is null
  );
end
$$;

create function citeledger_private.refuse_as_not_found()
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception using
    errcode = 'P0002',
    message = 'record not found',
    detail = 'No record that may be cited here is visible in the context.',
    hint = 'Check the ids, the firm of the context, and who may see the matter.';
end
$$;

comment on function citeledger_private.visible_matter_number(uuid, uuid) is
  'The number of a matter that is visible in the context, else null.';
comment on function citeledger_private.holds_record(uuid, uuid, uuid) is
  'Whether the document is a live, non-privileged record of the matter: what may be cited.';
comment on function citeledger_private.refuse_as_not_found() is
  'Raises the one P0002 of cite and its kin: the same message, detail and hint whatever is not '
  'there, so that nothing can be told from it.';

revoke all on function citeledger_private.visible_matter_number(uuid, uuid) from public;
revoke all on function citeledger_private.holds_record(uuid, uuid, uuid) from public;
revoke all on function citeledger_private.refuse_as_not_found() from public;

reset role;

-- cite/cite@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.cite_resolution(
  p_matter_number text,
  p_span citeledger_private.span,
  p_reason text
)
returns jsonb
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  return jsonb_build_object(
    'verified', p_reason is null,
    'reason', p_reason,
    'deep_link', case
      when p_reason is null then citeledger.deep_link(
        p_matter_number, p_span.document_id, p_span.page_number, p_span.block_index
      )
    end,
    'engine_state', 'live',
    'checked_at', statement_timestamp(),
    'span', citeledger_private.write_span(p_span)
  );
end
$$;

create function citeledger.cite(
  p_matter_id uuid,
  p_span jsonb
)
returns jsonb
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_span citeledger_private.span;
  v_matter_number text;
  v_reason text;
begin
  perform citeledger.require_permission('matters:read');
  v_span := citeledger_private.read_span(p_span);

  v_matter_number := citeledger_private.visible_matter_number(v_firm_id, p_matter_id);
  if v_matter_number is null
    or not citeledger_private.holds_record(v_firm_id, p_matter_id, v_span.document_id)
  then
    perform citeledger_private.refuse_as_not_found();
  end if;

  select r.reason
  into strict v_reason
  from citeledger_private.resolve_spans(v_firm_id, array[v_span]) as r;
  return citeledger_private.cite_resolution(v_matter_number, v_span, v_reason);
end
$$;

comment on function citeledger_private.cite_resolution(text, citeledger_private.span, text) is
  'A CiteResolution as JSON; the link is there only when p_reason is null, which means verified.';
comment on function citeledger.cite(uuid, jsonb) is
  'Checks a span of a record of the matter p_matter_id against the live page, now, and gives the '
  'link to it when it holds: {"verified", "reason", "deep_link", "engine_state": "live", '
  '"checked_at", "span"}. The checks come in this order: the permission matters:read (42501), the '
  'form of the span (22023), the matter is visible and holds the document as a live, '
  'non-privileged record (P0002), the text. For the span and the reasons see resolve_span. '
  'deep_link is null unless verified. checked_at is when the statement began. For '
  'citeledger_reader. Errors: 42501; 22023 with the offending key in DETAIL; P0002, the same '
  'whatever is not there.';

revoke all on function citeledger_private.cite_resolution(text, citeledger_private.span, text)
  from public;
revoke all on function citeledger.cite(uuid, jsonb) from public;
grant execute on function citeledger.cite(uuid, jsonb) to citeledger_reader;
grant execute on function citeledger.cite(uuid, jsonb) to citeledger_app;
grant execute on function citeledger.cite(uuid, jsonb) to citeledger_admin;

reset role;

-- cite/cite_many@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.cite_many(
  p_matter_id uuid,
  p_spans jsonb
)
returns jsonb
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_matter_number text;
  v_faults text[];
  v_spans citeledger_private.span[];
  v_positions bigint[];
  v_result jsonb;
begin
  perform citeledger.require_permission('matters:read');
  if p_spans is null or jsonb_typeof(p_spans) <> 'array' then
    raise exception using
      errcode = '22023',
      message = 'p_spans is not a list of spans',
      detail = format('p_spans is %s.', coalesce(jsonb_typeof(p_spans), 'null')),
      hint = 'Pass a JSON array of spans; for a single one there is citeledger.cite.';
  end if;
  v_matter_number := citeledger_private.visible_matter_number(v_firm_id, p_matter_id);
  if v_matter_number is null then
    perform citeledger_private.refuse_as_not_found();
  end if;

  -- Each item is judged once, and each document asked for once. What can be looked at is
  -- well-formed, and of a record of the matter.
  with item as materialized (
    select i.item, i.position, citeledger_private.span_fault(i.item) as fault
    from jsonb_array_elements(p_spans) with ordinality as i (item, position)
  ),
  span as materialized (
    select i.position, citeledger_private.to_span(i.item) as span
    from item as i
    where i.fault is null
  ),
  document as materialized (
    select distinct (s.span).document_id as id from span as s
  ),
  held as materialized (
    select d.id
    from document as d
    where citeledger_private.holds_record(v_firm_id, p_matter_id, d.id)
  ),
  good as materialized (
    select s.position, s.span
    from span as s
    where (s.span).document_id in (select h.id from held as h)
  )
  select
    (select array_agg(i.fault order by i.position) from item as i),
    (select array_agg(g.span order by g.position) from good as g),
    (select array_agg(g.position order by g.position) from good as g)
  into v_faults, v_spans, v_positions;

  select coalesce(
    jsonb_agg(
      coalesce(
        checked.resolution,
        jsonb_build_object(
          'error',
          case
            when v_faults[i.position] is not null then jsonb_build_object(
              'sqlstate', '22023',
              'message', 'the span is malformed: ' || v_faults[i.position]
            )
            else jsonb_build_object('sqlstate', 'P0002', 'message', 'record not found')
          end
        )
      )
      order by i.position
    ),
    '[]'
  )
  into v_result
  from generate_series(1, jsonb_array_length(p_spans)) as i (position)
  left join (
    select
      v_positions[r.span_position] as position,
      citeledger_private.cite_resolution(
        v_matter_number, v_spans[r.span_position], r.reason
      ) as resolution
    from citeledger_private.resolve_spans(v_firm_id, v_spans) as r
  ) as checked on checked.position = i.position;
  return v_result;
end
$$;

comment on function citeledger.cite_many(uuid, jsonb) is
  'cite for a list of spans of one matter, set-based: a JSON array of CiteResolutions in the order '
  'of p_spans. Permission and matter are checked once. A bad item becomes {"error": {"sqlstate", '
  '"message"}} in its place and spoils no other: 22023 for a malformed span, with the offending '
  'key in the message, P0002 for a document that the matter does not hold as a live, '
  'non-privileged record. For citeledger_reader. Errors: 42501 without matters:read; 22023 when '
  'p_spans is no array; P0002 when the matter is not visible.';

revoke all on function citeledger.cite_many(uuid, jsonb) from public;
grant execute on function citeledger.cite_many(uuid, jsonb) to citeledger_reader;
grant execute on function citeledger.cite_many(uuid, jsonb) to citeledger_app;
grant execute on function citeledger.cite_many(uuid, jsonb) to citeledger_admin;

reset role;

-- cite/cite_ledger_entry

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.cite_ledger_entry(
  p_entry_id uuid
)
returns jsonb
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_matter_id uuid;
  v_matter_number text;
  v_span citeledger_private.span;
  v_reason text;
begin
  perform citeledger.require_permission('matters:read');

  select
    e.project_id,
    k.source_document_id, k.source_page, k.source_block,
    k.source_offset_start, k.source_offset_end, k.source_text
  into
    v_matter_id,
    v_span.document_id, v_span.page_number, v_span.block_index,
    v_span.char_start, v_span.char_end, v_span.quote
  from citeledger.citation_ledger_entry as e
  join citeledger.message_citations as k
    on k.firm_id = v_firm_id and k.id = e.message_citation_id
  where e.firm_id = v_firm_id and e.id = p_entry_id;

  v_matter_number := citeledger_private.visible_matter_number(v_firm_id, v_matter_id);
  if v_matter_number is null
    or not citeledger_private.holds_record(v_firm_id, v_matter_id, v_span.document_id)
  then
    perform citeledger_private.refuse_as_not_found();
  end if;

  if v_span.page_number is null then
    v_reason := 'not_anchored';
  else
    select r.reason
    into strict v_reason
    from citeledger_private.resolve_spans(v_firm_id, array[v_span]) as r;
  end if;
  return citeledger_private.cite_resolution(v_matter_number, v_span, v_reason);
end
$$;

comment on function citeledger.cite_ledger_entry(uuid) is
  'The one click from a ledger entry of the kind kb_document to the live check of its citation, '
  'under the matter that the entry names: a CiteResolution as cite gives it. A citation without a '
  'page is verified = false with the reason not_anchored. For citeledger_reader. Errors: 42501 '
  'without matters:read; P0002, the same whatever is not there: the entry, its matter, its '
  'document as a live, non-privileged record of that matter, or an entry of another kind.';

revoke all on function citeledger.cite_ledger_entry(uuid) from public;
grant execute on function citeledger.cite_ledger_entry(uuid) to citeledger_reader;
grant execute on function citeledger.cite_ledger_entry(uuid) to citeledger_app;
grant execute on function citeledger.cite_ledger_entry(uuid) to citeledger_admin;

reset role;

-- cite/recheck_document

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.recheck_document(
  p_document_id uuid
)
returns table (
  message_citation_id uuid,
  message_id uuid,
  verified boolean,
  reason text
)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_citation_ids uuid[];
  v_spans citeledger_private.span[];
begin
  if not exists (
    select
    from citeledger.documents as d
    where d.firm_id = v_firm_id and d.id = p_document_id
  ) then
    raise exception using
      errcode = 'P0002',
      message = 'document not found',
      detail = 'No document of this id is in the firm of the context.',
      hint = 'Check the id and the firm of the context.';
  end if;

  select
    array_agg(k.id order by k.id),
    array_agg(
      row(
        k.source_document_id, k.source_page, k.source_block,
        k.source_offset_start, k.source_offset_end, k.source_text
      )::citeledger_private.span
      order by k.id
    )
  into v_citation_ids, v_spans
  from citeledger.message_citations as k
  where k.firm_id = v_firm_id
    and k.source_document_id = p_document_id
    and k.source_page is not null;

  return query
  with checked as materialized (
    select v_citation_ids[r.span_position] as citation_id, r.reason
    from citeledger_private.resolve_spans(v_firm_id, v_spans) as r
  )
  select
    k.id,
    k.message_id,
    c.citation_id is not null and c.reason is null,
    case when k.source_page is null then 'not_anchored' else c.reason end
  from citeledger.message_citations as k
  left join checked as c on c.citation_id = k.id
  where k.firm_id = v_firm_id and k.source_document_id = p_document_id
  order by k.created_at, k.id;
end
$$;

comment on function citeledger.recheck_document(uuid) is
  'What still holds of the citations of a document, after its pages were replaced: a row for each '
  'citation, in the order in which they were recorded, with the verdict of the live check and its '
  'reason as in resolve_span, or not_anchored for a citation without a page. It reports and '
  'changes nothing: setting verified is the application''s to do. For citeledger_app. Errors: '
  'P0002 when the document is not in the firm of the context.';

revoke all on function citeledger.recheck_document(uuid) from public;
grant execute on function citeledger.recheck_document(uuid) to citeledger_app;
grant execute on function citeledger.recheck_document(uuid) to citeledger_admin;

reset role;

-- cite/read_pages

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.read_pages(
  p_matter_id uuid,
  p_document_id uuid,
  p_page_number integer default null
)
returns table (
  page_number integer,
  block_index integer,
  content text
)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
begin
  perform citeledger.require_permission('matters:read');
  if citeledger_private.visible_matter_number(v_firm_id, p_matter_id) is null
    or not citeledger_private.holds_record(v_firm_id, p_matter_id, p_document_id)
  then
    perform citeledger_private.refuse_as_not_found();
  end if;

  return query
  select b.page_number, b.block_index, b.content
  from citeledger.document_page_blocks as b
  where b.firm_id = v_firm_id
    and b.document_id = p_document_id
    and (p_page_number is null or b.page_number = p_page_number)
  order by b.page_number, b.block_index;
end
$$;

comment on function citeledger.read_pages(uuid, uuid, integer) is
  'The live text of a record of the matter p_matter_id, a row for each block in reading order; of '
  'the page p_page_number alone where it is given, and no row where there is no such page. Under '
  'the very checks of cite. For citeledger_reader. Errors: 42501 without matters:read; P0002, the '
  'same whatever is not there.';

revoke all on function citeledger.read_pages(uuid, uuid, integer) from public;
grant execute on function citeledger.read_pages(uuid, uuid, integer) to citeledger_reader;
grant execute on function citeledger.read_pages(uuid, uuid, integer) to citeledger_app;
grant execute on function citeledger.read_pages(uuid, uuid, integer) to citeledger_admin;

reset role;

-- cite/suggest_spans

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.occurrences(
  p_text text,
  p_quote text
)
returns setof integer
language sql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
  -- Cutting the text at the quote leaves what lies between its occurrences: no pattern is involved.
  select (
    sum(char_length(piece.content)) over (order by piece.position)
      + (piece.position - 1) * char_length(p_quote)
  )::integer
  from string_to_table(p_text collate "C", p_quote collate "C")
    with ordinality as piece (content, position)
  order by piece.position
  limit (
    select count(*) - 1
    from string_to_table(p_text collate "C", p_quote collate "C") as piece
  )
$$;

create function citeledger.suggest_spans(
  p_matter_id uuid,
  p_span jsonb,
  p_limit integer default 5
)
returns table (
  page_number integer,
  block_index integer,
  char_start integer,
  char_end integer
)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_span citeledger_private.span;
begin
  perform citeledger.require_permission('matters:read');
  v_span := citeledger_private.read_span(p_span);
  if p_limit is null or p_limit < 1 then
    raise exception using
      errcode = '22023',
      message = 'p_limit is not a number of suggestions',
      detail = format('p_limit is %s.', coalesce(p_limit::text, 'null')),
      hint = 'Pass a number from 1 up, or leave it out for 5.';
  end if;
  if citeledger_private.visible_matter_number(v_firm_id, p_matter_id) is null
    or not citeledger_private.holds_record(v_firm_id, p_matter_id, v_span.document_id)
  then
    perform citeledger_private.refuse_as_not_found();
  end if;

  return query
  with place as (
    select b.page_number, b.block_index, o.char_start
    from citeledger.document_page_blocks as b
    cross join lateral citeledger_private.occurrences(b.content, v_span.quote) as o (char_start)
    where b.firm_id = v_firm_id
      and b.document_id = v_span.document_id
      and strpos(b.content collate "C", v_span.quote collate "C") > 0
    union all
    -- A quote that runs over the end of a block stands in the page alone.
    select p.page_number, null, o.char_start
    from (
      select
        b.page_number,
        string_agg(b.content, E'\n' order by b.block_index) as content,
        array_agg(char_length(b.content) order by b.block_index) as block_lengths
      from citeledger.document_page_blocks as b
      where b.firm_id = v_firm_id and b.document_id = v_span.document_id
      group by b.page_number
    ) as p
    cross join lateral citeledger_private.occurrences(p.content, v_span.quote) as o (char_start)
    where strpos(v_span.quote collate "C", E'\n') > 0
      and strpos(p.content collate "C", v_span.quote collate "C") > 0
      and not exists (
        select
        from (
          select
            sum(l.length + 1) over (order by l.position) - l.length - 1 as block_start,
            l.length
          from unnest(p.block_lengths) with ordinality as l (length, position)
        ) as b
        where o.char_start >= b.block_start
          and o.char_start + char_length(v_span.quote) <= b.block_start + b.length
      )
  )
  select f.page_number, f.block_index, f.char_start, f.char_start + char_length(v_span.quote)
  from place as f
  order by
    abs(f.page_number::bigint - v_span.page_number),
    abs(f.block_index::bigint - coalesce(v_span.block_index, f.block_index)),
    abs(f.char_start::bigint - coalesce(v_span.char_start, 0)),
    f.page_number, f.block_index, f.char_start
  limit p_limit;
end
$$;

comment on function citeledger_private.occurrences(text, text) is
  'Where p_quote stands in p_text, byte for byte and without overlap: the offset of each '
  'occurrence in Unicode code points from 0.';
comment on function citeledger.suggest_spans(uuid, jsonb, integer) is
  'Where the quote of a span stands in the live document now, at most p_limit places, nearest '
  'first: by page, then block, then offset. block_index null means that the offsets count in the '
  'page, for a quote that runs over the end of a block. It offers places for a person to look at; '
  'it verifies nothing, and nothing in cite uses it. Under the very checks of cite. For '
  'citeledger_reader. Errors: 42501 without matters:read; 22023 for a malformed span or limit; '
  'P0002, the same whatever is not there.';

revoke all on function citeledger_private.occurrences(text, text) from public;
revoke all on function citeledger.suggest_spans(uuid, jsonb, integer) from public;
grant execute on function citeledger.suggest_spans(uuid, jsonb, integer) to citeledger_reader;
grant execute on function citeledger.suggest_spans(uuid, jsonb, integer) to citeledger_app;
grant execute on function citeledger.suggest_spans(uuid, jsonb, integer) to citeledger_admin;

reset role;

-- graph/document_references

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.document_references (
  firm_id uuid not null default citeledger.current_firm_id(),
  id uuid not null default gen_random_uuid(),
  document_id uuid not null,
  position integer not null,
  cited_doi text not null,
  source text not null,
  doi_key text not null generated always as (citeledger.normalize_doi(cited_doi)) stored,
  created_at timestamptz not null default now(),
  constraint document_references_pkey primary key (firm_id, id),
  constraint document_references_list_key unique (firm_id, document_id, source, doi_key),
  constraint document_references_document_fkey foreign key (firm_id, document_id)
    references citeledger.documents (firm_id, id) on delete cascade,
  constraint document_references_position_from_one check (position >= 1),
  constraint document_references_source_is_label check (source ~ '^[a-z][a-z0-9_]{0,31}$')
);

create index document_references_doi_key_idx
  on citeledger.document_references (firm_id, doi_key);

alter table citeledger.document_references enable row level security;
alter table citeledger.document_references force row level security;

create policy document_references_of_the_firm on citeledger.document_references
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

-- No statistics of content: an estimate would tell one firm about the texts of another.
alter table citeledger.document_references alter column cited_doi set statistics 0;
alter table citeledger.document_references alter column doi_key set statistics 0;

comment on table citeledger.document_references is
  'The reference lists of documents as printed, resolved or not: what is cited need not be here. '
  'Written by record_references; by no role.';
comment on column citeledger.document_references.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.document_references.id is 'The reference.';
comment on column citeledger.document_references.document_id is 'The citing document.';
comment on column citeledger.document_references.position is
  'Its place in the list as it was given, from 1; places without a usable DOI leave gaps.';
comment on column citeledger.document_references.cited_doi is 'The DOI as printed.';
comment on column citeledger.document_references.source is
  'Who says so: a label such as crossref. A document has one list for each source.';
comment on column citeledger.document_references.doi_key is
  'The DOI''s key by normalize_doi: what it is resolved by.';
comment on column citeledger.document_references.created_at is 'When the list was recorded.';
comment on constraint document_references_pkey on citeledger.document_references is
  'A reference is known within its firm.';
comment on constraint document_references_list_key on citeledger.document_references is
  'A list names a DOI once. Referencing side of document_references_document_fkey.';
comment on constraint document_references_document_fkey on citeledger.document_references is
  'A list goes with its document.';
comment on constraint document_references_position_from_one on citeledger.document_references is
  'Places are counted from 1.';
comment on constraint document_references_source_is_label on citeledger.document_references is
  'A label: a lower-case letter, then at most 31 lower-case letters, digits or underscores.';
comment on index citeledger.document_references_doi_key_idx is
  'Who cites a DOI: asked when a document with it arrives or leaves.';
comment on policy document_references_of_the_firm on citeledger.document_references is
  'Only rows of the firm of the context, to read and to write.';

revoke all on table citeledger.document_references from public;
grant select on table citeledger.document_references to citeledger_app;

reset role;

-- graph/document_citations

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.document_citations (
  firm_id uuid not null default citeledger.current_firm_id(),
  citing_document_id uuid not null,
  cited_document_id uuid not null,
  cited_doi text not null,
  source text not null,
  created_at timestamptz not null default now(),
  constraint document_citations_pkey
    primary key (firm_id, citing_document_id, cited_document_id),
  constraint document_citations_citing_fkey foreign key (firm_id, citing_document_id)
    references citeledger.documents (firm_id, id) on delete cascade,
  constraint document_citations_cited_fkey foreign key (firm_id, cited_document_id)
    references citeledger.documents (firm_id, id) on delete cascade,
  constraint document_citations_no_self_citation check (citing_document_id <> cited_document_id),
  constraint document_citations_cited_doi_is_doi check (
    citeledger.normalize_doi(cited_doi) is not null
  ),
  constraint document_citations_source_is_label check (source ~ '^[a-z][a-z0-9_]{0,31}$')
);

create index document_citations_cited_idx
  on citeledger.document_citations (firm_id, cited_document_id, citing_document_id);

alter table citeledger.document_citations enable row level security;
alter table citeledger.document_citations force row level security;

create policy document_citations_of_the_firm on citeledger.document_citations
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

-- No statistics of content: an estimate would tell one firm about the texts of another.
alter table citeledger.document_citations alter column cited_doi set statistics 0;

comment on table citeledger.document_citations is
  'The citation graph: an edge where a live document''s list names the DOI of exactly one other '
  'live document of the firm. Kept by record_references, resolve_references and the triggers of '
  'documents; by no role.';
comment on column citeledger.document_citations.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.document_citations.citing_document_id is 'Who cites.';
comment on column citeledger.document_citations.cited_document_id is 'Who is cited.';
comment on column citeledger.document_citations.cited_doi is
  'The DOI as printed in the first list, by source and place, that gives the edge.';
comment on column citeledger.document_citations.source is 'The source of that list.';
comment on column citeledger.document_citations.created_at is 'When the edge was resolved.';
comment on constraint document_citations_pkey on citeledger.document_citations is
  'A document cites another once. Serves the walk from the citing side and the referencing side of '
  'document_citations_citing_fkey.';
comment on constraint document_citations_citing_fkey on citeledger.document_citations is
  'An edge goes with the document that cites.';
comment on constraint document_citations_cited_fkey on citeledger.document_citations is
  'An edge goes with the document that is cited; the reference stays and is unresolved again.';
comment on constraint document_citations_no_self_citation on citeledger.document_citations is
  'No document cites itself.';
comment on constraint document_citations_cited_doi_is_doi on citeledger.document_citations is
  'A DOI: it cannot hold content.';
comment on constraint document_citations_source_is_label on citeledger.document_citations is
  'A label: it cannot hold content.';
comment on index citeledger.document_citations_cited_idx is
  'The walk from the cited side. Referencing side of document_citations_cited_fkey.';
comment on policy document_citations_of_the_firm on citeledger.document_citations is
  'Only rows of the firm of the context, to read and to write.';

revoke all on table citeledger.document_citations from public;
grant select on table citeledger.document_citations to citeledger_app;

reset role;

-- graph/reconcile_edges@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create type citeledger_private.reference_fate as enum (
  'matched', 'unmatched', 'ambiguous', 'self_citation'
);

create function citeledger_private.judged_references(
  p_firm_id uuid,
  p_document_ids uuid[],
  p_keys text[]
)
returns table (
  citing_document_id uuid,
  cited_document_id uuid,
  cited_doi text,
  source text,
  list_position integer,
  fate citeledger_private.reference_fate
)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
begin
  if p_document_ids is null and p_keys is null then
    -- The whole firm: every key is looked up in one pass over its live holders. A full join, for
    -- without statistics the planner would take a left one for a loop in a loop.
    return query
    with holder as materialized (
      select d.doi_key, count(*) as holders, (array_agg(d.id))[1] as document_id
      from citeledger.documents as d
      where d.firm_id = p_firm_id and d.doi_key is not null and d.deleted_at is null
      group by d.doi_key
    ),
    reference as materialized (
      select r.id, r.document_id, r.doi_key, r.cited_doi, r.source, r.position
      from citeledger.document_references as r
      where r.firm_id = p_firm_id
        and r.document_id in (
          select a.id from citeledger.documents as a
          where a.firm_id = p_firm_id and a.deleted_at is null
        )
    ),
    looked_up as materialized (
      select
        r.id, r.document_id, r.cited_doi, r.source, r.position,
        h.holders, h.document_id as holder_id
      from reference as r
      full join holder as h on h.doi_key = r.doi_key
    )
    select
      l.document_id, l.holder_id, l.cited_doi, l.source, l.position,
      case
        when l.holders is null then 'unmatched'
        when l.holders > 1 then 'ambiguous'
        when l.holder_id = l.document_id then 'self_citation'
        else 'matched'
      end::citeledger_private.reference_fate
    from looked_up as l
    where l.id is not null;
    return;
  end if;
  return query
  with reference as materialized (
    select r.id, r.document_id, r.doi_key, r.cited_doi, r.source, r.position
    from citeledger.document_references as r
    where r.firm_id = p_firm_id and r.document_id = any(p_document_ids)
    union all
    select r.id, r.document_id, r.doi_key, r.cited_doi, r.source, r.position
    from citeledger.document_references as r
    where r.firm_id = p_firm_id
      and r.doi_key = any(p_keys)
      and r.document_id <> all(p_document_ids)
  )
  -- Laterally, an index look-up for each: no plan without statistics makes it a loop in a loop.
  select
    r.document_id, h.document_id, r.cited_doi, r.source, r.position,
    case
      when h.holders = 0 then 'unmatched'
      when h.holders > 1 then 'ambiguous'
      when h.document_id = r.document_id then 'self_citation'
      else 'matched'
    end::citeledger_private.reference_fate
  from reference as r
  cross join lateral (
    select a.deleted_at
    from citeledger.documents as a
    where a.firm_id = p_firm_id and a.id = r.document_id
    offset 0
  ) as a
  cross join lateral (
    select count(*) as holders, (array_agg(d.id))[1] as document_id
    from citeledger.documents as d
    where d.firm_id = p_firm_id and d.doi_key = r.doi_key and d.deleted_at is null
  ) as h
  where a.deleted_at is null;
end
$$;

create function citeledger_private.reconcile_edges(
  p_firm_id uuid,
  p_document_ids uuid[],
  p_keys text[],
  p_source text default null,
  p_dry_run boolean default false
)
returns jsonb
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_all boolean := p_document_ids is null and p_keys is null;
  v_holders uuid[];
  v_report jsonb;
begin
  -- Whose incoming edges are in question: whoever holds one of the keys, and the documents that may
  -- have held it until now. A list alone changes no incoming edge.
  v_holders := case
    when cardinality(p_keys) > 0 then
      p_document_ids || array(
        select d.id
        from citeledger.documents as d
        where d.firm_id = p_firm_id and d.doi_key = any(p_keys)
      )
  end;

  -- Materialized all along: right after a load there are no statistics to plan a join by.
  with judged as materialized (
    select * from citeledger_private.judged_references(p_firm_id, p_document_ids, p_keys)
  ),
  wanted as materialized (
    select distinct on (j.citing_document_id, j.cited_document_id)
      j.citing_document_id, j.cited_document_id, j.cited_doi, j.source
    from judged as j
    where j.fate = 'matched'
    order by j.citing_document_id, j.cited_document_id, j.source collate "C", j.list_position
  ),
  -- The edges in question: all, or those of the documents and those to whoever holds a key.
  present as materialized (
    select e.citing_document_id, e.cited_document_id, e.cited_doi, e.source
    from citeledger.document_citations as e
    where e.firm_id = p_firm_id and v_all
    union
    select e.citing_document_id, e.cited_document_id, e.cited_doi, e.source
    from citeledger.document_citations as e
    where e.firm_id = p_firm_id and e.citing_document_id = any(p_document_ids)
    union
    select e.citing_document_id, e.cited_document_id, e.cited_doi, e.source
    from citeledger.document_citations as e
    where e.firm_id = p_firm_id and e.cited_document_id = any(v_holders)
  ),
  -- Compared by a full join, which is never a loop in a loop, whatever the planner expects.
  compared as materialized (
    select
      w.citing_document_id, w.cited_document_id, w.cited_doi, w.source,
      p.citing_document_id as present_citing_id, p.cited_document_id as present_cited_id,
      p.cited_doi as present_doi, p.source as present_source
    from wanted as w
    full join present as p
      on p.citing_document_id = w.citing_document_id
      and p.cited_document_id = w.cited_document_id
  ),
  surplus as materialized (
    select c.present_citing_id as citing_document_id, c.present_cited_id as cited_document_id
    from compared as c
    where c.citing_document_id is null
  ),
  due as materialized (
    select c.citing_document_id, c.cited_document_id, c.cited_doi, c.source
    from compared as c
    where c.citing_document_id is not null
      and (c.cited_doi, c.source) is distinct from (c.present_doi, c.present_source)
  ),
  removed as (
    delete from citeledger.document_citations as e
    using surplus as s
    where not p_dry_run
      and e.firm_id = p_firm_id
      and e.citing_document_id = s.citing_document_id
      and e.cited_document_id = s.cited_document_id
    returning e.cited_document_id
  ),
  written as (
    insert into citeledger.document_citations (
      firm_id, citing_document_id, cited_document_id, cited_doi, source
    )
    select p_firm_id, d.citing_document_id, d.cited_document_id, d.cited_doi, d.source
    from due as d
    where not p_dry_run
    order by d.citing_document_id, d.cited_document_id
    on conflict (firm_id, citing_document_id, cited_document_id) do update
    set cited_doi = excluded.cited_doi, source = excluded.source
    returning cited_document_id
  )
  select jsonb_build_object(
    'documents_scanned', count(distinct j.citing_document_id),
    'references_found', count(*),
    'matched', count(*) filter (where j.fate = 'matched'),
    'unmatched', count(*) filter (where j.fate = 'unmatched'),
    'ambiguous', count(*) filter (where j.fate = 'ambiguous'),
    'self_citations_skipped', count(*) filter (where j.fate = 'self_citation'),
    -- In a dry run what would be written and removed.
    'rows_written', (select count(*) from due),
    'rows_removed', (select count(*) from surplus),
    'dry_run', p_dry_run
  )
  into v_report
  from judged as j
  where p_source is null or j.source = p_source;
  return v_report;
end
$$;

comment on type citeledger_private.reference_fate is
  'What becomes of a reference: matched (exactly one other live document has its DOI), unmatched '
  '(none has), ambiguous (several have) or self_citation (the citing document alone has).';
comment on function citeledger_private.judged_references(uuid, uuid[], text[]) is
  'What becomes of the references of live documents: those of the documents p_document_ids and '
  'those with the keys p_keys, or, when both are null, all of the firm.';
comment on function citeledger_private.reconcile_edges(uuid, uuid[], text[], text, boolean) is
  'Makes the edges of the documents p_document_ids, and those to whoever holds one of p_keys, '
  'agree with the lists; of the whole firm when both are null. Returns the report of '
  'resolve_references, its counts limited to the lists of p_source where that is given. The caller '
  'holds the lock of the graph.';

revoke all on type citeledger_private.reference_fate from public;
revoke all on function citeledger_private.judged_references(uuid, uuid[], text[]) from public;
revoke all on function citeledger_private.reconcile_edges(uuid, uuid[], text[], text, boolean)
  from public;

reset role;

-- graph/resolve_references

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.resolve_references(
  p_dry_run boolean default true
)
returns jsonb
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
begin
  perform citeledger_private.lock_graph(v_firm_id);
  return citeledger_private.reconcile_edges(
    v_firm_id, null, null, p_dry_run => coalesce(p_dry_run, true)
  );
end
$$;

comment on function citeledger.resolve_references(boolean) is
  'Makes every edge of the context''s firm agree with every reference list, set-based; what '
  'record_references and the triggers of documents keep, this repairs. Returns '
  '{"documents_scanned" (live documents with a list), "references_found", "matched", "unmatched", '
  '"ambiguous", "self_citations_skipped", "rows_written", "rows_removed", "dry_run"}; the four '
  'fates add up to references_found, and several references may give one edge. A dry run, the '
  'default and what null means, writes nothing and counts what it would. Locks the firm''s graph '
  'until the transaction ends. For citeledger_admin. Errors: 25000 above read committed.';

revoke all on function citeledger.resolve_references(boolean) from public;
grant execute on function citeledger.resolve_references(boolean) to citeledger_admin;

reset role;

-- graph/record_references@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.record_references(
  p_document_id uuid,
  p_dois text[],
  p_source text default 'crossref'
)
returns jsonb
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_usable bigint;
begin
  if p_dois is null then
    raise exception using
      errcode = '22023',
      message = 'p_dois is not a list of DOIs',
      detail = 'p_dois is null.',
      hint = 'Pass an empty list to say that the document cites nothing.';
  end if;
  if p_source is null or p_source collate "C" !~ '^[a-z][a-z0-9_]{0,31}$' then
    raise exception using
      errcode = '22023',
      message = 'p_source is not a label',
      detail = 'A label is a lower-case letter, then at most 31 lower-case letters, digits or _.',
      hint = 'Pass for example crossref.';
  end if;

  perform citeledger_private.lock_graph(v_firm_id);
  perform
  from citeledger.documents as d
  where d.firm_id = v_firm_id and d.id = p_document_id
  for key share;
  if not found then
    raise exception using
      errcode = 'P0002',
      message = 'document not found',
      detail = 'No document of this id is in the firm of the context.',
      hint = 'Check the id and the firm of the context.';
  end if;

  delete from citeledger.document_references as r
  where r.firm_id = v_firm_id and r.document_id = p_document_id and r.source = p_source;

  with printed as materialized (
    select n.doi, n.position, citeledger.normalize_doi(n.doi) as doi_key
    from unnest(p_dois) with ordinality as n (doi, position)
  ),
  written as (
    insert into citeledger.document_references (
      firm_id, document_id, position, cited_doi, source
    )
    select distinct on (p.doi_key) v_firm_id, p_document_id, p.position, p.doi, p_source
    from printed as p
    where p.doi_key is not null
    order by p.doi_key, p.position
    on conflict do nothing
    returning id
  )
  select count(p.doi_key) into v_usable from printed as p;

  return citeledger_private.reconcile_edges(
      v_firm_id, array[p_document_id], '{}', p_source => p_source
    )
    || jsonb_build_object('unusable', cardinality(p_dois) - v_usable);
end
$$;

comment on function citeledger.record_references(uuid, text[], text) is
  'Replaces the reference list of the document p_document_id for the source p_source, and resolves '
  'it. p_dois: the DOIs as printed, in their order; repeats of one DOI are one reference, at its '
  'first place. Strings without a DOI and nulls are counted as unusable and not stored. Returns '
  'the keys of resolve_references, for this list, and "unusable". Locks the firm''s graph until '
  'the transaction ends. For citeledger_app. Errors: 22023 for a null list or a source that is no '
  'label; P0002 when the document is not in the firm; 25000 above read committed.';

revoke all on function citeledger.record_references(uuid, text[], text) from public;
grant execute on function citeledger.record_references(uuid, text[], text) to citeledger_app;
grant execute on function citeledger.record_references(uuid, text[], text) to citeledger_admin;

reset role;

-- graph/record_crossref_work

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.record_crossref_work(
  p_document_id uuid,
  p_work jsonb
)
returns jsonb
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_work jsonb := p_work;
  v_references jsonb;
begin
  -- Crossref's answer has the work in its message; an answer of an error or of a list has none.
  if v_work ? 'message' then
    v_work := v_work -> 'message';
    if v_work ? 'items' and not v_work ? 'reference' then
      v_work := null;
    end if;
  end if;
  v_references := coalesce(nullif(v_work -> 'reference', 'null'), '[]');
  if jsonb_typeof(v_work) is distinct from 'object' or jsonb_typeof(v_references) <> 'array' then
    raise exception using
      errcode = '22023',
      message = 'p_work is not a Crossref work',
      detail = case
        when jsonb_typeof(v_work) is distinct from 'object' then
          'Neither p_work nor its message is an object that describes one work.'
        else format('reference is %s, not a list.', jsonb_typeof(v_references))
      end,
      hint = 'Pass the work, or the answer that holds it as its message.';
  end if;

  return citeledger.record_references(
    p_document_id,
    array(
      select case
        when jsonb_typeof(r.entry) = 'object' and jsonb_typeof(r.entry -> 'DOI') = 'string'
          then r.entry ->> 'DOI'
      end
      from jsonb_array_elements(v_references) with ordinality as r (entry, position)
      order by r.position
    ),
    'crossref'
  );
end
$$;

comment on function citeledger.record_crossref_work(uuid, jsonb) is
  'record_references for a work as Crossref describes it, or for Crossref''s answer that holds it '
  'as its message: its reference[].DOI, under the source crossref. A work without references has '
  'an empty list; an entry without a usable DOI is counted as unusable. Returns what '
  'record_references returns. For citeledger_app. Errors: 22023 when the work is no object or '
  'reference is no list; those of record_references.';

revoke all on function citeledger.record_crossref_work(uuid, jsonb) from public;
grant execute on function citeledger.record_crossref_work(uuid, jsonb) to citeledger_app;
grant execute on function citeledger.record_crossref_work(uuid, jsonb) to citeledger_admin;

reset role;

-- graph/document_triggers@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.documents_arrived()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm record;
  v_outer text;
begin
  for v_firm in
    select n.firm_id, array_agg(distinct n.doi_key) as keys
    from new_rows as n
    where n.doi_key is not null
    group by n.firm_id
    order by n.firm_id
  loop
    v_outer := citeledger_private.enter_firm(v_firm.firm_id);
    perform citeledger_private.lock_graph(v_firm.firm_id);
    -- What just arrived has no list yet.
    perform citeledger_private.reconcile_edges(v_firm.firm_id, '{}', v_firm.keys);
    perform citeledger_private.leave_firm(v_outer);
  end loop;
  return null;
end
$$;

create function citeledger_private.documents_changed()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm record;
  v_outer text;
begin
  for v_firm in
    select
      n.firm_id,
      array_agg(distinct n.id) as document_ids,
      array_remove(array_agg(distinct n.doi_key) || array_agg(distinct o.doi_key), null) as keys,
      bool_or(
        n.doi_key is distinct from o.doi_key
        or (n.doi_key is not null and n.deleted_at is null and o.deleted_at is not null)
      ) as doi_arrived
    from new_rows as n
    join old_rows as o on o.firm_id = n.firm_id and o.id = n.id
    where n.doi_key is distinct from o.doi_key
      or (n.deleted_at is null) <> (o.deleted_at is null)
    group by n.firm_id
    order by n.firm_id
  loop
    v_outer := citeledger_private.enter_firm(v_firm.firm_id);
    if v_firm.doi_arrived
      or current_setting('transaction_isolation') in ('read committed', 'read uncommitted')
    then
      perform citeledger_private.lock_graph(v_firm.firm_id);
    end if;
    perform citeledger_private.reconcile_edges(
      v_firm.firm_id, v_firm.document_ids, v_firm.keys
    );
    perform citeledger_private.leave_firm(v_outer);
  end loop;
  return null;
end
$$;

create function citeledger_private.documents_left()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm record;
  v_outer text;
begin
  for v_firm in
    select o.firm_id, array_agg(distinct o.doi_key) as keys
    from old_rows as o
    where o.doi_key is not null
    group by o.firm_id
    order by o.firm_id
  loop
    v_outer := citeledger_private.enter_firm(v_firm.firm_id);
    if current_setting('transaction_isolation') in ('read committed', 'read uncommitted') then
      perform citeledger_private.lock_graph(v_firm.firm_id);
    end if;
    -- Its own edges went with it; a DOI that two documents held may have one holder now.
    perform citeledger_private.reconcile_edges(v_firm.firm_id, '{}', v_firm.keys);
    perform citeledger_private.leave_firm(v_outer);
  end loop;
  return null;
end
$$;

comment on function citeledger_private.documents_arrived() is
  'Trigger function: resolves the references that name the DOIs of inserted documents. Errors: '
  '25000 above read committed.';
comment on function citeledger_private.documents_changed() is
  'Trigger function: resolves again where documents changed their DOI, were withdrawn or restored. '
  'Errors: 25000 above read committed, when a DOI changed or came back.';
comment on function citeledger_private.documents_left() is
  'Trigger function: resolves again the references that name the DOIs of deleted documents.';

revoke all on function citeledger_private.documents_arrived() from public;
revoke all on function citeledger_private.documents_changed() from public;
revoke all on function citeledger_private.documents_left() from public;

create trigger documents_before_insert
  before insert on citeledger.documents
  for each statement
  execute function citeledger_private.before_ingest();
create trigger documents_before_update
  before update on citeledger.documents
  for each statement
  execute function citeledger_private.before_ingest();
create trigger documents_before_delete
  before delete on citeledger.documents
  for each statement
  execute function citeledger_private.before_ingest();
-- A matter that goes takes itself out of its documents, which queue only then.
create trigger projects_before_delete
  before delete on citeledger.projects
  for each statement
  execute function citeledger_private.before_ingest();
create trigger documents_arrived
  after insert on citeledger.documents
  referencing new table as new_rows
  for each statement
  execute function citeledger_private.documents_arrived();
create trigger documents_changed
  after update on citeledger.documents
  referencing old table as old_rows new table as new_rows
  for each statement
  execute function citeledger_private.documents_changed();
create trigger documents_left
  after delete on citeledger.documents
  referencing old table as old_rows
  for each statement
  execute function citeledger_private.documents_left();

comment on trigger documents_before_insert on citeledger.documents is
  'The graph''s lock comes before the locks of rows.';
comment on trigger documents_before_update on citeledger.documents is
  'The graph''s lock comes before the locks of rows.';
comment on trigger documents_before_delete on citeledger.documents is
  'The graph''s lock comes before the locks of rows.';
comment on trigger projects_before_delete on citeledger.projects is
  'The graph''s lock comes before the locks of rows.';
comment on trigger documents_arrived on citeledger.documents is
  'A reference resolves when what it names arrives.';
comment on trigger documents_changed on citeledger.documents is
  'A reference resolves again when what it names changes.';
comment on trigger documents_left on citeledger.documents is
  'A reference is unresolved again when what it named leaves.';

reset role;

-- graph/get_citations@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.visible_documents(
  p_firm_id uuid,
  p_document_ids uuid[]
)
returns setof uuid
language plpgsql
stable
parallel safe
security invoker
rows 10
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  select d.id
  from citeledger.documents as d
  where d.firm_id = p_firm_id
    and d.id = any(p_document_ids)
    and d.deleted_at is null
    and (
      d.project_id is null
      or exists (
        select
        -- The wall by name besides: a foreign key's cascade passes row security.
        from citeledger.projects as p
        where p.firm_id = p_firm_id
          and p.id = d.project_id
          and not citeledger_private.is_behind_wall(p_firm_id, p.id)
      )
    );
end
$$;

create function citeledger.get_citations(
  p_document_id uuid
)
returns jsonb
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_neighbour_ids uuid[];
  v_references jsonb;
  v_cited_by jsonb;
begin
  perform citeledger.require_permission('matters:read');
  if not exists (
    select from citeledger_private.visible_documents(v_firm_id, array[p_document_id])
  ) then
    raise exception using
      errcode = 'P0002',
      message = 'document not found',
      detail = 'No live document of this id is visible in the context.',
      hint = 'Check the id, the firm of the context, and who may see the matter.';
  end if;

  -- A document in a matter that is hidden from the caller is not named.
  v_neighbour_ids := array(
    select v.id
    from citeledger_private.visible_documents(
      v_firm_id,
      array(
        select e.cited_document_id
        from citeledger.document_citations as e
        where e.firm_id = v_firm_id and e.citing_document_id = p_document_id
        union
        select e.citing_document_id
        from citeledger.document_citations as e
        where e.firm_id = v_firm_id and e.cited_document_id = p_document_id
      )
    ) as v (id)
  );

  select coalesce(
    jsonb_agg(
      jsonb_build_object(
        'document_id', d.id,
        'title', d.title,
        'doi', r.cited_doi,
        'source', r.source,
        'resolved', d.id is not null
      )
      order by r.source collate "C", r.position
    ),
    '[]'
  )
  into v_references
  from citeledger.document_references as r
  left join (
    citeledger.document_citations as e
    join citeledger.documents as d
      on d.firm_id = v_firm_id and d.id = e.cited_document_id and d.id = any(v_neighbour_ids)
  )
    on e.firm_id = v_firm_id
    and e.citing_document_id = p_document_id
    and d.doi_key = r.doi_key
  where r.firm_id = v_firm_id and r.document_id = p_document_id;

  select coalesce(
    jsonb_agg(
      jsonb_build_object(
        'document_id', d.id,
        'title', d.title,
        'doi', d.doi,
        'source', e.source
      )
      order by d.title, d.id
    ),
    '[]'
  )
  into v_cited_by
  from citeledger.document_citations as e
  join citeledger.documents as d on d.firm_id = v_firm_id and d.id = e.citing_document_id
  where e.firm_id = v_firm_id
    and e.cited_document_id = p_document_id
    and d.id = any(v_neighbour_ids);

  return (
    select jsonb_build_object(
      'document_id', d.id,
      'title', d.title,
      'doi', d.doi,
      'references', v_references,
      'cited_by', v_cited_by
    )
    from citeledger.documents as d
    where d.firm_id = v_firm_id and d.id = p_document_id
  );
end
$$;

comment on function citeledger_private.visible_documents(uuid, uuid[]) is
  'Those of the documents that are live and in no matter that is hidden from the caller.';
comment on function citeledger.get_citations(uuid) is
  'What the document p_document_id cites and who cites it: {"document_id", "title", "doi", '
  '"references": [{"document_id", "title", "doi", "source", "resolved"}], "cited_by": '
  '[{"document_id", "title", "doi", "source"}]}. References in printed order, by source and place, '
  'with the DOI as printed; document_id and title are null where resolved is false. cited_by by '
  'title, each with its own DOI. A document in a matter that is hidden from the caller is not '
  'named. Needs matters:read. For citeledger_reader. Errors: 42501 without the permission; P0002 '
  'when the document is not there for the caller, or not live.';

revoke all on function citeledger_private.visible_documents(uuid, uuid[]) from public;
revoke all on function citeledger.get_citations(uuid) from public;
grant execute on function citeledger.get_citations(uuid) to citeledger_reader;
grant execute on function citeledger.get_citations(uuid) to citeledger_app;
grant execute on function citeledger.get_citations(uuid) to citeledger_admin;

reset role;

-- graph/walk_citations@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.walk_citations(
  p_document_ids uuid[],
  p_max_hops integer default 2,
  p_direction text default 'both'
)
returns table (
  document_id uuid,
  hop integer
)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_frontier uuid[];
  v_visited uuid[];
  v_hop integer := 0;
begin
  perform citeledger.require_permission('matters:read');
  if p_max_hops is null or p_max_hops < 0 then
    raise exception using
      errcode = '22023',
      message = 'p_max_hops is not a number of hops',
      detail = format('p_max_hops is %s.', coalesce(p_max_hops::text, 'null')),
      hint = 'Pass a number from 0 up; beyond the depth of the graph it does no harm.';
  end if;
  if p_direction is null or p_direction not in ('cites', 'cited_by', 'both') then
    raise exception using
      errcode = '22023',
      message = 'p_direction is not a direction',
      detail = 'It is none of cites, cited_by and both.',
      hint = 'Pass cites, cited_by or both.';
  end if;

  v_frontier := array(
    select v.id from citeledger_private.visible_documents(v_firm_id, p_document_ids) as v (id)
  );
  v_visited := v_frontier;

  -- Breadth first over an array: each document once, at its least hop, to the graph's own depth.
  loop
    return query select f.id, v_hop from unnest(v_frontier) as f (id) order by f.id;
    exit when v_hop >= p_max_hops or cardinality(v_frontier) = 0;
    v_hop := v_hop + 1;
    v_frontier := array(
      select v.id
      from citeledger_private.visible_documents(
        v_firm_id,
        array(
          (
            select e.cited_document_id
            from unnest(v_frontier) as f (id)
            cross join lateral (
              select c.cited_document_id
              from citeledger.document_citations as c
              where c.firm_id = v_firm_id and c.citing_document_id = f.id
            ) as e
            where p_direction in ('cites', 'both')
            union
            select e.citing_document_id
            from unnest(v_frontier) as f (id)
            cross join lateral (
              select c.citing_document_id
              from citeledger.document_citations as c
              where c.firm_id = v_firm_id and c.cited_document_id = f.id
            ) as e
            where p_direction in ('cited_by', 'both')
          )
          except
          select s.id from unnest(v_visited) as s (id)
        )
      ) as v (id)
    );
    v_visited := v_visited || v_frontier;
  end loop;
end
$$;

comment on function citeledger.walk_citations(uuid[], integer, text) is
  'The documents within p_max_hops citations of p_document_ids, each once, at its least hop; the '
  'given ones that are there at hop 0. p_direction: cites, cited_by or both. Rows by hop, then by '
  'id. A document that is not live, or in a matter that is hidden from the caller, is neither '
  'returned nor walked through. Needs matters:read. For citeledger_reader. Errors: 42501 without '
  'the permission; 22023 for hops that are null or negative, or another direction.';

revoke all on function citeledger.walk_citations(uuid[], integer, text) from public;
grant execute on function citeledger.walk_citations(uuid[], integer, text) to citeledger_reader;
grant execute on function citeledger.walk_citations(uuid[], integer, text) to citeledger_app;
grant execute on function citeledger.walk_citations(uuid[], integer, text) to citeledger_admin;

reset role;

-- graph/chunks

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.chunks (
  firm_id uuid not null default citeledger.current_firm_id(),
  id uuid not null default gen_random_uuid(),
  document_id uuid not null,
  chunk_index integer not null,
  content text not null,
  created_at timestamptz not null default now(),
  constraint chunks_pkey primary key (firm_id, id),
  constraint chunks_document_place_key unique (firm_id, document_id, chunk_index),
  constraint chunks_document_fkey foreign key (firm_id, document_id)
    references citeledger.documents (firm_id, id) on delete cascade,
  constraint chunks_chunk_index_from_zero check (chunk_index >= 0)
);

alter table citeledger.chunks enable row level security;
alter table citeledger.chunks force row level security;

create policy chunks_of_the_firm on citeledger.chunks
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

create trigger chunks_before_insert
  before insert on citeledger.chunks
  for each statement
  execute function citeledger_private.before_ingest();

-- No statistics of content: an estimate would tell one firm about the texts of another.
alter table citeledger.chunks alter column content set statistics 0;

comment on table citeledger.chunks is
  'Pieces of a document''s text, as they were indexed: what the concept graph has its evidence in.';
comment on column citeledger.chunks.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.chunks.id is
  'The chunk.';
comment on column citeledger.chunks.document_id is
  'The document that it is a piece of.';
comment on column citeledger.chunks.chunk_index is
  'Its place in the document, from 0.';
comment on column citeledger.chunks.content is
  'Its text.';
comment on column citeledger.chunks.created_at is
  'When the row was recorded.';
comment on constraint chunks_pkey on citeledger.chunks is
  'A chunk is known within its firm.';
comment on constraint chunks_document_place_key on citeledger.chunks is
  'A document has a piece at a place once. Referencing side of chunks_document_fkey.';
comment on constraint chunks_document_fkey on citeledger.chunks is
  'A chunk goes with its document.';
comment on constraint chunks_chunk_index_from_zero on citeledger.chunks is
  'Places are counted from 0.';
comment on policy chunks_of_the_firm on citeledger.chunks is
  'Only rows of the firm of the context, to read and to write.';
comment on trigger chunks_before_insert on citeledger.chunks is
  'The graph''s lock comes before the locks of rows.';

revoke all on table citeledger.chunks from public;
grant select, insert on table citeledger.chunks to citeledger_app;

reset role;

-- graph/kg_relation_types

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.kg_relation_types (
  firm_id uuid not null default citeledger.current_firm_id(),
  relation_type text not null,
  created_at timestamptz not null default now(),
  constraint kg_relation_types_pkey primary key (firm_id, relation_type),
  constraint kg_relation_types_firm_fkey foreign key (firm_id)
    references citeledger.firms (id) on delete cascade,
  constraint kg_relation_types_relation_type_is_label check (
    relation_type ~ '^[a-z][a-z0-9_]{0,31}$'
  )
);

alter table citeledger.kg_relation_types enable row level security;
alter table citeledger.kg_relation_types force row level security;

create policy kg_relation_types_of_the_firm on citeledger.kg_relation_types
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

create trigger kg_relation_types_before_insert
  before insert on citeledger.kg_relation_types
  for each statement
  execute function citeledger_private.before_ingest();

comment on table citeledger.kg_relation_types is
  'The firm''s ontology: the types of relationship that it has declared.';
comment on column citeledger.kg_relation_types.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.kg_relation_types.relation_type is
  'The type: a label such as governs.';
comment on column citeledger.kg_relation_types.created_at is
  'When the row was recorded.';
comment on constraint kg_relation_types_pkey on citeledger.kg_relation_types is
  'A type is declared once.';
comment on constraint kg_relation_types_firm_fkey on citeledger.kg_relation_types is
  'The ontology goes with its firm.';
comment on constraint kg_relation_types_relation_type_is_label on citeledger.kg_relation_types is
  'A label: a lower-case letter, then at most 31 lower-case letters, digits or underscores.';
comment on policy kg_relation_types_of_the_firm on citeledger.kg_relation_types is
  'Only rows of the firm of the context, to read and to write.';
comment on trigger kg_relation_types_before_insert on citeledger.kg_relation_types is
  'The graph''s lock comes before the locks of rows.';

revoke all on table citeledger.kg_relation_types from public;
grant select, insert on table citeledger.kg_relation_types to citeledger_app;

reset role;

-- graph/kg_entities

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.kg_entities (
  firm_id uuid not null default citeledger.current_firm_id(),
  id uuid not null default gen_random_uuid(),
  name text not null,
  -- Stored, because under row security no index can be used over a function like lower().
  name_key text not null generated always as (lower(name)) stored,
  entity_type text not null,
  description text,
  created_at timestamptz not null default now(),
  constraint kg_entities_pkey primary key (firm_id, id),
  constraint kg_entities_firm_fkey foreign key (firm_id)
    references citeledger.firms (id) on delete cascade,
  constraint kg_entities_name_is_short check (name ~ '[^[:space:]]' and length(name) <= 500),
  constraint kg_entities_entity_type_is_label check (entity_type ~ '^[a-z][a-z0-9_]{0,31}$')
);

create unique index kg_entities_name_key
  on citeledger.kg_entities (firm_id, name_key);

alter table citeledger.kg_entities enable row level security;
alter table citeledger.kg_entities force row level security;

create policy kg_entities_of_the_firm on citeledger.kg_entities
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

create trigger kg_entities_before_insert
  before insert on citeledger.kg_entities
  for each statement
  execute function citeledger_private.before_ingest();

-- No statistics of content: an estimate would tell one firm about the texts of another.
alter table citeledger.kg_entities alter column name set statistics 0;
alter table citeledger.kg_entities alter column name_key set statistics 0;
alter table citeledger.kg_entities alter column description set statistics 0;

comment on table citeledger.kg_entities is
  'Concepts: people, clauses, statutes, ideas. No document is one; documents are joined by '
  'citations.';
comment on column citeledger.kg_entities.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.kg_entities.id is
  'The entity.';
comment on column citeledger.kg_entities.name is
  'Its name: 1 to 500 characters, unique in the firm whatever the case.';
comment on column citeledger.kg_entities.name_key is
  'The name in lower case, by which it is found.';
comment on column citeledger.kg_entities.entity_type is
  'What kind of concept: a label such as person.';
comment on column citeledger.kg_entities.description is
  'What is known of it, or null.';
comment on column citeledger.kg_entities.created_at is
  'When the row was recorded.';
comment on constraint kg_entities_pkey on citeledger.kg_entities is
  'An entity is known within its firm.';
comment on constraint kg_entities_firm_fkey on citeledger.kg_entities is
  'An entity goes with its firm.';
comment on constraint kg_entities_name_is_short on citeledger.kg_entities is
  'A name has a visible character and at most 500 characters.';
comment on constraint kg_entities_entity_type_is_label on citeledger.kg_entities is
  'A label: a lower-case letter, then at most 31 lower-case letters, digits or underscores.';
comment on index citeledger.kg_entities_name_key is
  'A firm has a name once, whatever the case.';
comment on policy kg_entities_of_the_firm on citeledger.kg_entities is
  'Only rows of the firm of the context, to read and to write.';
comment on trigger kg_entities_before_insert on citeledger.kg_entities is
  'The graph''s lock comes before the locks of rows.';

revoke all on table citeledger.kg_entities from public;
grant select, insert on table citeledger.kg_entities to citeledger_app;

reset role;

-- graph/kg_entity_mentions

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.kg_entity_mentions (
  firm_id uuid not null default citeledger.current_firm_id(),
  entity_id uuid not null,
  chunk_id uuid not null,
  created_at timestamptz not null default now(),
  constraint kg_entity_mentions_pkey primary key (firm_id, entity_id, chunk_id),
  constraint kg_entity_mentions_entity_fkey foreign key (firm_id, entity_id)
    references citeledger.kg_entities (firm_id, id) on delete cascade,
  constraint kg_entity_mentions_chunk_fkey foreign key (firm_id, chunk_id)
    references citeledger.chunks (firm_id, id) on delete cascade
);

create index kg_entity_mentions_chunk_idx
  on citeledger.kg_entity_mentions (firm_id, chunk_id);

alter table citeledger.kg_entity_mentions enable row level security;
alter table citeledger.kg_entity_mentions force row level security;

create policy kg_entity_mentions_of_the_firm on citeledger.kg_entity_mentions
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

create trigger kg_entity_mentions_before_insert
  before insert on citeledger.kg_entity_mentions
  for each statement
  execute function citeledger_private.before_ingest();

comment on table citeledger.kg_entity_mentions is
  'Where an entity is mentioned: its evidence. An entity without any is swept by graph_gc.';
comment on column citeledger.kg_entity_mentions.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.kg_entity_mentions.entity_id is
  'The entity.';
comment on column citeledger.kg_entity_mentions.chunk_id is
  'The chunk that mentions it.';
comment on column citeledger.kg_entity_mentions.created_at is
  'When the row was recorded.';
comment on constraint kg_entity_mentions_pkey on citeledger.kg_entity_mentions is
  'A chunk mentions an entity once. Referencing side of kg_entity_mentions_entity_fkey.';
comment on constraint kg_entity_mentions_entity_fkey on citeledger.kg_entity_mentions is
  'A mention goes with its entity.';
comment on constraint kg_entity_mentions_chunk_fkey on citeledger.kg_entity_mentions is
  'A mention goes with its chunk.';
comment on index citeledger.kg_entity_mentions_chunk_idx is
  'The mentions of a chunk. Referencing side of kg_entity_mentions_chunk_fkey.';
comment on policy kg_entity_mentions_of_the_firm on citeledger.kg_entity_mentions is
  'Only rows of the firm of the context, to read and to write.';
comment on trigger kg_entity_mentions_before_insert on citeledger.kg_entity_mentions is
  'The graph''s lock comes before the locks of rows.';

revoke all on table citeledger.kg_entity_mentions from public;
grant select, insert on table citeledger.kg_entity_mentions to citeledger_app;

reset role;

-- graph/kg_relationships

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.kg_relationships (
  firm_id uuid not null default citeledger.current_firm_id(),
  id uuid not null default gen_random_uuid(),
  source_entity_id uuid not null,
  target_entity_id uuid not null,
  relation_type text not null,
  chunk_id uuid not null,
  evidence text not null,
  confidence double precision,
  created_at timestamptz not null default now(),
  constraint kg_relationships_pkey primary key (firm_id, id),
  constraint kg_relationships_source_entity_fkey foreign key (firm_id, source_entity_id)
    references citeledger.kg_entities (firm_id, id) on delete cascade,
  constraint kg_relationships_target_entity_fkey foreign key (firm_id, target_entity_id)
    references citeledger.kg_entities (firm_id, id) on delete cascade,
  constraint kg_relationships_relation_type_fkey foreign key (firm_id, relation_type)
    references citeledger.kg_relation_types (firm_id, relation_type),
  constraint kg_relationships_chunk_fkey foreign key (firm_id, chunk_id)
    references citeledger.chunks (firm_id, id) on delete cascade,
  constraint kg_relationships_confidence_is_a_share check (confidence >= 0 and confidence <= 1)
);

create index kg_relationships_source_entity_idx
  on citeledger.kg_relationships (firm_id, source_entity_id, target_entity_id);
create index kg_relationships_target_entity_idx
  on citeledger.kg_relationships (firm_id, target_entity_id, source_entity_id);
create index kg_relationships_relation_type_idx
  on citeledger.kg_relationships (firm_id, relation_type);
create index kg_relationships_chunk_idx
  on citeledger.kg_relationships (firm_id, chunk_id);

alter table citeledger.kg_relationships enable row level security;
alter table citeledger.kg_relationships force row level security;

create policy kg_relationships_of_the_firm on citeledger.kg_relationships
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

create trigger kg_relationships_before_insert
  before insert on citeledger.kg_relationships
  for each statement
  execute function citeledger_private.before_ingest();

-- No statistics of content: an estimate would tell one firm about the texts of another.
alter table citeledger.kg_relationships alter column evidence set statistics 0;

comment on table citeledger.kg_relationships is
  'Relationships between concepts, each with the phrase that says so.';
comment on column citeledger.kg_relationships.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.kg_relationships.id is
  'The relationship.';
comment on column citeledger.kg_relationships.source_entity_id is
  'From which entity.';
comment on column citeledger.kg_relationships.target_entity_id is
  'To which entity.';
comment on column citeledger.kg_relationships.relation_type is
  'Of which declared type.';
comment on column citeledger.kg_relationships.chunk_id is
  'The chunk that says so.';
comment on column citeledger.kg_relationships.evidence is
  'The quoted phrase.';
comment on column citeledger.kg_relationships.confidence is
  'The extractor''s confidence, 0 to 1, or null.';
comment on column citeledger.kg_relationships.created_at is
  'When the row was recorded.';
comment on constraint kg_relationships_pkey on citeledger.kg_relationships is
  'A relationship is known within its firm.';
comment on constraint kg_relationships_source_entity_fkey on citeledger.kg_relationships is
  'A relationship goes with the entity that it comes from.';
comment on constraint kg_relationships_target_entity_fkey on citeledger.kg_relationships is
  'A relationship goes with the entity that it leads to.';
comment on constraint kg_relationships_relation_type_fkey on citeledger.kg_relationships is
  'Only declared types; one that is in use stays declared.';
comment on constraint kg_relationships_chunk_fkey on citeledger.kg_relationships is
  'A relationship goes with the chunk that says so.';
comment on constraint kg_relationships_confidence_is_a_share on citeledger.kg_relationships is
  'From 0 to 1, or null; NaN is neither.';
comment on index citeledger.kg_relationships_source_entity_idx is
  'The walk along relationships. Referencing side of kg_relationships_source_entity_fkey.';
comment on index citeledger.kg_relationships_target_entity_idx is
  'The walk against relationships. Referencing side of kg_relationships_target_entity_fkey.';
comment on index citeledger.kg_relationships_relation_type_idx is
  'Referencing side of kg_relationships_relation_type_fkey.';
comment on index citeledger.kg_relationships_chunk_idx is
  'Referencing side of kg_relationships_chunk_fkey.';
comment on policy kg_relationships_of_the_firm on citeledger.kg_relationships is
  'Only rows of the firm of the context, to read and to write.';
comment on trigger kg_relationships_before_insert on citeledger.kg_relationships is
  'The graph''s lock comes before the locks of rows.';

revoke all on table citeledger.kg_relationships from public;
grant select, insert on table citeledger.kg_relationships to citeledger_app;

reset role;

-- graph/graph_stage

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.scope_fault(
  p_scope jsonb
)
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_key text;
begin
  if p_scope is null or jsonb_typeof(p_scope) <> 'object' then
    return 'p_scope: not an object';
  end if;
  if p_scope - array[
      'license_classes', 'sources', 'year_min', 'year_max', 'exclude_document_ids'
    ] <> '{}'
  then
    return 'p_scope: it has a key that is not one of a scope''s';
  end if;
  foreach v_key in array array['license_classes', 'sources', 'exclude_document_ids'] loop
    if p_scope ? v_key
      and (
        jsonb_typeof(p_scope -> v_key) <> 'array'
        or jsonb_path_exists(p_scope -> v_key, 'strict $[*] ? (@.type() != "string")')
      )
    then
      return format('%s: not a list of texts', v_key);
    end if;
  end loop;
  if exists (
    select
    from jsonb_array_elements_text(coalesce(p_scope -> 'exclude_document_ids', '[]')) as e (id)
    where e.id !~ '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'
  ) then
    return 'exclude_document_ids: not a list of uuids';
  end if;
  foreach v_key in array array['year_min', 'year_max'] loop
    if p_scope ? v_key
      and not citeledger_private.is_whole_number(p_scope -> v_key, -2147483648)
    then
      return format('%s: not a whole number', v_key);
    end if;
  end loop;
  return null;
end
$$;

create function citeledger_private.documents_in_scope(
  p_firm_id uuid,
  p_document_ids uuid[],
  p_scope jsonb
)
returns setof uuid
language plpgsql
stable
parallel safe
security invoker
rows 10
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
begin
  -- An empty list allows nothing; a key that is absent allows everything.
  return query
  select d.id
  from citeledger_private.visible_documents(p_firm_id, p_document_ids) as v (id)
  join citeledger.documents as d on d.firm_id = p_firm_id and d.id = v.id
  where (not p_scope ? 'license_classes' or p_scope -> 'license_classes' ? d.license_class)
    and (not p_scope ? 'sources' or p_scope -> 'sources' ? d.source)
    and (
      not p_scope ? 'year_min'
      or d.publication_year >= (p_scope ->> 'year_min')::numeric
    )
    and (
      not p_scope ? 'year_max'
      or d.publication_year <= (p_scope ->> 'year_max')::numeric
    )
    and not exists (
      select
      from jsonb_array_elements_text(coalesce(p_scope -> 'exclude_document_ids', '[]')) as e (id)
      where e.id::uuid = d.id
    );
end
$$;

create function citeledger.graph_stage(
  p_entity_names text[],
  p_max_hops integer default 2,
  p_include_citations boolean default false,
  p_scope jsonb default '{}',
  p_limit integer default 20
)
returns table (
  chunk_id uuid,
  hop integer,
  via text
)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_fault text;
  v_frontier uuid[];
  v_entity_ids uuid[];
  v_entity_hops integer[];
  v_hop integer := 0;
begin
  perform citeledger.require_permission('matters:read');
  v_fault := case
    when p_max_hops is null or p_max_hops < 0 then
      format('p_max_hops: %s is not a number from 0 up', coalesce(p_max_hops::text, 'null'))
    when p_limit is null or p_limit < 1 then
      format('p_limit: %s is not a number from 1 up', coalesce(p_limit::text, 'null'))
    when p_include_citations is null then 'p_include_citations: null is neither true nor false'
    else citeledger_private.scope_fault(p_scope)
  end;
  if v_fault is not null then
    raise exception using
      errcode = '22023',
      message = 'the graph stage cannot be asked like this',
      detail = format('%s.', v_fault),
      hint = 'A scope has license_classes, sources, exclude_document_ids (lists), year_min and '
        'year_max (numbers), each of which may be left out.';
  end if;

  -- The concept walk: entities by name, then along relationships in either direction.
  v_frontier := array(
    select e.id
    from citeledger.kg_entities as e
    where e.firm_id = v_firm_id
      and e.name_key = any(array(select lower(n.name) from unnest(p_entity_names) as n (name)))
  );
  v_entity_ids := v_frontier;
  v_entity_hops := array_fill(0, array[cardinality(v_frontier)]);
  while v_hop < p_max_hops and cardinality(v_frontier) > 0 loop
    v_hop := v_hop + 1;
    -- A relationship counts only where the document that says so may be seen.
    v_frontier := array(
      with said as materialized (
        select r.source_entity_id, r.target_entity_id, c.document_id
        from citeledger.kg_relationships as r
        join citeledger.chunks as c on c.firm_id = v_firm_id and c.id = r.chunk_id
        where r.firm_id = v_firm_id and r.source_entity_id = any(v_frontier)
        union
        select r.source_entity_id, r.target_entity_id, c.document_id
        from citeledger.kg_relationships as r
        join citeledger.chunks as c on c.firm_id = v_firm_id and c.id = r.chunk_id
        where r.firm_id = v_firm_id and r.target_entity_id = any(v_frontier)
      ),
      seen as materialized (
        select s.source_entity_id, s.target_entity_id
        from said as s
        where s.document_id in (
          select v.id
          from citeledger_private.visible_documents(
            v_firm_id, array(select distinct d.document_id from said as d)
          ) as v (id)
        )
      )
      (select s.target_entity_id from seen as s union select s.source_entity_id from seen as s)
      except
      select x.id from unnest(v_entity_ids) as x (id)
    );
    v_entity_ids := v_entity_ids || v_frontier;
    v_entity_hops := v_entity_hops || array_fill(v_hop, array[cardinality(v_frontier)]);
  end loop;

  return query
  with mentioned as materialized (
    select c.id, c.document_id, c.chunk_index, min(x.hop) as hop
    from unnest(v_entity_ids, v_entity_hops) as x (entity_id, hop)
    join citeledger.kg_entity_mentions as m
      on m.firm_id = v_firm_id and m.entity_id = x.entity_id
    join citeledger.chunks as c on c.firm_id = v_firm_id and c.id = m.chunk_id
    group by c.id, c.document_id, c.chunk_index
  ),
  concept as materialized (
    select m.*
    from mentioned as m
    where m.document_id in (
      select s.id
      from citeledger_private.documents_in_scope(
        v_firm_id, array(select distinct n.document_id from mentioned as n), p_scope
      ) as s (id)
    )
  ),
  -- An expansion of the walk, not a layer of its own: the documents one citation away.
  neighbour as materialized (
    select n.document_id, min(n.hop) + 1 as hop
    from (
      select e.cited_document_id as document_id, o.hop
      from concept as o
      join citeledger.document_citations as e
        on e.firm_id = v_firm_id and e.citing_document_id = o.document_id
      where p_include_citations and o.hop < p_max_hops
      union all
      select e.citing_document_id, o.hop
      from concept as o
      join citeledger.document_citations as e
        on e.firm_id = v_firm_id and e.cited_document_id = o.document_id
      where p_include_citations and o.hop < p_max_hops
    ) as n
    group by n.document_id
  ),
  candidate as (
    select o.id, o.document_id, o.chunk_index, o.hop, 'concept' as via
    from concept as o
    union all
    select c.id, c.document_id, c.chunk_index, n.hop, 'citation'
    from neighbour as n
    join citeledger_private.documents_in_scope(
      v_firm_id, array(select m.document_id from neighbour as m), p_scope
    ) as s (id) on s.id = n.document_id
    join citeledger.chunks as c on c.firm_id = v_firm_id and c.document_id = n.document_id
  ),
  best as (
    select distinct on (k.id) k.*
    from candidate as k
    order by k.id, k.hop, k.via desc
  )
  select b.id, b.hop, b.via
  from best as b
  order by b.hop, b.via desc, b.document_id, b.chunk_index
  limit p_limit;
end
$$;

comment on function citeledger_private.scope_fault(jsonb) is
  'What is wrong with a scope, as "key: problem"; null when it is well-formed.';
comment on function citeledger_private.documents_in_scope(uuid, uuid[], jsonb) is
  'Those of the documents that are visible, live and allowed by the scope. A document without a '
  'publication year is in no range of years.';
comment on function citeledger.graph_stage(text[], integer, boolean, jsonb, integer) is
  'A stage of retrieval: the chunks that mention the named entities (whatever the case) or '
  'entities within p_max_hops relationships of them, in either direction. With p_include_citations '
  'also, via citation, the chunks of documents one citation away, in either direction, at one hop '
  'more than the chunk they came from and still within p_max_hops. p_scope: {"license_classes", '
  '"sources", "year_min", "year_max", "exclude_document_ids"}, applied to the documents before '
  'anything is ranked; an empty list allows nothing. Rows by hop, concept before citation, '
  'document, place; a chunk once; at most p_limit. Documents that are not live, or in a matter '
  'that is hidden from the caller, are passed over. Needs matters:read. For citeledger_reader. '
  'Errors: 42501 without the permission; 22023 for hops, a limit or a scope that make no sense, '
  'naming the key.';

revoke all on function citeledger_private.scope_fault(jsonb) from public;
revoke all on function citeledger_private.documents_in_scope(uuid, uuid[], jsonb) from public;
revoke all on function citeledger.graph_stage(text[], integer, boolean, jsonb, integer)
  from public;
grant execute on function citeledger.graph_stage(text[], integer, boolean, jsonb, integer)
  to citeledger_reader;
grant execute on function citeledger.graph_stage(text[], integer, boolean, jsonb, integer)
  to citeledger_app;
grant execute on function citeledger.graph_stage(text[], integer, boolean, jsonb, integer)
  to citeledger_admin;

reset role;

-- graph/corpus_delete

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.corpus_delete(
  p_document_ids uuid[]
)
returns jsonb
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_document_ids uuid[];
  v_counts jsonb;
  v_deleted bigint;
begin
  perform citeledger_private.lock_graph(v_firm_id);
  v_document_ids := array(
    select l.id
    from (
      select d.id
      from citeledger.documents as d
      where d.firm_id = v_firm_id and d.id = any(p_document_ids)
      order by d.id
      for update
    ) as l
  );

  select jsonb_build_object(
    'pages', (
      select count(*) from citeledger.document_pages as p
      where p.firm_id = v_firm_id and p.document_id = any(v_document_ids)
    ),
    'blocks', (
      select count(*) from citeledger.document_page_blocks as b
      where b.firm_id = v_firm_id and b.document_id = any(v_document_ids)
    ),
    'chunks', (
      select count(*) from citeledger.chunks as c
      where c.firm_id = v_firm_id and c.document_id = any(v_document_ids)
    ),
    'mentions', (
      select count(*)
      from citeledger.chunks as c
      join citeledger.kg_entity_mentions as m on m.firm_id = v_firm_id and m.chunk_id = c.id
      where c.firm_id = v_firm_id and c.document_id = any(v_document_ids)
    ),
    'relationships', (
      select count(*)
      from citeledger.chunks as c
      join citeledger.kg_relationships as r on r.firm_id = v_firm_id and r.chunk_id = c.id
      where c.firm_id = v_firm_id and c.document_id = any(v_document_ids)
    ),
    'references', (
      select count(*) from citeledger.document_references as r
      where r.firm_id = v_firm_id and r.document_id = any(v_document_ids)
    ),
    'citations', (
      select count(*) from citeledger.document_citations as e
      where e.firm_id = v_firm_id
        and (
          e.citing_document_id = any(v_document_ids) or e.cited_document_id = any(v_document_ids)
        )
    )
  )
  into v_counts;

  with deleted as (
    delete from citeledger.documents as d
    where d.firm_id = v_firm_id and d.id = any(v_document_ids)
    returning d.id
  )
  select count(*) into v_deleted from deleted;
  return jsonb_build_object('documents', v_deleted) || v_counts;
end
$$;

comment on function citeledger.corpus_delete(uuid[]) is
  'Deletes documents of the context''s firm with all that was made of them, and returns how many '
  'rows of each kind went: {"documents", "pages", "blocks", "chunks", "mentions", "relationships", '
  '"references", "citations"}. Ids that are not there are passed over. References to them are '
  'unresolved again. Quotes that a turn already cited stay with that turn. Entities without '
  'evidence are left to graph_gc. Locks the firm''s graph and the documents until the transaction '
  'ends. For citeledger_admin. Errors: 25000 above read committed.';

revoke all on function citeledger.corpus_delete(uuid[]) from public;
grant execute on function citeledger.corpus_delete(uuid[]) to citeledger_admin;

reset role;

-- graph/graph_gc

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.graph_gc(
  p_dry_run boolean default true
)
returns jsonb
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_dry_run boolean := coalesce(p_dry_run, true);
  v_candidates uuid[];
  v_citations bigint;
  v_mentions bigint;
  v_relationships bigint;
  v_entities bigint;
begin
  perform citeledger_private.lock_graph(v_firm_id);

  -- What hangs in the air: foreign keys do not let it happen, but a load without triggers does.
  with hanging as materialized (
    select e.citing_document_id, e.cited_document_id
    from citeledger.document_citations as e
    where e.firm_id = v_firm_id
      and (
        not exists (
          select from citeledger.documents as d
          where d.firm_id = v_firm_id and d.id = e.citing_document_id
        )
        or not exists (
          select from citeledger.documents as d
          where d.firm_id = v_firm_id and d.id = e.cited_document_id
        )
      )
  ),
  swept as (
    delete from citeledger.document_citations as e
    using hanging as h
    where not v_dry_run
      and e.firm_id = v_firm_id
      and e.citing_document_id = h.citing_document_id
      and e.cited_document_id = h.cited_document_id
    returning e.cited_document_id
  )
  select count(*) into v_citations from hanging;

  with hanging as materialized (
    select m.entity_id, m.chunk_id
    from citeledger.kg_entity_mentions as m
    where m.firm_id = v_firm_id
      and (
        not exists (
          select from citeledger.kg_entities as k
          where k.firm_id = v_firm_id and k.id = m.entity_id
        )
        or not exists (
          select from citeledger.chunks as c
          where c.firm_id = v_firm_id and c.id = m.chunk_id
        )
      )
  ),
  swept as (
    delete from citeledger.kg_entity_mentions as m
    using hanging as h
    where not v_dry_run
      and m.firm_id = v_firm_id
      and m.entity_id = h.entity_id
      and m.chunk_id = h.chunk_id
    returning m.chunk_id
  )
  select count(*) into v_mentions from hanging;

  with hanging as materialized (
    select r.id
    from citeledger.kg_relationships as r
    where r.firm_id = v_firm_id
      and (
        not exists (
          select from citeledger.kg_entities as k
          where k.firm_id = v_firm_id and k.id = r.source_entity_id
        )
        or not exists (
          select from citeledger.kg_entities as k
          where k.firm_id = v_firm_id and k.id = r.target_entity_id
        )
        or not exists (
          select from citeledger.chunks as c
          where c.firm_id = v_firm_id and c.id = r.chunk_id
        )
      )
  ),
  swept as (
    delete from citeledger.kg_relationships as r
    using hanging as h
    where not v_dry_run and r.firm_id = v_firm_id and r.id = h.id
    returning r.id
  )
  select count(*) into v_relationships from hanging;

  -- Entities without evidence. An ingest may be giving one of them evidence at this moment: lock
  -- first, then look again in a new statement. One that somebody holds is in use and stays: waiting
  -- for it, with the graph locked, could be waiting in a circle.
  v_candidates := array(
    select k.id
    from citeledger.kg_entities as k
    where k.firm_id = v_firm_id
      and not exists (
        select
        from citeledger.kg_entity_mentions as m
        join citeledger.chunks as c on c.firm_id = v_firm_id and c.id = m.chunk_id
        where m.firm_id = v_firm_id and m.entity_id = k.id
      )
  );
  if not v_dry_run then
    v_candidates := array(
      select k.id
      from citeledger.kg_entities as k
      where k.firm_id = v_firm_id and k.id = any(v_candidates)
      order by k.id
      for update skip locked
    );
  end if;
  with bare as materialized (
    select k.id
    from citeledger.kg_entities as k
    where k.firm_id = v_firm_id
      and k.id = any(v_candidates)
      and not exists (
        select
        from citeledger.kg_entity_mentions as m
        join citeledger.chunks as c on c.firm_id = v_firm_id and c.id = m.chunk_id
        where m.firm_id = v_firm_id and m.entity_id = k.id
      )
  ),
  swept as (
    delete from citeledger.kg_entities as k
    using bare as b
    where not v_dry_run and k.firm_id = v_firm_id and k.id = b.id
    returning k.id
  )
  select count(*) into v_entities from bare;

  return jsonb_build_object(
    'entities', v_entities,
    'citations', v_citations,
    'mentions', v_mentions,
    'relationships', v_relationships,
    'dry_run', v_dry_run
  );
end
$$;

comment on function citeledger.graph_gc(boolean) is
  'Sweeps what nothing holds any more, and returns how many rows of each kind: {"entities" '
  '(without evidence), "citations", "mentions", "relationships" (with an endpoint that vanished by '
  'other means, such as a load without triggers), "dry_run"}. An entity to which an ingest gives '
  'evidence at that moment stays. A dry run, the default and what null means, changes nothing and '
  'counts what it would sweep. Relationships of a swept entity go with it. Locks the firm''s graph '
  'and the candidates until the transaction ends. For citeledger_admin. Errors: 25000 above read '
  'committed.';

revoke all on function citeledger.graph_gc(boolean) from public;
grant execute on function citeledger.graph_gc(boolean) to citeledger_admin;

reset role;

-- ops/version@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.version()
returns text
language sql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
  select '0.1.0'::text
$$;

comment on function citeledger.version() is
  'The version of the installed schema, MAJOR.MINOR.PATCH. A client refuses one that it does not '
  'know.';

revoke all on function citeledger.version() from public;
grant execute on function citeledger.version() to citeledger_reader;
grant execute on function citeledger.version() to citeledger_app;
grant execute on function citeledger.version() to citeledger_admin;

reset role;

-- ops/check_integrity

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.check_integrity()
returns table (
  problem text,
  table_name text,
  row_key text
)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_turns uuid[];
begin
  perform citeledger.require_permission('matters:read');

  -- The turns whose ledger and verdict must follow their sources.
  v_turns := array(
    select m.id
    from citeledger.messages as m
    where m.firm_id = v_firm_id
      and m.role = 'assistant'
      and (
        m.finalized_at is not null
        or exists (
          select
          from citeledger.work_product_fiduciary_gate as g
          where g.firm_id = v_firm_id and g.message_id = m.id
        )
      )
  );

  return query
  with due as materialized (
    select * from citeledger_private.entry_values(v_firm_id, v_turns, null)
  ),
  entry as materialized (
    select
      e.*,
      coalesce(
        e.message_citation_id, e.message_caselaw_citation_id, e.message_tool_source_id
      ) as source_id
    from citeledger.citation_ledger_entry as e
    where e.firm_id = v_firm_id
  ),
  verdict as materialized (
    select g.*
    from citeledger.work_product_fiduciary_gate as g
    where g.firm_id = v_firm_id
  ),
  counted as materialized (
    select * from citeledger_private.recount(v_firm_id, v_turns)
  )
  select 'source_without_entry', d.source_table, d.source_id::text
  from due as d
  where not exists (
    select from entry as e where e.source_id = d.source_id and e.message_id = d.message_id
  )
  union all
  select 'entry_differs_from_source', 'citation_ledger_entry', e.id::text
  from entry as e
  join due as d on d.source_id = e.source_id and d.message_id = e.message_id
  where (
      e.chat_id, e.source_kind, e.verification_status, e.confidence, e.provider, e.retrieved_at
    ) is distinct from (
      d.chat_id, d.source_kind, d.verification_status, d.confidence, d.provider, d.retrieved_at
    )
  union all
  select 'verdict_differs_from_recount', 'work_product_fiduciary_gate', g.id::text
  from verdict as g
  left join counted as c on c.message_id = g.message_id
  where c.message_id is null
    or (
      g.pass_count, g.supported_count, g.fail_count, g.unrecognized_count, g.confidence
    ) is distinct from (
      c.pass_count, c.supported_count, c.fail_count, c.unrecognized_count, c.confidence
    )
  union all
  select 'finalized_turn_without_verdict', 'messages', m.id::text
  from citeledger.messages as m
  where m.firm_id = v_firm_id
    and m.role = 'assistant'
    and m.finalized_at is not null
    and not exists (select from verdict as g where g.message_id = m.id)
  union all
  select
    'page_block_gap', 'document_page_blocks', format('%s/%s', b.document_id, b.page_number)
  from citeledger.document_page_blocks as b
  where b.firm_id = v_firm_id
  group by b.document_id, b.page_number
  having max(b.block_index) <> count(*) - 1
  union all
  select
    'edge_without_endpoint', 'document_citations',
    format('%s/%s', e.citing_document_id, e.cited_document_id)
  from citeledger.document_citations as e
  where e.firm_id = v_firm_id
    and (
      select count(*)
      from citeledger.documents as d
      where d.firm_id = v_firm_id and d.id in (e.citing_document_id, e.cited_document_id)
    ) < 2
  order by 1, 2, 3;
end
$$;

comment on function citeledger.check_integrity() is
  'What is wrong in the context''s firm; no row on a healthy database. problem: '
  'source_without_entry (a source of a turn that is finalized or has a verdict), '
  'entry_differs_from_source, verdict_differs_from_recount, finalized_turn_without_verdict, '
  'page_block_gap, edge_without_endpoint. table_name: where the row is; row_key: its id, or '
  'document_id/page_number of a page, or the two document ids of an edge. It reads the whole firm '
  'in one snapshot and locks nothing. finalize_turn mends a turn that is named. Needs '
  'matters:read. For citeledger_reader. Errors: 42501 without the permission.';

revoke all on function citeledger.check_integrity() from public;
grant execute on function citeledger.check_integrity() to citeledger_reader;
grant execute on function citeledger.check_integrity() to citeledger_app;
grant execute on function citeledger.check_integrity() to citeledger_admin;

reset role;

-- ops/metadata_only_violations@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.metadata_only_violations()
returns table (
  table_name text,
  column_name text,
  reason text
)
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
  select found.table_name, found.column_name, found.reason
  from (
    select
      c.relname::text as table_name,
      a.attname::text as column_name,
      case
        when a.attname ~ '(content|text|quote|passage|excerpt|snippet|summary|abstract)'
          or a.attname ~ '(body|title|subject|payload|note|comment|reasoning|message)$'
          then 'its name speaks of content'
        when a.atttypid in (
            'uuid'::regtype, 'boolean'::regtype, 'smallint'::regtype, 'integer'::regtype,
            'bigint'::regtype, 'double precision'::regtype, 'numeric'::regtype,
            'date'::regtype, 'timestamptz'::regtype
          )
          then null
        when a.atttypid <> 'text'::regtype
          then format('its type %s could hold content', format_type(a.atttypid, a.atttypmod))
        when not exists (
            select
            from pg_constraint as k
            where k.conrelid = c.oid
              and k.contype = 'c'
              and k.convalidated
              and k.conkey = array[a.attnum]
              -- A label, a name, a SQLSTATE or a DOI, by exactly this check.
              and pg_get_expr(k.conbin, k.conrelid) in (
                format('(%I ~ %L::text)', a.attname, '^[a-z][a-z0-9_]{0,31}$'),
                format('(%I ~ %L::text)', a.attname, '^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$'),
                format('(%I ~ %L::text)', a.attname, '^[0-9A-Z]{5}$'),
                format('(citeledger.normalize_doi(%I) IS NOT NULL)', a.attname)
              )
          )
          then 'it is text, and no check makes it a label, a name, a SQLSTATE or a DOI'
      end as reason
    from pg_class as c
    join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where c.relnamespace = 'citeledger'::regnamespace
      and c.relname in (
        'citation_ledger_entry', 'citation_ledger_entry_revision', 'finalize_failure',
        'work_product_fiduciary_gate', 'document_citations'
      )
  ) as found
  where found.reason is not null
  order by found.table_name, found.column_name;
end
$$;

comment on function citeledger.metadata_only_violations() is
  'The columns of the metadata-only tables (ledger, revisions, gate, finalize failures, edges) '
  'that could hold content, with the reason: a name that speaks of content, a type that could hold '
  'it, or text that no validated CHECK makes a label, a name, a SQLSTATE or a DOI. No row on a '
  'healthy database. Source: the system catalogs. For citeledger_reader.';

revoke all on function citeledger.metadata_only_violations() from public;
grant execute on function citeledger.metadata_only_violations() to citeledger_reader;
grant execute on function citeledger.metadata_only_violations() to citeledger_app;
grant execute on function citeledger.metadata_only_violations() to citeledger_admin;

reset role;

-- graph/edge_doi

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.edge_doi(
  p_cited_doi text
)
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_key text := citeledger.normalize_doi(p_cited_doi);
begin
  -- 64 bytes are room for a resolver's address and what a sentence leaves behind. What is longer
  -- carries something that is no part of the DOI, such as the query of an address.
  if octet_length(p_cited_doi) <= octet_length(v_key) + 64 then
    return p_cited_doi;
  end if;
  return v_key;
end
$$;

comment on function citeledger_private.edge_doi(text) is
  'What an edge keeps of a DOI: the DOI as printed, or its key where what was printed is more than '
  '64 bytes longer than that. Null where there is no DOI.';

revoke all on function citeledger_private.edge_doi(text) from public;

reset role;

-- graph/reconcile_edges

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.judged_references(
  p_firm_id uuid,
  p_document_ids uuid[],
  p_keys text[]
)
returns table (
  citing_document_id uuid,
  cited_document_id uuid,
  cited_doi text,
  source text,
  list_position integer,
  fate citeledger_private.reference_fate
)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
begin
  if p_document_ids is null and p_keys is null then
    -- The whole firm: every key is looked up in one pass over its live holders. A full join, for
    -- without statistics the planner would take a left one for a loop in a loop. Each part is kept
    -- apart by its offset, which stores nothing, where a CTE would write every list to disk twice.
    return query
    with holder as materialized (
      select d.doi_key, count(*) as holders, (array_agg(d.id))[1] as document_id
      from citeledger.documents as d
      where d.firm_id = p_firm_id and d.doi_key is not null and d.deleted_at is null
      group by d.doi_key
    )
    select
      l.document_id, l.holder_id, l.cited_doi, l.source, l.position,
      case
        when l.holders is null then 'unmatched'
        when l.holders > 1 then 'ambiguous'
        when l.holder_id = l.document_id then 'self_citation'
        else 'matched'
      end::citeledger_private.reference_fate
    from (
      select
        r.id, r.document_id, r.cited_doi, r.source, r.position,
        h.holders, h.document_id as holder_id
      from (
        select r.id, r.document_id, r.doi_key, r.cited_doi, r.source, r.position
        from citeledger.document_references as r
        where r.firm_id = p_firm_id
          and r.document_id in (
            select a.id from citeledger.documents as a
            where a.firm_id = p_firm_id and a.deleted_at is null
          )
        offset 0
      ) as r
      full join holder as h on h.doi_key = r.doi_key
      offset 0
    ) as l
    where l.id is not null;
    return;
  end if;
  -- Laterally, an index look-up for each, of a key or a document as of what is found: whatever the
  -- tables held when the plan was made, it neither reads a firm's lists from end to end nor makes a
  -- loop in a loop.
  return query
  with reference as materialized (
    select r.document_id, r.doi_key, r.cited_doi, r.source, r.position
    from (select distinct i.id from unnest(p_document_ids) as i (id)) as i
    cross join lateral (
      select f.document_id, f.doi_key, f.cited_doi, f.source, f.position
      from citeledger.document_references as f
      where f.firm_id = p_firm_id and f.document_id = i.id
      offset 0
    ) as r
    union all
    select r.document_id, r.doi_key, r.cited_doi, r.source, r.position
    from (select distinct k.doi_key from unnest(p_keys) as k (doi_key)) as k
    cross join lateral (
      select f.document_id, f.doi_key, f.cited_doi, f.source, f.position
      from citeledger.document_references as f
      where f.firm_id = p_firm_id and f.doi_key = k.doi_key
      offset 0
    ) as r
    where r.document_id not in (select i.id from unnest(p_document_ids) as i (id))
  )
  select
    r.document_id, h.document_id, r.cited_doi, r.source, r.position,
    case
      when h.holders = 0 then 'unmatched'
      when h.holders > 1 then 'ambiguous'
      when h.document_id = r.document_id then 'self_citation'
      else 'matched'
    end::citeledger_private.reference_fate
  from reference as r
  cross join lateral (
    select a.deleted_at
    from citeledger.documents as a
    where a.firm_id = p_firm_id and a.id = r.document_id
    offset 0
  ) as a
  cross join lateral (
    select count(*) as holders, (array_agg(d.id))[1] as document_id
    from citeledger.documents as d
    where d.firm_id = p_firm_id and d.doi_key = r.doi_key and d.deleted_at is null
  ) as h
  where a.deleted_at is null;
end
$$;

create or replace function citeledger_private.edges_in_question(
  p_firm_id uuid,
  p_document_ids uuid[],
  p_holder_ids uuid[]
)
returns table (
  citing_document_id uuid,
  cited_document_id uuid,
  cited_doi text,
  source text
)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_document_ids is null and p_holder_ids is null then
    return query
    select e.citing_document_id, e.cited_document_id, e.cited_doi, e.source
    from citeledger.document_citations as e
    where e.firm_id = (select p_firm_id);
    return;
  end if;
  -- Laterally, an index look-up for each, and firm and arrays through sub-selects: what is known of
  -- them would else make the plan look worth making anew.
  return query
  select e.citing_document_id, e.cited_document_id, e.cited_doi, e.source
  from (select distinct i.id from unnest((select p_document_ids)) as i (id)) as i
  cross join lateral (
    select c.citing_document_id, c.cited_document_id, c.cited_doi, c.source
    from citeledger.document_citations as c
    where c.firm_id = (select p_firm_id) and c.citing_document_id = i.id
    offset 0
  ) as e
  union
  select e.citing_document_id, e.cited_document_id, e.cited_doi, e.source
  from (select distinct i.id from unnest((select p_holder_ids)) as i (id)) as i
  cross join lateral (
    select c.citing_document_id, c.cited_document_id, c.cited_doi, c.source
    from citeledger.document_citations as c
    where c.firm_id = (select p_firm_id) and c.cited_document_id = i.id
    offset 0
  ) as e;
end
$$;

comment on function citeledger_private.edges_in_question(uuid, uuid[], uuid[]) is
  'The edges from the documents p_document_ids and those to p_holder_ids, each once; every edge of '
  'the firm when both are null.';

revoke all on function citeledger_private.edges_in_question(uuid, uuid[], uuid[]) from public;

create or replace function citeledger_private.reconcile_edges(
  p_firm_id uuid,
  p_document_ids uuid[],
  p_keys text[],
  p_source text default null,
  p_dry_run boolean default false
)
returns jsonb
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  -- Null with the keys: then all edges are in question.
  v_holders uuid[] := case when p_keys is not null then '{}'::uuid[] end;
  v_report jsonb;
begin
  -- Whose incoming edges are in question: whoever holds one of the keys, and the documents that may
  -- have held it until now. A list alone changes no incoming edge.
  if cardinality(p_keys) > 0 then
    v_holders := (select p_document_ids) || array(
      select d.id
      from unnest((select p_keys)) as k (doi_key)
      cross join lateral (
        select h.id
        from citeledger.documents as h
        where h.firm_id = (select p_firm_id) and h.doi_key = k.doi_key
        offset 0
      ) as d
    );
  end if;

  -- Materialized all along: right after a load there are no statistics to plan a join by.
  with judged as materialized (
    select * from citeledger_private.judged_references(p_firm_id, p_document_ids, p_keys)
  ),
  wanted as materialized (
    select distinct on (j.citing_document_id, j.cited_document_id)
      j.citing_document_id, j.cited_document_id, j.source,
      case
        -- Nearly every DOI: no need to ask what its key is.
        when octet_length(j.cited_doi) <= 64 then j.cited_doi
        else citeledger_private.edge_doi(j.cited_doi)
      end as cited_doi
    from judged as j
    where j.fate = 'matched'
    order by j.citing_document_id, j.cited_document_id, j.source collate "C", j.list_position
  ),
  present as materialized (
    select * from citeledger_private.edges_in_question(p_firm_id, p_document_ids, v_holders)
  ),
  -- Compared by a full join, which is never a loop in a loop, whatever the planner expects.
  compared as materialized (
    select
      w.citing_document_id, w.cited_document_id, w.cited_doi, w.source,
      p.citing_document_id as present_citing_id, p.cited_document_id as present_cited_id,
      p.cited_doi as present_doi, p.source as present_source
    from wanted as w
    full join present as p
      on p.citing_document_id = w.citing_document_id
      and p.cited_document_id = w.cited_document_id
  ),
  surplus as materialized (
    select c.present_citing_id as citing_document_id, c.present_cited_id as cited_document_id
    from compared as c
    where c.citing_document_id is null
  ),
  -- Told apart twice, for the report: cheaper than to keep a copy of each.
  due as not materialized (
    select c.citing_document_id, c.cited_document_id, c.cited_doi, c.source
    from compared as c
    where c.citing_document_id is not null
      and (c.cited_doi, c.source) is distinct from (c.present_doi, c.present_source)
  ),
  -- By its key, not by the place it was seen at: above read committed a withdrawal or a deletion of
  -- documents updates edges without the lock of the graph.
  removed as (
    delete from citeledger.document_citations as e
    using surplus as s
    where not p_dry_run
      and e.firm_id = (select p_firm_id)
      and e.citing_document_id = s.citing_document_id
      and e.cited_document_id = s.cited_document_id
    returning e.cited_document_id
  ),
  written as (
    insert into citeledger.document_citations (
      firm_id, citing_document_id, cited_document_id, cited_doi, source
    )
    select p_firm_id, d.citing_document_id, d.cited_document_id, d.cited_doi, d.source
    from due as d
    where not p_dry_run
    order by d.citing_document_id, d.cited_document_id
    on conflict (firm_id, citing_document_id, cited_document_id) do update
    set cited_doi = excluded.cited_doi, source = excluded.source
    returning cited_document_id
  )
  select jsonb_build_object(
    'documents_scanned', (
      select count(*)
      from (
        select
        from judged as s
        where p_source is null or s.source = p_source
        group by s.citing_document_id
      ) as d
    ),
    'references_found', count(*),
    'matched', count(*) filter (where j.fate = 'matched'),
    'unmatched', count(*) filter (where j.fate = 'unmatched'),
    'ambiguous', count(*) filter (where j.fate = 'ambiguous'),
    'self_citations_skipped', count(*) filter (where j.fate = 'self_citation'),
    -- In a dry run what would be written and removed.
    'rows_written', (select count(*) from due),
    'rows_removed', (select count(*) from surplus),
    'dry_run', p_dry_run
  )
  into v_report
  from judged as j
  where p_source is null or j.source = p_source;
  return v_report;
end
$$;

comment on function citeledger_private.reconcile_edges(uuid, uuid[], text[], text, boolean) is
  'Makes the edges of the documents p_document_ids, and those to whoever holds one of p_keys, '
  'agree with the lists; of the whole firm when both are null. Returns the report of '
  'resolve_references, its counts limited to the lists of p_source where that is given. The caller '
  'holds the lock of the graph. An edge''s DOI is as edge_doi gives it.';

revoke all on function citeledger_private.reconcile_edges(uuid, uuid[], text[], text, boolean)
  from public;

reset role;

-- graph/edge_doi_check

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- A no-op but where an upgrade was interrupted and is run again; then it needs no notice.
set local client_min_messages = warning;
alter table citeledger.document_citations
  drop constraint if exists document_citations_cited_doi_is_short;

-- Not yet valid for the edges that are there, so that the table is locked for a moment only.
alter table citeledger.document_citations
  add constraint document_citations_cited_doi_is_short check (
    coalesce(
      octet_length(cited_doi) <= octet_length(citeledger.normalize_doi(cited_doi)) + 64, false
    )
  ) not valid;

comment on constraint document_citations_cited_doi_is_short on citeledger.document_citations is
  'At most 64 bytes longer than the key of the DOI: what surrounds a DOI is no content.';

reset role;

-- graph/edge_doi_valid

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- Firm by firm, for row security holds for the owner too. A firm's ingests wait while its edges are
-- mended; nothing else does.
do $$
declare
  v_firm_id uuid;
  v_outer text;
begin
  for v_firm_id in select f.id from citeledger.firm_ids() as f (id) order by f.id loop
    v_outer := citeledger_private.enter_firm(v_firm_id);
    perform citeledger_private.lock_graph(v_firm_id);
    update citeledger.document_citations as e
    set cited_doi = citeledger_private.edge_doi(e.cited_doi)
    where e.firm_id = v_firm_id
      and octet_length(e.cited_doi) > 64
      and e.cited_doi <> citeledger_private.edge_doi(e.cited_doi);
    perform citeledger_private.leave_firm(v_outer);
  end loop;
end
$$;

alter table citeledger.document_citations
  validate constraint document_citations_cited_doi_is_short;

reset role;

-- ops/metadata_only_violations

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.metadata_only_violations()
returns table (
  table_name text,
  column_name text,
  reason text
)
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
  select found.table_name, found.column_name, found.reason
  from (
    select
      c.relname::text as table_name,
      a.attname::text as column_name,
      case
        when a.attname ~ '(content|text|quote|passage|excerpt|snippet|summary|abstract)'
          or a.attname ~ '(body|title|subject|payload|note|comment|reasoning|message)$'
          then 'its name speaks of content'
        when a.atttypid in (
            'uuid'::regtype, 'boolean'::regtype, 'smallint'::regtype, 'integer'::regtype,
            'bigint'::regtype, 'double precision'::regtype, 'numeric'::regtype,
            'date'::regtype, 'timestamptz'::regtype
          )
          then null
        when a.atttypid <> 'text'::regtype
          then format('its type %s could hold content', format_type(a.atttypid, a.atttypmod))
        when not exists (
            select
            from pg_constraint as k
            where k.conrelid = c.oid
              and k.contype = 'c'
              and k.convalidated
              and k.conkey = array[a.attnum]
              -- A label, a name, a SQLSTATE or a DOI, by exactly this check.
              and pg_get_expr(k.conbin, k.conrelid) in (
                format('(%I ~ %L::text)', a.attname, '^[a-z][a-z0-9_]{0,31}$'),
                format('(%I ~ %L::text)', a.attname, '^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$'),
                format('(%I ~ %L::text)', a.attname, '^[0-9A-Z]{5}$'),
                format(
                  'COALESCE((octet_length(%1$I) <= '
                  '(octet_length(citeledger.normalize_doi(%1$I)) + 64)), false)',
                  a.attname
                )
              )
          )
          then 'it is text, and no check makes it a label, a name, a SQLSTATE or a DOI'
      end as reason
    from pg_class as c
    join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where c.relnamespace = 'citeledger'::regnamespace
      and c.relname in (
        'citation_ledger_entry', 'citation_ledger_entry_revision', 'finalize_failure',
        'work_product_fiduciary_gate', 'document_citations'
      )
  ) as found
  where found.reason is not null
  order by found.table_name, found.column_name;
end
$$;

comment on function citeledger.metadata_only_violations() is
  'The columns of the metadata-only tables (ledger, revisions, gate, finalize failures, edges) '
  'that could hold content, with the reason: a name that speaks of content, a type that could hold '
  'it, or text that no validated CHECK makes a label, a name, a SQLSTATE or a DOI. No row on a '
  'healthy database. Source: the system catalogs. For citeledger_reader.';

revoke all on function citeledger.metadata_only_violations() from public;
grant execute on function citeledger.metadata_only_violations() to citeledger_reader;
grant execute on function citeledger.metadata_only_violations() to citeledger_app;
grant execute on function citeledger.metadata_only_violations() to citeledger_admin;

reset role;

-- tenancy/current_firm_id

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.current_firm_id()
returns uuid
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_setting text := current_setting('citeledger.firm_id', true);
  v_claims text;
begin
  -- SET LOCAL leaves '' behind when its transaction ends, so '' means "not set", like null.
  if v_setting is null or v_setting = '' then
    v_claims := current_setting('request.jwt.claims', true);
    if v_claims is null or v_claims = '' then
      return null;
    end if;
    v_setting := v_claims::jsonb ->> 'firm_id';
  end if;
  -- The form is looked at before the cast: an exception block would rule out parallel plans.
  -- Dashes in their places, nowhere else, and the rest digits: four times as fast as a pattern that
  -- counts, or as translate, and row security calls this for every table of every statement.
  if v_setting collate "C" like '________-____-____-____-____________'
    and v_setting collate "C" not like '%-%-%-%-%-%'
    and v_setting collate "C" !~ '[^0-9a-fA-F-]'
  then
    return v_setting::uuid;
  end if;
  return null;
end
$$;

comment on function citeledger.current_firm_id() is
  'The firm (tenant) of the current context, or null when there is none. Source: the setting '
  'citeledger.firm_id (see set_context); only when that is unset or empty, firm_id of the JSON '
  'object in request.jwt.claims. A malformed uuid is no context, and a malformed setting does not '
  'fall back to the claims. Errors: 22P02 when the claims are consulted and are no JSON.';

revoke all on function citeledger.current_firm_id() from public;
grant execute on function citeledger.current_firm_id() to citeledger_app;
grant execute on function citeledger.current_firm_id() to citeledger_admin;

reset role;

-- tenancy/current_user_id

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.current_user_id()
returns uuid
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm text := current_setting('citeledger.firm_id', true);
  v_setting text;
  v_claims text;
begin
  -- Which of the two sources holds is decided by the firm alone, so that they are never mixed.
  if v_firm is not null and v_firm <> '' then
    v_setting := current_setting('citeledger.user_id', true);
  else
    v_claims := current_setting('request.jwt.claims', true);
    if v_claims is null or v_claims = '' then
      return null;
    end if;
    v_setting := v_claims::jsonb ->> 'sub';
  end if;
  -- Dashes in their places, nowhere else, and the rest digits, as in current_firm_id.
  if v_setting collate "C" like '________-____-____-____-____________'
    and v_setting collate "C" not like '%-%-%-%-%-%'
    and v_setting collate "C" !~ '[^0-9a-fA-F-]'
  then
    return v_setting::uuid;
  end if;
  return null;
end
$$;

comment on function citeledger.current_user_id() is
  'The person of the current context, or null when there is none; decides which walled matters are '
  'visible. Source: the setting citeledger.user_id when citeledger.firm_id is set, else sub of the '
  'JSON object in request.jwt.claims; never a mix of the two. A malformed uuid is nobody. Errors: '
  '22P02 when the claims are consulted and are no JSON.';

revoke all on function citeledger.current_user_id() from public;
grant execute on function citeledger.current_user_id() to citeledger_reader;
grant execute on function citeledger.current_user_id() to citeledger_app;
grant execute on function citeledger.current_user_id() to citeledger_admin;

reset role;

-- tenancy/has_permission

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.has_permission(
  p_permission text
)
returns boolean
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm text := current_setting('citeledger.firm_id', true);
  v_setting text;
  v_claims jsonb;
begin
  -- Without a firm there is nothing that a permission could be for.
  if p_permission is null or citeledger.current_firm_id() is null then
    return false;
  end if;

  if v_firm is not null and v_firm <> '' then
    v_setting := current_setting('citeledger.permissions', true);
    -- The one permission that most contexts hold, if its name is one: no list to take apart.
    if v_setting = '{' || p_permission || '}' and p_permission collate "C" ~ '^[A-Za-z0-9._:-]+$'
    then
      return true;
    end if;
    -- Only the plain form of a text[] literal counts; anything else grants nothing. Splitting it by
    -- hand cannot fail, a cast could.
    if v_setting is null
      or v_setting !~ (
        '^[{](?:[A-Za-z0-9._:-]+|"[A-Za-z0-9._:-]+")'
        || '(?:,(?:[A-Za-z0-9._:-]+|"[A-Za-z0-9._:-]+"))*[}]$'
      )
    then
      return false;
    end if;
    return p_permission = any(
      string_to_array(replace(btrim(v_setting, '{}'), '"', ''), ',')
    );
  end if;

  v_claims := current_setting('request.jwt.claims', true)::jsonb -> 'permissions';
  if jsonb_typeof(v_claims) is distinct from 'array' then
    return false;
  end if;
  return v_claims ? p_permission;
end
$$;

comment on function citeledger.has_permission(text) is
  'Whether the current context holds the permission p_permission, compared exactly. False without '
  'a firm, for null, and for settings or claims that are malformed. Source: the setting '
  'citeledger.permissions (a text[] literal) when citeledger.firm_id is set, else the array '
  'permissions in request.jwt.claims. Errors: 22P02 when the claims are consulted and are no JSON.';

revoke all on function citeledger.has_permission(text) from public;
grant execute on function citeledger.has_permission(text) to citeledger_reader;
grant execute on function citeledger.has_permission(text) to citeledger_app;
grant execute on function citeledger.has_permission(text) to citeledger_admin;

reset role;

-- tenancy/set_context

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

reset role;

-- tenancy/walls

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

reset role;

-- gate/verification_tier

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- In place of a call the planner puts what is below, for every entry of a ledger: that takes a body
-- that is bound when the function is made, and no setting of its own.
create or replace function citeledger.verification_tier(
  p_status text
)
returns text
language sql
immutable
parallel safe
security invoker
return case p_status collate "C"
  when 'exact_match' then 'pass'
  when 'tolerant_match' then 'pass'
  when 'paraphrase_judge' then 'supported'
  when 'ensemble_strict' then 'supported'
  when 'ensemble_majority' then 'supported'
  when 'unverified' then 'fail'
  when 'failed' then 'fail'
  when 'provenance' then 'provenance'
end;

comment on function citeledger.verification_tier(text) is
  'The tier of a verification status: pass (exact_match, tolerant_match), supported '
  '(paraphrase_judge, ensemble_strict, ensemble_majority), fail (unverified, failed) or '
  'provenance. Null for any other status, compared exactly: no case is folded and no blank '
  'trimmed.';

revoke all on function citeledger.verification_tier(text) from public;
grant execute on function citeledger.verification_tier(text) to citeledger_reader;
grant execute on function citeledger.verification_tier(text) to citeledger_app;
grant execute on function citeledger.verification_tier(text) to citeledger_admin;

reset role;

-- gate/lock_turns

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.lock_turns(
  p_firm_id uuid,
  p_message_ids uuid[]
)
returns uuid[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
-- An array of one looks cheaper than the generic plan's ten, so each call would be planned anew.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_followers uuid[];
begin
  -- NO KEY UPDATE lets foreign keys to the message through: two sessions that both inserted sources
  -- and both finalize would deadlock under FOR UPDATE. In id order, whoever asks.
  perform
  from citeledger.messages as m
  where m.firm_id = p_firm_id and m.id = any(p_message_ids)
  order by m.id
  for no key update;

  begin
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
      perform citeledger_private.expose_hidden_gates(p_firm_id, p_message_ids);
    end if;

    -- A new statement, so that it sees what was committed while this one waited for the locks.
    v_followers := array(
      select m.id
      from citeledger.messages as m
      where m.firm_id = p_firm_id
        and m.id = any(p_message_ids)
        and m.role = 'assistant'
        and (
          m.finalized_at is not null
          or exists (
            select
            from citeledger.work_product_fiduciary_gate as g
            where g.firm_id = p_firm_id and g.message_id = m.id
            -- Or the verdicts of the whole firm might be read once rather than one by its key.
            offset 0
          )
        )
      order by m.id
    );
  exception
    -- A verdict that nobody can read breaks no turn: those that should have one go on to fail in
    -- the guard of their step, where it is logged. One that cannot be read only now would be left
    -- stale: then the statement that changes a source fails.
    when undefined_table or undefined_column then
      v_followers := array(
        select m.id
        from citeledger.messages as m
        where m.firm_id = p_firm_id
          and m.id = any(p_message_ids)
          and m.role = 'assistant'
          and m.finalized_at is not null
        order by m.id
      );
  end;
  return v_followers;
end
$$;

comment on function citeledger_private.lock_turns(uuid, uuid[]) is
  'Locks the messages FOR NO KEY UPDATE in id order until the transaction ends: the one lock that '
  'every writer of a turn takes before it reads the turn''s state. Returns, in id order, those '
  'whose verdict must follow their sources: the assistant''s messages that are finalized or have a '
  'verdict.';

revoke all on function citeledger_private.lock_turns(uuid, uuid[]) from public;

reset role;

-- gate/withdraw_gates

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.log_failure(
  p_firm_id uuid,
  p_message_ids uuid[],
  p_stage text,
  p_sqlstate text
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  -- A log that cannot be written must not break the turn: the warning still says it.
  begin
    delete from citeledger.finalize_failure as f
    where f.firm_id = p_firm_id and f.message_id = any(p_message_ids) and f.stage = p_stage;
    insert into citeledger.finalize_failure (firm_id, message_id, stage, sqlstate)
    select p_firm_id, m.id, p_stage, p_sqlstate
    from unnest(p_message_ids) as m (id)
    on conflict do nothing;
  exception
    -- Not where the session itself shut the log: then nothing of what it did may stay unsaid.
    when serialization_failure or read_only_sql_transaction then
      raise;
    when others then
      if current_setting('row_security') = 'off' then
        raise;
      end if;
      raise warning using
        message = 'a failure of finalize could not be logged',
        detail = format('Writing the log failed with SQLSTATE %s.', sqlstate),
        hint = 'See whether citeledger.finalize_failure is whole.';
  end;
  raise warning using
    message = format('a turn could not be finalized: %s failed', p_stage),
    detail = format(
      'Stage %s failed with SQLSTATE %s for %s turn(s).',
      p_stage, p_sqlstate, cardinality(p_message_ids)
    ),
    hint = 'See citeledger.finalize_failure; citeledger.finalize_pending tries again.';
end
$$;

create or replace function citeledger_private.withdraw_gates(
  p_firm_id uuid,
  p_message_ids uuid[],
  p_stage text,
  p_sqlstate text
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stale boolean := false;
begin
  begin
    if p_stage = 'isolation' then
      perform citeledger_private.expose_hidden_gates(p_firm_id, p_message_ids);
    end if;
    delete from citeledger.work_product_fiduciary_gate as g
    where g.firm_id = p_firm_id and g.message_id = any(p_message_ids);
  exception
    when serialization_failure then
      raise;
    when others then
      perform citeledger_private.log_failure(p_firm_id, p_message_ids, 'withdraw', sqlstate);
      -- No verdict can be read from a broken table. But one that can be read, and is stale, must
      -- not be committed: then the turn fails rather than the promise. It fails too where that
      -- cannot be told for now, as with no memory left.
      begin
        v_stale := exists (
          select
          from citeledger.work_product_fiduciary_gate as g
          where g.firm_id = p_firm_id and g.message_id = any(p_message_ids)
        );
      exception
        -- Or locked: then whoever changed a source has read it before, or waited in vain.
        when undefined_table or undefined_column or insufficient_privilege or lock_not_available
        then
          v_stale := false;
      end;
      if v_stale then
        raise;
      end if;
  end;
  perform citeledger_private.log_failure(p_firm_id, p_message_ids, p_stage, p_sqlstate);
end
$$;

comment on function citeledger_private.log_failure(uuid, uuid[], text, text) is
  'Records in finalize_failure that p_stage failed with p_sqlstate for the given turns, in place '
  'of an earlier failure of that stage, and warns. Raises 40001 alone, and what the session itself '
  'brought about: 25006, and anything under row_security = off.';
comment on function citeledger_private.withdraw_gates(uuid, uuid[], text, text) is
  'Removes the verdicts of turns whose stage p_stage failed with p_sqlstate, logs and warns: no '
  'ledger means no verdict, never an old one. Raises only when an old verdict can be read but not '
  'removed, or when that cannot be told for now.';

revoke all on function citeledger_private.log_failure(uuid, uuid[], text, text) from public;
revoke all on function citeledger_private.withdraw_gates(uuid, uuid[], text, text) from public;

reset role;

-- gate/recount

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.recount(
  p_firm_id uuid,
  p_message_ids uuid[]
)
returns table (
  message_id uuid,
  chat_id uuid,
  project_id uuid,
  pass_count integer,
  supported_count integer,
  fail_count integer,
  unrecognized_count integer,
  confidence double precision,
  unrecognized_statuses text[]
)
language plpgsql
stable
parallel safe
security invoker
rows 1
set search_path = pg_catalog, pg_temp
-- An array of one looks cheaper than the generic plan's ten, so each call would be planned anew.
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  select
    m.id,
    m.chat_id,
    c.project_id,
    counted.pass_count,
    counted.supported_count,
    -- A citation without an entry resolves to nothing. An entry's citation is of the same turn and
    -- has no other entry, so the difference of the counts is exactly those.
    (counted.fail_count
      + (
        select count(*)
        from citeledger.message_citations as s
        where s.firm_id = p_firm_id and s.message_id = m.id
      )
      + (
        select count(*)
        from citeledger.message_caselaw_citations as s
        where s.firm_id = p_firm_id and s.message_id = m.id
      )
      - counted.citation_entries)::integer,
    counted.unrecognized_count,
    counted.confidence,
    counted.unrecognized_statuses
  -- Laterally, an index look-up for each turn, whatever the planner knows of the tables.
  from unnest(p_message_ids) as t (id)
  cross join lateral (
    select m.id, m.chat_id
    from citeledger.messages as m
    where m.firm_id = p_firm_id and m.id = t.id and m.role = 'assistant'
    offset 0
  ) as m
  cross join lateral (
    select c.project_id
    from citeledger.chats as c
    where c.firm_id = p_firm_id and c.id = m.chat_id
    offset 0
  ) as c
  cross join lateral (
    select
      coalesce(sum(v.entries) filter (where v.tier = 'pass'), 0)::integer as pass_count,
      coalesce(sum(v.entries) filter (where v.tier = 'supported'), 0)::integer as supported_count,
      coalesce(sum(v.entries) filter (where v.tier = 'fail'), 0)::integer as fail_count,
      coalesce(sum(v.entries) filter (where v.tier is null), 0)::integer as unrecognized_count,
      -- A tool source is no citation, and its entry alone is provenance.
      coalesce(sum(v.entries) filter (where v.tier is distinct from 'provenance'), 0)
        as citation_entries,
      -- As numeric: a mean over double precision depends on the order of the rows.
      (sum(v.confidence::numeric * v.entries) filter (where v.tier in ('pass', 'supported', 'fail'))
        / nullif(
          sum(v.entries) filter (
            where v.tier in ('pass', 'supported', 'fail') and v.confidence is not null
          ),
          0
        )
      )::double precision as confidence,
      array_agg(v.verification_status) filter (where v.tier is null) as unrecognized_statuses
    from (
      -- A turn has few different confidences: each becomes a numeric once.
      select
        e.verification_status,
        citeledger.verification_tier(e.verification_status) as tier,
        e.confidence,
        count(*)::integer as entries
      from citeledger.citation_ledger_entry as e
      where e.firm_id = p_firm_id and e.message_id = m.id
      group by e.verification_status, e.confidence
    ) as v
  ) as counted;
end
$$;

comment on function citeledger_private.recount(uuid, uuid[]) is
  'What the ledger of the given turns says now: one row for each message that is the assistant''s. '
  'fail_count includes the citations that have no entry. unrecognized_statuses: those '
  'that verification_tier does not know, one of them perhaps more than once, or null.';

revoke all on function citeledger_private.recount(uuid, uuid[]) from public;

reset role;

-- gate/gate_status

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- In place of a call the planner puts what is below, for every verdict: that takes a body that is
-- bound when the function is made, and no setting of its own.
create or replace function citeledger_private.gate_status(
  p_supported_count integer,
  p_fail_count integer,
  p_unrecognized_count integer
)
returns text
language sql
immutable
parallel safe
security invoker
return case
  when p_fail_count > 0 or p_unrecognized_count > 0 then 'flagged'
  when p_supported_count > 0 then 'supported_only'
  else 'fiduciary_grade'
end;

comment on function citeledger_private.gate_status(integer, integer, integer) is
  'The verdict of a turn with so many citations that are supported, that fail, and whose status is '
  'not known. A CHECK of work_product_fiduciary_gate holds the same rule against every row.';

revoke all on function citeledger_private.gate_status(integer, integer, integer) from public;

reset role;

-- gate/record_gates

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.record_gates(
  p_firm_id uuid,
  p_message_ids uuid[]
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_unrecognized text;
begin
  -- A verdict that is there is updated, not upserted: the lock that an upsert takes in one guard
  -- would be carried from version to version by the next, each time in a new multixact. Found by
  -- its key and not by the place it was seen at: a matter that is deleted meanwhile moves it, and
  -- an update that waited for that must fail or be made, but not pass it by. Nobody else adds one
  -- to a turn that the caller holds; should a hidden one be there, the key raises, and the turn has
  -- none. The firm through a sub-select: of one that the statistics do not know a row is expected,
  -- and then any index would do.
  with counted as materialized (
    select
      c.*,
      citeledger_private.gate_status(
        c.supported_count, c.fail_count, c.unrecognized_count
      ) as gate_status,
      c.pass_count + c.supported_count + c.fail_count as total_assertions
    from citeledger_private.recount(p_firm_id, p_message_ids) as c
  ),
  changed as (
    update citeledger.work_product_fiduciary_gate as g
    set
      project_id = c.project_id,
      gate_status = c.gate_status,
      pass_count = c.pass_count,
      supported_count = c.supported_count,
      fail_count = c.fail_count,
      total_assertions = c.total_assertions,
      unrecognized_count = c.unrecognized_count,
      confidence = c.confidence,
      computed_at = clock_timestamp()
    from counted as c
    where g.firm_id = (select p_firm_id)
      and g.message_id = c.message_id
      and (
        g.project_id, g.gate_status, g.pass_count, g.supported_count, g.fail_count,
        g.total_assertions, g.unrecognized_count, g.confidence
      ) is distinct from (
        c.project_id, c.gate_status, c.pass_count, c.supported_count, c.fail_count,
        c.total_assertions, c.unrecognized_count, c.confidence
      )
    returning g.message_id
  ),
  recorded as (
    insert into citeledger.work_product_fiduciary_gate (
      firm_id, message_id, chat_id, project_id,
      gate_status,
      pass_count, supported_count, fail_count, total_assertions, unrecognized_count,
      confidence
    )
    select
      p_firm_id, c.message_id, c.chat_id, c.project_id,
      c.gate_status,
      c.pass_count, c.supported_count, c.fail_count, c.total_assertions, c.unrecognized_count,
      c.confidence
    from counted as c
    -- What was just updated is not looked up again: in a transaction that brings a turn many late
    -- sources each look-up walks past as many versions.
    where case
      when c.message_id in (select u.message_id from changed as u) then false
      else not exists (
        select
        from citeledger.work_product_fiduciary_gate as g
        where g.firm_id = (select p_firm_id) and g.message_id = c.message_id
        -- Or the verdicts of the whole firm might be read once rather than one by its key.
        offset 0
      )
    end
  )
  select string_agg(distinct s.status, ', ')
  into v_unrecognized
  from counted as c
  cross join unnest(c.unrecognized_statuses) as s (status);

  if v_unrecognized is not null then
    perform citeledger_private.warn_of_unrecognized(v_unrecognized);
  end if;
end
$$;

comment on function citeledger_private.record_gates(uuid, uuid[]) is
  'Computes and stores the verdict of each of the given turns, in one statement; an unchanged '
  'verdict is not written. Warns once, naming the distinct unrecognised statuses. The caller holds '
  'the lock of every turn.';

revoke all on function citeledger_private.record_gates(uuid, uuid[]) from public;

reset role;

-- ledger/entry_id

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- In place of a call the planner puts what is below, for every entry of a ledger: that takes a body
-- that is bound when the function is made, and no setting of its own.
create or replace function citeledger_private.entry_id(
  p_message_id uuid,
  p_random uuid
)
returns uuid
language sql
immutable
parallel safe
security invoker
return (left(p_message_id::text, 14) || substr(p_random::text, 15))::uuid;

comment on function citeledger_private.entry_id(uuid, uuid) is
  'The id of an entry of the turn p_message_id: 48 bits of the turn''s, then the rest of p_random, '
  'which is a random uuid made for it. So the entries of a turn lie side by side in the primary '
  'key: in a large ledger a turn reads, changes and logs one page of it, not one for each entry.';

revoke all on function citeledger_private.entry_id(uuid, uuid) from public;

reset role;

-- ledger/assemble_set

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.assemble_set(
  p_firm_id uuid,
  p_message_ids uuid[],
  p_source_ids uuid[] default null
)
returns integer
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_due integer;
  v_written integer;
  v_stale_ids uuid[];
  v_kinds text[];
  v_statuses text[];
  v_confidences double precision[];
  v_providers text[];
  v_retrieved timestamptz[];
begin
  with due as materialized (
    select * from citeledger_private.entry_values(p_firm_id, p_message_ids, p_source_ids)
  ),
  written as (
    insert into citeledger.citation_ledger_entry (
      firm_id, id, project_id, chat_id, message_id,
      source_kind, message_citation_id, message_caselaw_citation_id, message_tool_source_id,
      verification_status, confidence, provider, retrieved_at
    )
    select
      p_firm_id, citeledger_private.entry_id(d.message_id, gen_random_uuid()),
      d.project_id, d.chat_id, d.message_id,
      d.source_kind, d.message_citation_id, d.message_caselaw_citation_id, d.message_tool_source_id,
      d.verification_status, d.confidence, d.provider, d.retrieved_at
    from due as d
    on conflict do nothing
    returning id
  )
  select (select count(*) from due)::integer, (select count(*) from written)::integer
  into v_due, v_written;

  -- All of them are new: nothing can be out of date.
  if v_written = v_due then
    return v_written;
  end if;

  -- What no longer mirrors its source. One indexed equality for each source, whatever the planner
  -- believes of tables without statistics: "offset 0" keeps it from turning this around. The firm
  -- through a sub-select: of one that the statistics do not know a row is expected, and then any
  -- index would do. The replaced values are kept by the ledger's own trigger.
  select
    array_agg(e.id),
    array_agg(d.source_kind),
    array_agg(d.verification_status),
    array_agg(d.confidence),
    array_agg(d.provider),
    array_agg(d.retrieved_at)
  into v_stale_ids, v_kinds, v_statuses, v_confidences, v_providers, v_retrieved
  from citeledger_private.entry_values(p_firm_id, p_message_ids, p_source_ids) as d
  cross join lateral (
    select e.*
    from citeledger.citation_ledger_entry as e
    where e.firm_id = (select p_firm_id) and e.message_citation_id = d.message_citation_id
    union all
    select e.*
    from citeledger.citation_ledger_entry as e
    where e.firm_id = (select p_firm_id)
      and e.message_caselaw_citation_id = d.message_caselaw_citation_id
    union all
    select e.*
    from citeledger.citation_ledger_entry as e
    where e.firm_id = (select p_firm_id) and e.message_tool_source_id = d.message_tool_source_id
    offset 0
  ) as e
  where (e.source_kind, e.verification_status, e.confidence, e.provider, e.retrieved_at)
    is distinct from
    (d.source_kind, d.verification_status, d.confidence, d.provider, d.retrieved_at);

  if v_stale_ids is not null then
    update citeledger.citation_ledger_entry as e
    set
      source_kind = d.source_kind,
      verification_status = d.verification_status,
      confidence = d.confidence,
      provider = d.provider,
      retrieved_at = d.retrieved_at
    -- Through sub-selects: the length of an array would else make the plan look worth making anew.
    from unnest(
      (select v_stale_ids),
      (select v_kinds),
      (select v_statuses),
      (select v_confidences),
      (select v_providers),
      (select v_retrieved)
    ) as d (id, source_kind, verification_status, confidence, provider, retrieved_at)
    where e.firm_id = (select p_firm_id) and e.id = d.id;
  end if;

  return v_written;
end
$$;

comment on function citeledger_private.assemble_set(uuid, uuid[], uuid[]) is
  'Writes the missing ledger entries of the given turns and refreshes those that no longer mirror '
  'their source, all at once; returns how many are new. p_source_ids limits it to those sources; '
  'null means all of them. The caller holds the lock of every turn.';

revoke all on function citeledger_private.assemble_set(uuid, uuid[], uuid[]) from public;

reset role;

-- gate/settle_turn

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.settle_turn(
  p_firm_id uuid,
  p_message_id uuid
)
returns table (
  entries bigint,
  gate jsonb
)
language plpgsql
volatile
parallel unsafe
security invoker
rows 1
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_unrecognized integer;
begin
  -- The caller holds the message, so nobody else writes what was not there: no conflict to look for
  -- in every unique key. What is counted is what was written, so nothing is read again; and where
  -- every source has just got its entry, no citation is without one.
  with turn as materialized (
    select m.chat_id, c.project_id
    from citeledger.messages as m
    cross join lateral (
      select c.project_id
      from citeledger.chats as c
      where c.firm_id = p_firm_id and c.id = m.chat_id
      offset 0
    ) as c
    where m.firm_id = p_firm_id
      and m.id = p_message_id
      and m.role = 'assistant'
      and not exists (
        select
        from citeledger.citation_ledger_entry as e
        where e.firm_id = p_firm_id and e.message_id = p_message_id
      )
      and not exists (
        select
        from citeledger.finalize_failure as f
        where f.firm_id = p_firm_id and f.message_id = p_message_id
      )
  ),
  -- What entry_values says, word for word: called, it would cost a fifth of all this.
  due as materialized (
    select
      'kb_document' as source_kind,
      s.id as message_citation_id,
      null::uuid as message_caselaw_citation_id,
      null::uuid as message_tool_source_id,
      case when s.verified then s.verification_method else 'unverified' end
        as verification_status,
      case when s.verified then s.verification_confidence::double precision end as confidence,
      null::text as provider,
      null::timestamptz as retrieved_at
    from citeledger.message_citations as s
    where s.firm_id = p_firm_id and s.message_id = p_message_id
    union all
    select
      'caselaw', null, s.id, null,
      case when s.verified then s.verification_method else 'unverified' end,
      case when s.verified then s.verification_confidence end,
      'courtlistener',
      s.created_at
    from citeledger.message_caselaw_citations as s
    where s.firm_id = p_firm_id and s.message_id = p_message_id
    union all
    select s.source_kind, null, null, s.id, 'provenance', null, s.provider, s.created_at
    from citeledger.message_tool_sources as s
    where s.firm_id = p_firm_id and s.message_id = p_message_id
  ),
  written as (
    insert into citeledger.citation_ledger_entry (
      firm_id, id, project_id, chat_id, message_id,
      source_kind, message_citation_id, message_caselaw_citation_id, message_tool_source_id,
      verification_status, confidence, provider, retrieved_at
    )
    select
      p_firm_id, citeledger_private.entry_id(p_message_id, gen_random_uuid()),
      t.project_id, t.chat_id, p_message_id,
      d.source_kind, d.message_citation_id, d.message_caselaw_citation_id, d.message_tool_source_id,
      d.verification_status, d.confidence, d.provider, d.retrieved_at
    from turn as t
    cross join due as d
    returning verification_status, confidence
  ),
  counted as (
    select
      count(*) as entries,
      count(*) filter (where w.tier = 'pass')::integer as pass_count,
      count(*) filter (where w.tier = 'supported')::integer as supported_count,
      count(*) filter (where w.tier = 'fail')::integer as fail_count,
      count(*) filter (where w.tier is null)::integer as unrecognized_count,
      -- As numeric: a mean over double precision depends on the order of the rows.
      avg(w.confidence::numeric) filter (where w.tier in ('pass', 'supported', 'fail'))
        ::double precision as confidence
    from (
      select citeledger.verification_tier(w.verification_status) as tier, w.confidence
      from written as w
      offset 0
    ) as w
  ),
  recorded as (
    insert into citeledger.work_product_fiduciary_gate as g (
      firm_id, message_id, chat_id, project_id,
      gate_status,
      pass_count, supported_count, fail_count, total_assertions, unrecognized_count,
      confidence
    )
    select
      p_firm_id, p_message_id, t.chat_id, t.project_id,
      citeledger_private.gate_status(c.supported_count, c.fail_count, c.unrecognized_count),
      c.pass_count, c.supported_count, c.fail_count,
      c.pass_count + c.supported_count + c.fail_count,
      c.unrecognized_count,
      c.confidence
    -- A turn without sources has a verdict too. One whose entries were kept back, as a trigger of
    -- the installation may, has none here: others count what is missing.
    from turn as t
    join counted as c on c.entries = (select count(*) from due)
    -- A verdict that was there is for others to count again.
    on conflict (firm_id, message_id) do nothing
    returning g.unrecognized_count, to_jsonb(g) - 'firm_id' as gate
  )
  select
    (select c.entries from counted as c),
    r.gate,
    r.unrecognized_count
  into entries, gate, v_unrecognized
  from (select) as one
  left join recorded as r on true;

  if v_unrecognized > 0 then
    perform citeledger_private.warn_of_unrecognized(
      (
        select string_agg(distinct e.verification_status, ', ')
        from citeledger.citation_ledger_entry as e
        where e.firm_id = p_firm_id
          and e.message_id = p_message_id
          and citeledger.verification_tier(e.verification_status) is null
      )
    );
  end if;
  return next;
end
$$;

comment on function citeledger_private.settle_turn(uuid, uuid) is
  'Assembles the ledger and records the verdict of a turn of the assistant that has neither an '
  'entry nor a verdict nor a logged failure, in one statement; what it writes is what '
  'assemble_set and record_gates would. One row: how many entries it wrote, and the row of the '
  'verdict less firm_id, or null where the turn had something already, or an entry was kept back '
  'by a trigger. The caller holds the lock of the turn, acts for p_firm_id, and is under read '
  'committed: above it others may have written what the snapshot does not show. Raises the WARNING '
  'of warn_of_unrecognized. Errors: those of the constraints.';

revoke all on function citeledger_private.settle_turn(uuid, uuid) from public;

reset role;

-- gate/settle_new

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- It returns something else than before. Private, and called in a guard, so that what runs between
-- this and the new settle goes step by step.
-- squawk-ignore ban-drop-function
drop function citeledger_private.settle_new(uuid, uuid[]);

create function citeledger_private.settle_new(
  p_firm_id uuid,
  p_message_ids uuid[]
)
returns uuid[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_settled uuid[];
  v_unrecognized bigint;
begin
  -- Array and firm through sub-selects, here and below: the length of the one would else make each
  -- plan look worth making anew, and of another that the statistics do not know a row is expected,
  -- so that any index would do. The caller holds the messages, so nobody else writes what was not
  -- there: no conflict to look for in every unique key. What is counted is what was written, so
  -- nothing is read again; and where every source has just got its entry, no citation is without
  -- one.
  with turn as materialized (
    select m.id, m.chat_id, c.project_id
    from unnest((select p_message_ids)) as t (id)
    cross join lateral (
      select m.id, m.chat_id
      from citeledger.messages as m
      where m.firm_id = (select p_firm_id)
        and m.id = t.id
        and m.role = 'assistant'
        and not exists (
          select
          from citeledger.citation_ledger_entry as e
          where e.firm_id = (select p_firm_id) and e.message_id = t.id
        )
        and not exists (
          select
          from citeledger.finalize_failure as f
          where f.firm_id = (select p_firm_id) and f.message_id = t.id
        )
      offset 0
    ) as m
    cross join lateral (
      select c.project_id
      from citeledger.chats as c
      where c.firm_id = (select p_firm_id) and c.id = m.chat_id
      offset 0
    ) as c
  ),
  due as materialized (
    select *
    from citeledger_private.entry_values(p_firm_id, array(select t.id from turn as t), null)
  ),
  written as (
    insert into citeledger.citation_ledger_entry (
      firm_id, id, project_id, chat_id, message_id,
      source_kind, message_citation_id, message_caselaw_citation_id, message_tool_source_id,
      verification_status, confidence, provider, retrieved_at
    )
    select
      p_firm_id, citeledger_private.entry_id(d.message_id, gen_random_uuid()),
      d.project_id, d.chat_id, d.message_id,
      d.source_kind, d.message_citation_id, d.message_caselaw_citation_id, d.message_tool_source_id,
      d.verification_status, d.confidence, d.provider, d.retrieved_at
    from due as d
    returning message_id, verification_status, confidence
  ),
  counted as (
    select
      w.message_id,
      (array_agg(w.chat_id) filter (where w.chat_id is not null))[1] as chat_id,
      (array_agg(w.project_id) filter (where w.chat_id is not null))[1] as project_id,
      count(*) filter (where w.tier = 'pass')::integer as pass_count,
      count(*) filter (where w.tier = 'supported')::integer as supported_count,
      count(*) filter (where w.tier = 'fail')::integer as fail_count,
      count(*) filter (where w.tier is null)::integer as unrecognized_count,
      -- As numeric: a mean over double precision depends on the order of the rows.
      avg(w.confidence::numeric) filter (where w.tier in ('pass', 'supported', 'fail'))
        ::double precision as confidence
    from (
      select
        w.message_id,
        null::uuid as chat_id,
        null::uuid as project_id,
        citeledger.verification_tier(w.verification_status) as tier,
        w.confidence
      from written as w
      union all
      -- A turn without sources has a verdict too. What is no assertion counts in nothing. Where a
      -- turn belongs its message says; a trigger of the installation may have changed an entry.
      select t.id, t.chat_id, t.project_id, 'provenance', null
      from turn as t
      offset 0
    ) as w
    group by w.message_id
  ),
  recorded as (
    insert into citeledger.work_product_fiduciary_gate as g (
      firm_id, message_id, chat_id, project_id,
      gate_status,
      pass_count, supported_count, fail_count, total_assertions, unrecognized_count,
      confidence
    )
    select
      p_firm_id, c.message_id, c.chat_id, c.project_id,
      citeledger_private.gate_status(c.supported_count, c.fail_count, c.unrecognized_count),
      c.pass_count, c.supported_count, c.fail_count,
      c.pass_count + c.supported_count + c.fail_count,
      c.unrecognized_count,
      c.confidence
    from counted as c
    -- Where entries were kept back, as such a trigger may, others count what is missing.
    where (select count(*) from written) = (select count(*) from due)
    -- A verdict that was there is for others to count again.
    on conflict (firm_id, message_id) do nothing
    returning g.message_id, g.unrecognized_count
  )
  select array_agg(r.message_id), sum(r.unrecognized_count)
  into v_settled, v_unrecognized
  from recorded as r;

  if v_unrecognized > 0 then
    perform citeledger_private.warn_of_unrecognized(
      (
        select string_agg(distinct e.verification_status, ', ')
        from citeledger.citation_ledger_entry as e
        where e.firm_id = (select p_firm_id)
          and e.message_id = any(v_settled)
          and citeledger.verification_tier(e.verification_status) is null
      )
    );
  end if;
  return v_settled;
end
$$;

comment on function citeledger_private.settle_new(uuid, uuid[]) is
  'settle_turn for many turns: of those that are new it assembles the ledgers and records the '
  'verdicts, in one statement, and returns which they are, null for none. The caller holds the '
  'lock of every turn, acts for p_firm_id, and is under read committed. Raises the WARNING of '
  'warn_of_unrecognized. Errors: those of the constraints.';

revoke all on function citeledger_private.settle_new(uuid, uuid[]) from public;

reset role;

-- gate/settle

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.all_were_settled(
  p_firm_id uuid,
  p_message_ids uuid[]
)
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
-- An array of one looks cheaper than the generic plan's ten, so each call would be planned anew.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_settled bigint;
begin
  with cleared as (
    delete from citeledger.finalize_failure as f
    where f.firm_id = p_firm_id and f.message_id = any(p_message_ids)
    returning f.message_id
  )
  select count(*)
  into v_settled
  from citeledger.work_product_fiduciary_gate as g
  where g.firm_id = p_firm_id
    and g.message_id = any(p_message_ids)
    and not exists (select from cleared as c where c.message_id = g.message_id);
  return v_settled = cardinality(p_message_ids);
end
$$;

create or replace function citeledger_private.settle(
  p_firm_id uuid,
  p_message_ids uuid[],
  p_source_ids uuid[] default null
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_message_ids uuid[] := p_message_ids;
  v_settled uuid[];
  v_source_ids uuid[] := p_source_ids;
  v_ignored boolean;
  v_stage text := 'assemble';
  v_sqlstate text;
  v_message_id uuid;
begin
  if cardinality(p_message_ids) = 0 then
    return;
  end if;

  -- Above read committed a statement does not see what others committed while the lock was awaited,
  -- so a verdict could be stale: none is recorded, and finalize_pending does it later.
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    -- What the session itself changed it sees: those entries must not say what is past.
    if cardinality(v_source_ids) > 0 then
      begin
        perform citeledger_private.assemble_set(p_firm_id, p_message_ids, v_source_ids);
      exception
        when serialization_failure then
          raise;
        when others or assert_failure then
          perform citeledger_private.log_failure(p_firm_id, p_message_ids, 'assemble', sqlstate);
      end;
    end if;
    perform citeledger_private.withdraw_gates(p_firm_id, p_message_ids, 'isolation', '25000');
    return;
  end if;

  -- Nearly always a turn is new and all is well: one statement. Whatever goes wrong with it, the
  -- steps below find out which of them it is.
  if v_source_ids is null then
    begin
      if cardinality(v_message_ids) = 1 then
        select case when t.gate is not null then v_message_ids end
        into v_settled
        from citeledger_private.settle_turn(p_firm_id, v_message_ids[1]) as t;
      else
        v_settled := citeledger_private.settle_new(p_firm_id, v_message_ids);
      end if;
    exception
      when serialization_failure then
        raise;
      when others or assert_failure then
        null;
    end;
    if cardinality(v_settled) = cardinality(v_message_ids) then
      return;
    end if;
    if cardinality(v_settled) > 0 then
      v_message_ids := array(
        select t.id from unnest(v_message_ids) as t (id)
        except
        select t.id from unnest(v_settled) as t (id)
      );
    end if;
  end if;

  -- Each step has a guard of its own. 40001 passes: only the caller can run its transaction again.
  -- A query cancel or a timeout (57014) is not caught by "others"; nor would a failed assertion be.
  -- The steps are expressions: to perform a function is a query of its own.
  begin
    -- Where an earlier attempt failed, more than the changed sources may be missing.
    -- Nested, so that a whole turn is assembled even where the gate's table is broken.
    if v_source_ids is null then
      perform citeledger_private.clear_failures(p_firm_id, v_message_ids);
    else
      if not citeledger_private.all_were_settled(p_firm_id, v_message_ids) then
        v_source_ids := null;
      end if;
    end if;
    v_ignored :=
      citeledger_private.assemble_set(p_firm_id, v_message_ids, v_source_ids) is null;
  exception
    when serialization_failure then
      raise;
    when others or assert_failure then
      v_sqlstate := sqlstate;
  end;

  -- The fault may lie in single rows of the one turn: try each.
  if left(v_sqlstate, 2) in ('22', '23') and cardinality(v_message_ids) = 1 then
    v_sqlstate := null;
    begin
      perform citeledger_private.clear_failures(p_firm_id, v_message_ids);
      perform citeledger_private.assemble_rows(p_firm_id, v_message_ids[1], v_source_ids);
    exception
      when serialization_failure then
        raise;
      when others or assert_failure then
        v_sqlstate := sqlstate;
    end;
  end if;

  if v_sqlstate is null then
    v_stage := 'gate';
    begin
      v_ignored := citeledger_private.record_gates(p_firm_id, v_message_ids) is null;
    exception
      when serialization_failure then
        raise;
      when others or assert_failure then
        v_sqlstate := sqlstate;
    end;
  end if;

  if v_sqlstate is null then
    return;
  end if;

  if cardinality(v_message_ids) = 1 then
    perform citeledger_private.withdraw_gates(p_firm_id, v_message_ids, v_stage, v_sqlstate);
  else
    -- One bad turn spoils no other.
    foreach v_message_id in array v_message_ids loop
      perform citeledger_private.settle(p_firm_id, array[v_message_id], p_source_ids);
    end loop;
  end if;
end
$$;

comment on function citeledger_private.all_were_settled(uuid, uuid[]) is
  'Removes what was logged of earlier attempts at the given turns; true where each of them has a '
  'verdict and none had failed. The caller holds the lock of every turn.';
comment on function citeledger_private.settle(uuid, uuid[], uuid[]) is
  'Assembles the ledger of the given turns of the assistant, then records their verdicts, each '
  'step in its own guard; p_source_ids limits the assembly to those sources, null means all of '
  'them. When a step fails, the turn has no verdict, the failure is logged and warned about, and '
  'nothing is raised. The caller holds the lock of every turn and acts for p_firm_id. Errors that '
  'pass: 40001, 57014.';

revoke all on function citeledger_private.all_were_settled(uuid, uuid[]) from public;
revoke all on function citeledger_private.settle(uuid, uuid[], uuid[]) from public;

reset role;

-- gate/source_triggers

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.source_inserted()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm record;
  v_outer text;
  v_ignored boolean;
begin
  for v_firm in
    select
      n.firm_id,
      array_agg(distinct n.message_id) as message_ids,
      array_agg(n.id) as source_ids
    from new_rows as n
    group by n.firm_id
    order by n.firm_id
  loop
    v_outer := citeledger_private.enter_firm(v_firm.firm_id);
    -- An expression, and every insert of a source is shorter: to perform a function is a query.
    v_ignored := citeledger_private.settle(
      v_firm.firm_id,
      citeledger_private.lock_turns(v_firm.firm_id, v_firm.message_ids),
      v_firm.source_ids
    ) is null;
    perform citeledger_private.leave_firm(v_outer);
  end loop;
  return null;
end
$$;

create or replace function citeledger_private.citation_updated()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm record;
  v_outer text;
  v_followers uuid[];
  v_assembled uuid[];
begin
  -- Only where the verification changed: a document that goes sets its citations' reference to
  -- null, and that must not touch a single turn.
  for v_firm in
    select
      n.firm_id,
      array_agg(distinct n.message_id) as message_ids,
      array_agg(n.id) as source_ids
    from new_rows as n
    join old_rows as o on o.firm_id = n.firm_id and o.id = n.id
    where (o.verified, o.verification_method, o.verification_confidence)
      is distinct from
      (n.verified, n.verification_method, n.verification_confidence)
    group by n.firm_id
    order by n.firm_id
  loop
    v_outer := citeledger_private.enter_firm(v_firm.firm_id);
    v_followers := citeledger_private.lock_turns(v_firm.firm_id, v_firm.message_ids);
    -- A turn that was assembled and nothing more has entries too: they follow at once, or the gate
    -- would count what its sources no longer say. The array through a sub-select: its length would
    -- else make the plan look worth making anew.
    v_assembled := array(
      select distinct e.message_id
      from citeledger.citation_ledger_entry as e
      where e.firm_id = (select v_firm.firm_id)
        and e.message_id = any((select v_firm.message_ids)::uuid[])
        and e.message_id <> all(v_followers)
    );
    if cardinality(v_assembled) > 0 then
      perform citeledger_private.assemble_set(v_firm.firm_id, v_assembled, v_firm.source_ids);
    end if;
    perform citeledger_private.settle(v_firm.firm_id, v_followers, v_firm.source_ids);
    perform citeledger_private.leave_firm(v_outer);
  end loop;
  return null;
end
$$;

comment on function citeledger_private.source_inserted() is
  'Trigger function: locks the turns of the inserted sources and lets ledger and verdict follow, '
  'where the turn is finalized or has a verdict; only the new sources are assembled.';
comment on function citeledger_private.citation_updated() is
  'Trigger function: where the verification of a citation changed, locks its turn and lets its '
  'ledger entry follow, and the verdict too if the turn is finalized or has one.';

revoke all on function citeledger_private.source_inserted() from public;
revoke all on function citeledger_private.citation_updated() from public;

reset role;

-- gate/message_triggers

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace trigger messages_finalize_updated
  after update on citeledger.messages
  referencing old table as old_rows new table as new_rows
  for each statement
  -- Whoever sets finalized_at, but for the functions that finalize themselves: they act as the
  -- owner, and say at which depth of triggers, so that what else their update sets off is seen.
  when (
    current_user <> 'citeledger_owner'
    or current_setting('citeledger.sealing', true) is distinct from pg_trigger_depth()::text
  )
  execute function citeledger_private.finalize_updated();

comment on trigger messages_finalize_updated on citeledger.messages is
  'No call site can forget to finalize: setting finalized_at is enough. It leaves alone the '
  'updates of finalize_turn and finalize_turns, which settle what they set: they act as the owner, '
  'and name their depth of triggers in the setting citeledger.sealing. From anybody else the '
  'setting means nothing.';

reset role;

-- gate/finalize_turn

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.finalize_turn(
  p_message_id uuid
)
returns jsonb
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_role text;
  v_finalized_at timestamptz;
  v_sealed boolean := false;
  v_ignored boolean;
  v_lock_error text;
  v_entries_before bigint;
  v_entries_written bigint;
  v_gate jsonb;
  v_failures jsonb := '[]'::jsonb;
begin
  -- The table first, where waiting has an end: a guard that takes no row lock costs no multixact.
  if current_setting('lock_timeout') <> '0' then
    begin
      lock table citeledger.messages in row exclusive mode;
    exception
      when lock_not_available or deadlock_detected then
        v_lock_error := sqlstate;
    end;
  end if;

  if v_lock_error is null then
    -- The trigger of messages leaves this update to us. Others must not have said so for us. It is
    -- said in an expression: to perform a function is a query of its own.
    v_ignored := set_config('citeledger.sealing', pg_trigger_depth()::text, true) is null;
    -- Nearly always the message is free and open. Waiting for it in a guard would cost every turn a
    -- multixact: a lock of a subtransaction, then an update of its parent.
    update citeledger.messages as m
    set finalized_at = clock_timestamp()
    where m.firm_id = v_firm_id
      and m.id = (
        select l.id
        from citeledger.messages as l
        where l.firm_id = v_firm_id
          and l.id = p_message_id
          and l.role = 'assistant'
          and l.finalized_at is null
        for no key update skip locked
      )
    returning m.role into v_role;
    v_sealed := found;

    if not v_sealed then
      begin
        select m.role, m.finalized_at
        into v_role, v_finalized_at
        from citeledger.messages as m
        where m.firm_id = v_firm_id and m.id = p_message_id
        for no key update;
      exception
        when lock_not_available or deadlock_detected then
          v_lock_error := sqlstate;
      end;
      if v_role = 'assistant' and v_finalized_at is null then
        update citeledger.messages as m
        set finalized_at = clock_timestamp()
        where m.firm_id = v_firm_id and m.id = p_message_id;
        v_sealed := true;
      end if;
    end if;
    v_ignored := set_config('citeledger.sealing', '', true) is null;
  end if;

  if v_lock_error is not null then
    perform citeledger_private.log_failure(v_firm_id, array[p_message_id], 'lock', v_lock_error);
    v_failures := jsonb_build_array(
      jsonb_build_object('stage', 'lock', 'sqlstate', v_lock_error)
    );
  end if;
  -- A message that is busy, not there, or not the assistant's.
  if v_role is distinct from 'assistant' then
    return jsonb_build_object(
      'message_id', p_message_id,
      'finalized', false,
      'entries_written', 0,
      'gate', null,
      'failures', v_failures
    );
  end if;

  -- A turn that is new reports what it wrote: nothing is read again. Above read committed there is
  -- no verdict, which settle says; and it finds out what went wrong here.
  if v_sealed
    and current_setting('transaction_isolation') in ('read committed', 'read uncommitted')
  then
    begin
      select t.entries, t.gate
      into v_entries_written, v_gate
      from citeledger_private.settle_turn(v_firm_id, p_message_id) as t;
    exception
      when serialization_failure then
        raise;
      when others or assert_failure then
        null;
    end;
  end if;

  if v_gate is null then
    -- What is only read for the report has guards too: a broken table must not break the turn.
    -- Entries that were new beside a verdict that was not are written already.
    begin
      v_entries_before := citeledger_private.count_entries(v_firm_id, p_message_id)
        - coalesce(v_entries_written, 0);
    exception
      when others then
        v_entries_before := 0;
    end;

    perform citeledger_private.settle(v_firm_id, array[p_message_id]);

    begin
      select r.entries - v_entries_before, r.gate, r.failures
      into v_entries_written, v_gate, v_failures
      from citeledger_private.finalize_report(v_firm_id, p_message_id) as r;
    exception
      when others then
        v_failures := jsonb_build_array(
          jsonb_build_object('stage', 'report', 'sqlstate', sqlstate)
        );
    end;
  end if;

  return jsonb_build_object(
    'message_id', p_message_id,
    'finalized', true,
    'entries_written', coalesce(v_entries_written, 0),
    'gate', v_gate,
    'failures', v_failures
  );
end
$$;

comment on function citeledger.finalize_turn(uuid) is
  'Finalizes the turn p_message_id: sets finalized_at if it is null, assembles its ledger, records '
  'its verdict. Called again, it assembles and counts again. Returns {"message_id", "finalized", '
  '"entries_written", "gate", "failures"}: finalized is false for a message that is unknown, not '
  'the assistant''s, or busy; gate is the verdict''s row less firm_id, or null; failures lists '
  '{"stage", "sqlstate"}. It never raises because a step failed: the failure is logged in '
  'finalize_failure and warned about, an old verdict is withdrawn, and finalize_pending tries '
  'again. Under repeatable read or serializable no verdict is recorded (stage isolation). Locks '
  'the message until the transaction ends. For citeledger_app. Errors that pass: 57014 (cancel, '
  'timeouts), 40001 (run the transaction again), 55P03 while DDL holds messages itself, and what a '
  'deferred constraint raises at commit. Call it in a savepoint, or in a transaction of its own, '
  'where the turn must survive those.';

revoke all on function citeledger.finalize_turn(uuid) from public;
grant execute on function citeledger.finalize_turn(uuid) to citeledger_app;
grant execute on function citeledger.finalize_turn(uuid) to citeledger_admin;

reset role;

-- gate/finalize_turns

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.finalize_turns(
  p_message_ids uuid[]
)
returns integer
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_verdicts integer;
begin
  -- The firm through a sub-select: of one that the statistics do not know a row is expected, and
  -- then any index would do.
  perform
  from citeledger.messages as m
  where m.firm_id = (select v_firm_id) and m.id = any(p_message_ids)
  order by m.id
  for no key update;

  -- The trigger of messages leaves this update to us. Others must not have said so for us.
  perform set_config('citeledger.sealing', pg_trigger_depth()::text, true);
  update citeledger.messages as m
  set finalized_at = clock_timestamp()
  where m.firm_id = (select v_firm_id)
    and m.id = any(p_message_ids)
    and m.role = 'assistant'
    and m.finalized_at is null;
  perform set_config('citeledger.sealing', '', true);

  perform citeledger_private.settle(
    v_firm_id,
    array(
      select m.id
      from citeledger.messages as m
      where m.firm_id = (select v_firm_id) and m.id = any(p_message_ids) and m.role = 'assistant'
      order by m.id
    )
  );

  begin
    select count(*)::integer
    into v_verdicts
    from citeledger.work_product_fiduciary_gate as g
    where g.firm_id = (select v_firm_id) and g.message_id = any(p_message_ids);
  exception
    when others then
      v_verdicts := 0;
  end;
  return v_verdicts;
end
$$;

comment on function citeledger.finalize_turns(uuid[]) is
  'finalize_turn for many turns at once, set-based; returns how many of them have a verdict now. '
  'Messages that are unknown or not the assistant''s are passed over, nulls and repeats do no '
  'harm. One turn whose step fails spoils no other: it is logged in finalize_failure and has no '
  'verdict. Locks the messages in id order until the transaction ends. For citeledger_app. Errors '
  'that pass: as for finalize_turn, and 55P03 or 40P01 while it waits for its locks.';

revoke all on function citeledger.finalize_turns(uuid[]) from public;
grant execute on function citeledger.finalize_turns(uuid[]) to citeledger_app;
grant execute on function citeledger.finalize_turns(uuid[]) to citeledger_admin;

reset role;

-- ledger/ledger_trace

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.ledger_trace(
  p_chat_id uuid,
  p_message_id uuid default null
)
returns jsonb
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_project_id uuid;
begin
  -- Asked as an expression first: to perform a function is a query, and this is a short call.
  if citeledger.has_permission('matters:read') is not true then
    perform citeledger.require_permission('matters:read');
  end if;

  -- A matter is reached through projects alone, where row security decides. The wall is asked for
  -- by name besides: inside the cascade of a foreign key, which anybody may set up on a temporary
  -- table, the owner passes row security.
  select c.project_id
  into v_project_id
  from citeledger.chats as c
  where c.firm_id = v_firm_id
    and c.id = p_chat_id
    and (
      c.project_id is null
      or exists (
        select
        from citeledger.projects as p
        where p.firm_id = v_firm_id
          and p.id = c.project_id
          and not citeledger_private.is_behind_wall(v_firm_id, p.id)
      )
    );
  if not found then
    raise exception using
      errcode = 'P0002',
      message = 'chat not found',
      detail = 'No chat of this id is visible in the context.',
      hint = 'Check the id, the firm of the context, and who may see the matter.';
  end if;

  -- One tree of records, whose columns are the keys, is made into jsonb once: a jsonb inside
  -- another is copied into it at each level. The columns stand in the order in which jsonb keeps
  -- keys (by length, then by bytes), which leaves it nothing to sort.
  return (
    select to_jsonb(trace)
    from (
      select
        array(
          select gate
          from citeledger.work_product_fiduciary_gate as g
          join citeledger.messages as m on m.firm_id = v_firm_id and m.id = g.message_id
          cross join lateral (
            select
              g.id,
              g.chat_id,
              g.confidence,
              g.created_at,
              g.fail_count,
              g.message_id,
              g.pass_count,
              g.project_id,
              g.computed_at,
              g.gate_status,
              g.supported_count,
              g.total_assertions,
              g.unrecognized_count
          ) as gate
          where g.firm_id = v_firm_id
            and g.chat_id = p_chat_id
            and (p_message_id is null or g.message_id = p_message_id)
          order by m.created_at, m.id
        ) as gates,
        p_chat_id as chat_id,
        array(
          select entry
          from citeledger.citation_ledger_entry as e
          left join citeledger.message_citations as k
            on k.firm_id = v_firm_id and k.id = e.message_citation_id
          -- Only a document whose quotes may be shown: live, not privileged, in no matter that is
          -- hidden. That of the chat is not: it was asked for above, and is not again for each.
          left join citeledger.documents as d
            on d.firm_id = v_firm_id
            and d.id = k.source_document_id
            and not d.is_privileged
            and d.deleted_at is null
            and (
              d.project_id is null
              or d.project_id = v_project_id
              or exists (
                select
                from citeledger.projects as p
                where p.firm_id = v_firm_id
                  and p.id = d.project_id
                  and not citeledger_private.is_behind_wall(v_firm_id, p.id)
              )
            )
          left join citeledger.message_caselaw_citations as l
            on l.firm_id = v_firm_id and l.id = e.message_caselaw_citation_id
          left join citeledger.message_tool_sources as t
            on t.firm_id = v_firm_id and t.id = e.message_tool_source_id
          cross join lateral (
            select
              k.source_text as text,
              k.source_offset_end as offset_end,
              k.source_offset_start as offset_start
          ) as quote
          cross join lateral (
            select
              'kb_document' as kind,
              k.source_page as page,
              k.source_block as block,
              array[quote] as passages,
              k.source_document_id as document_id
          ) as kb_document
          cross join lateral (
            select
              'kb_document' as kind,
              k.source_page as page,
              k.source_block as block,
              null as passages,
              true as withheld,
              k.source_document_id as document_id
          ) as kb_withheld
          cross join lateral (
            select
              l.source_text as text,
              l.source_offset_end as offset_end,
              l.source_offset_start as offset_start
          ) as holding
          cross join lateral (
            select
              'caselaw' as kind,
              l.partial,
              array[holding] as passages,
              l.cluster_id,
              l.opinion_id
          ) as opinion
          cross join lateral (
            select
              t.url,
              t.source_kind as kind,
              t.tool,
              t.label,
              t.subtitle,
              t.external_ref
          ) as tool_source
          cross join lateral (
            select
              e.id,
              citeledger.verification_tier(e.verification_status) as tier,
              case
                when k.id is not null and k.source_document_id is not null and d.id is null
                  then kb_withheld
                when k.id is not null then kb_document
                when l.id is not null then opinion
                else tool_source
              end as source,
              e.provider,
              e.confidence,
              e.created_at,
              e.message_id,
              e.source_kind,
              e.retrieved_at,
              e.treatment_id,
              e.verification_status
          ) as entry
          where e.firm_id = v_firm_id
            and e.chat_id = p_chat_id
            and (p_message_id is null or e.message_id = p_message_id)
          order by coalesce(k.created_at, l.created_at, t.created_at), e.id
        ) as entries
    ) as trace
  );
end
$$;

comment on function citeledger.ledger_trace(uuid, uuid) is
  'The ledger and the verdicts of the chat p_chat_id, or of its message p_message_id alone: '
  '{"chat_id", "entries", "gates"}. An entry: {"id", "message_id", "source_kind", '
  '"verification_status", "tier", "confidence", "provider", "retrieved_at", "treatment_id", '
  '"created_at", "source"}, in the order in which the sources were recorded, then by id. The '
  'source is read from the content tables now: {"kind": "kb_document", "document_id", "page", '
  '"block", "passages"}, {"kind": "caselaw", "opinion_id", "cluster_id", "partial", "passages"}, '
  'or for a tool {"kind": its source_kind, "label", "subtitle", "url", "external_ref", "tool"}; a '
  'passage is {"text", "offset_start", "offset_end"}, offsets in Unicode code points. Passages of '
  'a document that is privileged, withdrawn or in a matter hidden from the caller are null, with '
  '"withheld": true. A gate: the row of work_product_fiduciary_gate less firm_id. A p_message_id '
  'that is not of the chat gives empty lists. Needs matters:read. For citeledger_reader. Errors: '
  '42501 without the permission; P0002 when the chat is not there for the caller or belongs to a '
  'matter that is not.';

revoke all on function citeledger.ledger_trace(uuid, uuid) from public;
grant execute on function citeledger.ledger_trace(uuid, uuid) to citeledger_reader;
grant execute on function citeledger.ledger_trace(uuid, uuid) to citeledger_app;
grant execute on function citeledger.ledger_trace(uuid, uuid) to citeledger_admin;

reset role;

-- cite/plain_span

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- In place of a call the planner puts what is below, for every span of a list: that takes a body
-- that is bound when the function is made, and no setting of its own.
create or replace function citeledger_private.is_plain_span(
  p_span jsonb
)
returns boolean
language sql
immutable
parallel safe
security invoker
return (
  -- Whatever is null here is not plain.
  jsonb_typeof(p_span) = 'object'
  and p_span - array[
    'document_id', 'page_number', 'block_index', 'char_start', 'char_end', 'quote'
  ] = '{}'
  -- Numbers: a path finds nothing else less than a number. It would look into a list as well, but a
  -- list has more than digits, and so have a sign and a fraction. What most spans have comes first.
  and p_span @@ (
    '$.page_number >= 1 && $.page_number <= 2147483647'
    ' && ($.block_index <= 2147483647 || !exists($.block_index))'
    ' && ($.char_start < $.char_end && $.char_end <= 2147483647'
    '   || !exists($.char_start) && !exists($.char_end))'
    ' && $.quote.type() == "string"'
  )
  and (
    (p_span ->> 'page_number')
    || coalesce(p_span ->> 'block_index', '')
    || coalesce(p_span ->> 'char_start', '')
    || coalesce(p_span ->> 'char_end', '')
  ) collate "C" !~ '[^0-9]'
  -- Lower case with dashes in their places, nowhere else: as a uuid is written.
  and (p_span ->> 'document_id') collate "C" like '________-____-____-____-____________'
  and (p_span ->> 'document_id') collate "C" not like '%-%-%-%-%-%'
  and (p_span ->> 'document_id') collate "C" !~ '[^0-9a-f-]'
  -- Nearly always the first character is a letter, digit or sign of ASCII.
  and (
    ascii(p_span ->> 'quote') between 33 and 126
    or citeledger_private.is_blank(p_span ->> 'quote') is false
  )
) is true;

comment on function citeledger_private.is_plain_span(jsonb) is
  'Whether a span is well-formed and written as write_span writes it: no null, no 1.0 for 1, the '
  'document in lower case. A shortcut for the many: where it is false, span_fault says what is '
  'wrong, if anything is.';

revoke all on function citeledger_private.is_plain_span(jsonb) from public;

reset role;

-- cite/span

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.span_fault(
  p_span jsonb
)
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  -- Null for an optional key means that the key is absent.
  v_span jsonb;
  v_rest jsonb;
  v_unknown text;
begin
  if p_span is null or jsonb_typeof(p_span) <> 'object' then
    return 'span: not an object';
  end if;
  v_span := p_span;
  if v_span -> 'block_index' = 'null' then
    v_span := v_span - 'block_index';
  end if;
  if v_span -> 'char_start' = 'null' then
    v_span := v_span - 'char_start';
  end if;
  if v_span -> 'char_end' = 'null' then
    v_span := v_span - 'char_end';
  end if;

  v_rest := v_span - array[
    'document_id', 'page_number', 'block_index', 'char_start', 'char_end', 'quote'
  ];
  if v_rest <> '{}' then
    select min(k.key collate "C")
    into v_unknown
    from jsonb_object_keys(v_rest) as k (key);
    -- Named only where it has the form of a name, which holds no content.
    return case
      when v_unknown ~ '^[A-Za-z_][A-Za-z0-9_]{0,31}$' then format('%s: unknown key', v_unknown)
      else 'span: it has an unknown key'
    end;
  end if;
  if not v_span ? 'document_id' then
    return 'document_id: missing';
  end if;
  if jsonb_typeof(v_span -> 'document_id') <> 'string'
    or v_span ->> 'document_id' !~ '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'
  then
    return 'document_id: not a uuid';
  end if;
  if not v_span ? 'page_number' then
    return 'page_number: missing';
  end if;
  if not citeledger_private.is_whole_number(v_span -> 'page_number', 1) then
    return 'page_number: not a whole number from 1 to 2147483647';
  end if;
  if v_span ? 'block_index'
    and not citeledger_private.is_whole_number(v_span -> 'block_index', 0)
  then
    return 'block_index: not a whole number from 0 to 2147483647';
  end if;
  if v_span ? 'char_start'
    and not citeledger_private.is_whole_number(v_span -> 'char_start', 0)
  then
    return 'char_start: not a whole number from 0 to 2147483647';
  end if;
  if v_span ? 'char_end'
    and not citeledger_private.is_whole_number(v_span -> 'char_end', 0)
  then
    return 'char_end: not a whole number from 0 to 2147483647';
  end if;
  if v_span ? 'char_start' and not v_span ? 'char_end' then
    return 'char_end: missing, for there is a char_start';
  end if;
  if v_span ? 'char_end' and not v_span ? 'char_start' then
    return 'char_start: missing, for there is a char_end';
  end if;
  if v_span ? 'char_start'
    and (v_span -> 'char_end')::numeric <= (v_span -> 'char_start')::numeric
  then
    return 'char_end: not after char_start';
  end if;
  if not v_span ? 'quote' then
    return 'quote: missing';
  end if;
  if jsonb_typeof(v_span -> 'quote') <> 'string' then
    return 'quote: not a text';
  end if;
  if citeledger_private.is_blank(v_span ->> 'quote') then
    return 'quote: empty, or nothing in it can be seen';
  end if;
  return null;
end
$$;

create or replace function citeledger_private.to_span(
  p_span jsonb
)
returns citeledger_private.span
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  return row(
    (p_span ->> 'document_id')::uuid,
    (p_span -> 'page_number')::integer,
    -- Null has no number in it.
    nullif(p_span -> 'block_index', 'null')::integer,
    nullif(p_span -> 'char_start', 'null')::integer,
    nullif(p_span -> 'char_end', 'null')::integer,
    p_span ->> 'quote'
  );
end
$$;

create or replace function citeledger_private.read_span(
  p_span jsonb
)
returns citeledger_private.span
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fault text;
begin
  if not citeledger_private.is_plain_span(p_span) then
    v_fault := citeledger_private.span_fault(p_span);
    if v_fault is not null then
      raise exception using
        errcode = '22023',
        message = 'the span is malformed',
        detail = format('%s.', v_fault),
        hint = 'A span is {"document_id": uuid, "page_number": from 1, "block_index": from 0, '
          '"char_start": from 0, "char_end": exclusive, "quote": text}; block_index and the two '
          'offsets may be left out.';
    end if;
  end if;
  return citeledger_private.to_span(p_span);
end
$$;

comment on function citeledger_private.span_fault(jsonb) is
  'What is wrong with a span, as "key: problem" without any of its text; null when it is '
  'well-formed.';
comment on function citeledger_private.to_span(jsonb) is
  'The span that a well-formed p_span is; whoever calls it has asked span_fault.';
comment on function citeledger_private.read_span(jsonb) is
  'A well-formed span as a row. Errors: 22023 with the offending key in DETAIL.';

revoke all on function citeledger_private.span_fault(jsonb) from public;
revoke all on function citeledger_private.to_span(jsonb) from public;
revoke all on function citeledger_private.read_span(jsonb) from public;

reset role;

-- cite/quote_fault

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- In place of a call the planner puts what is below, for every span of a list: that takes a body
-- that is bound when the function is made, and no setting of its own.
create or replace function citeledger_private.quote_fault(
  p_content text,
  p_char_start integer,
  p_char_end integer,
  p_quote text
)
returns text
language sql
immutable
parallel safe
security invoker
return case
  -- Mostly the first place of the quote is the one that is asked for. If it is as long as it should
  -- be, it is what the offsets cut out, and the characters of the whole text need not be counted.
  -- Looking for a quote can take its length times the text's, cutting it out never does: where
  -- either is long it is cut out at once.
  when p_char_start is not null
    and octet_length(p_content) <= 16384
    and octet_length(p_quote) <= 256
    and strpos(p_content collate "C", p_quote collate "C") = p_char_start + 1
    and char_length(p_quote) = p_char_end - p_char_start
    -- Nearly always the first character is a letter, digit or sign of ASCII.
    and (ascii(p_quote) between 33 and 126 or citeledger_private.is_blank(p_quote) is false)
    then null
  when p_char_start is null then case
    when strpos(p_content collate "C", p_quote collate "C") > 0
      and not citeledger_private.is_blank(p_quote)
      then null
    else 'quote_absent'
  end
  -- Checked before the slice is cut: substring would clip to the text without a word.
  when p_char_end > char_length(p_content) then 'offsets_out_of_range'
  when substring(p_content from p_char_start + 1 for p_char_end - p_char_start) collate "C"
      = p_quote collate "C"
    and not citeledger_private.is_blank(p_quote)
    then null
  else 'text_mismatch'
end;

comment on function citeledger_private.quote_fault(text, integer, integer, text) is
  'Compares a quote with the live text of its unit, byte for byte: null where it verifies, else '
  'offsets_out_of_range, text_mismatch or, without offsets, quote_absent. A blank quote verifies '
  'nowhere, nor does anything in a text that is null. The one place where a quote is compared.';

revoke all on function citeledger_private.quote_fault(text, integer, integer, text) from public;

reset role;

-- cite/deep_link

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.matter_link(
  p_matter_number text
)
returns text
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_matter text := p_matter_number;
begin
  -- Percent-encoding of RFC 3986: every byte that is not unreserved. Most numbers have none.
  if p_matter_number collate "C" ~ '[^A-Za-z0-9._~-]' then
    select string_agg(
      case
        when c.letter collate "C" ~ '^[A-Za-z0-9._~-]$' then c.letter
        else regexp_replace(
          upper(encode(convert_to(c.letter, 'UTF8'), 'hex')), '(..)', E'%\\1', 'g'
        )
      end,
      ''
      order by c.position
    )
    into v_matter
    from string_to_table(p_matter_number, null) with ordinality as c (letter, position);
  end if;
  return '/matters/' || coalesce(v_matter, '') || '/record/doc/';
end
$$;

-- In place of a call the planner puts what is below, for every span of a list: that takes a body
-- that is bound when the function is made, and no setting of its own.
create or replace function citeledger_private.page_link(
  p_matter_link text,
  p_document_id uuid,
  p_page_number integer,
  p_block_index integer
)
returns text
language sql
immutable
parallel safe
security invoker
return p_matter_link
  || coalesce(p_document_id::text, '')
  || '?page='
  || coalesce(p_page_number::text, '')
  || coalesce('&block=' || p_block_index::text, '');

create or replace function citeledger.deep_link(
  p_matter_number text,
  p_document_id uuid,
  p_page_number integer,
  p_block_index integer default null
)
returns text
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  return citeledger_private.page_link(
    citeledger_private.matter_link(p_matter_number), p_document_id, p_page_number, p_block_index
  );
end
$$;

comment on function citeledger_private.matter_link(text) is
  'What the links to the pages of a matter begin with: /matters/{matter_number}/record/doc/, the '
  'matter number percent-encoded.';
comment on function citeledger_private.page_link(text, uuid, integer, integer) is
  'The link to a page, behind the beginning that matter_link gives: what deep_link returns, for '
  'many pages of one matter.';
comment on function citeledger.deep_link(text, uuid, integer, integer) is
  'The link to a page of a document, with the block where p_block_index is given: '
  '/matters/{matter_number}/record/doc/{document_id}?page={page_number}[&block={block_index}], the '
  'matter number percent-encoded. Built here and nowhere else, and granted to nobody: no link '
  'exists for what did not verify.';

revoke all on function citeledger_private.matter_link(text) from public;
revoke all on function citeledger_private.page_link(text, uuid, integer, integer) from public;
revoke all on function citeledger.deep_link(text, uuid, integer, integer) from public;

reset role;

-- cite/cite_answer

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.cite_answer(
  p_matter_number text,
  p_document_id uuid,
  p_page_number integer,
  p_block_index integer,
  p_span jsonb,
  p_reason text
)
returns jsonb
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  -- The keys as jsonb keeps them, so that it need not sort them.
  return jsonb_build_object(
    'span', p_span,
    'reason', p_reason,
    'verified', p_reason is null,
    'deep_link', case
      when p_reason is null
        then citeledger.deep_link(p_matter_number, p_document_id, p_page_number, p_block_index)
    end,
    'checked_at', statement_timestamp(),
    'engine_state', 'live'
  );
end
$$;

comment on function citeledger_private.cite_answer(text, uuid, integer, integer, jsonb, text) is
  'A CiteResolution as JSON; the link is there only when p_reason is null, which means verified. '
  'p_span: the span as write_span writes it.';

revoke all
  on function citeledger_private.cite_answer(text, uuid, integer, integer, jsonb, text)
  from public;

reset role;

-- cite/resolve_spans

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.resolve_spans(
  p_firm_id uuid,
  p_spans citeledger_private.span[]
)
returns table (
  span_position bigint,
  reason text
)
language plpgsql
stable
parallel safe
security invoker
rows 10
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  with span as materialized (
    select s.*
    from unnest(p_spans) with ordinality as s (
      document_id, page_number, block_index, char_start, char_end, quote, span_position
    )
  ),
  -- A page is put together once, however many spans are anchored in it.
  page as materialized (
    select a.document_id, a.page_number, t.content
    from (
      select distinct s.document_id, s.page_number from span as s where s.block_index is null
    ) as a
    join citeledger.document_pages as p
      on p.firm_id = p_firm_id
      and p.document_id = a.document_id
      and p.page_number = a.page_number
    cross join lateral (
      select coalesce(string_agg(b.content, E'\n' order by b.block_index), '') as content
      from citeledger.document_page_blocks as b
      where b.firm_id = p_firm_id
        and b.document_id = p.document_id
        and b.page_number = p.page_number
    ) as t
  ),
  unit as (
    select s.*, b.content
    from span as s
    left join citeledger.document_page_blocks as b
      on b.firm_id = p_firm_id
      and b.document_id = s.document_id
      and b.page_number = s.page_number
      and b.block_index = s.block_index
    where s.block_index is not null
    union all
    select s.*, p.content
    from span as s
    left join page as p on p.document_id = s.document_id and p.page_number = s.page_number
    where s.block_index is null
  )
  select
    u.span_position,
    case
      when u.content is null then
        case
          when not exists (
            select
            from citeledger.document_pages as p
            where p.firm_id = p_firm_id and p.document_id = u.document_id
          )
            then 'no_pages'
          when not exists (
            select
            from citeledger.document_pages as p
            where p.firm_id = p_firm_id
              and p.document_id = u.document_id
              and p.page_number = u.page_number
          )
            then 'page_missing'
          else 'block_out_of_range'
        end
      else citeledger_private.quote_fault(u.content, u.char_start, u.char_end, u.quote)
    end
  from unit as u;
end
$$;

comment on function citeledger_private.resolve_spans(uuid, citeledger_private.span[]) is
  'Compares each span with the live page, byte for byte: one row a span, reason null where it '
  'verifies, else no_pages, page_missing, block_out_of_range, offsets_out_of_range, text_mismatch '
  'or quote_absent. span_position: the span''s place in the array, from 1. A blank quote verifies '
  'nowhere. It finds the text that a span is anchored in; quote_fault compares.';

revoke all on function citeledger_private.resolve_spans(uuid, citeledger_private.span[])
  from public;

reset role;

-- cite/record_in_matter

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.visible_matter_number(
  p_firm_id uuid,
  p_matter_id uuid
)
returns text
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_matter_number text;
begin
  -- Row security decides, and the wall is asked for by name besides: inside the cascade of a
  -- foreign key, which anybody may set up on a temporary table, the owner passes row security.
  if citeledger_private.is_behind_wall(p_firm_id, p_matter_id) is not false then
    return null;
  end if;
  select p.matter_number
  into v_matter_number
  from citeledger.projects as p
  where p.firm_id = p_firm_id and p.id = p_matter_id;
  return v_matter_number;
end
$$;

create or replace function citeledger_private.holds_record(
  p_firm_id uuid,
  p_matter_id uuid,
  p_document_id uuid
)
returns boolean
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
begin
  perform
  from citeledger.documents as d
  where d.firm_id = p_firm_id
    and d.id = p_document_id
    and d.project_id = p_matter_id
    and d.document_kind = 'record'
    and not d.is_privileged
    and d.deleted_at is null;
  return found;
end
$$;

comment on function citeledger_private.visible_matter_number(uuid, uuid) is
  'The number of a matter that is visible in the context, else null.';
comment on function citeledger_private.holds_record(uuid, uuid, uuid) is
  'Whether the document is a live, non-privileged record of the matter: what may be cited.';

revoke all on function citeledger_private.visible_matter_number(uuid, uuid) from public;
revoke all on function citeledger_private.holds_record(uuid, uuid, uuid) from public;

reset role;

-- cite/cite

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.cite_resolution(
  p_matter_number text,
  p_span citeledger_private.span,
  p_reason text
)
returns jsonb
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  return citeledger_private.cite_answer(
    p_matter_number,
    p_span.document_id,
    p_span.page_number,
    p_span.block_index,
    citeledger_private.write_span(p_span),
    p_reason
  );
end
$$;

create or replace function citeledger.cite(
  p_matter_id uuid,
  p_span jsonb
)
returns jsonb
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_is_plain boolean;
  v_span citeledger_private.span;
  v_document_id uuid;
  v_page_number integer;
  v_block_index integer;
  v_char_start integer;
  v_char_end integer;
  v_quote text;
  v_matter_number text;
  v_is_held boolean;
  v_content text;
  v_reason text;
begin
  -- Asked as an expression first: to perform a function is a query, and this is a short call.
  if citeledger.has_permission('matters:read') is not true then
    perform citeledger.require_permission('matters:read');
  end if;

  v_is_plain := citeledger_private.is_plain_span(p_span);
  if v_is_plain then
    v_document_id := (p_span ->> 'document_id')::uuid;
    v_page_number := (p_span ->> 'page_number')::integer;
    v_block_index := (p_span ->> 'block_index')::integer;
  else
    v_span := citeledger_private.read_span(p_span);
    v_document_id := v_span.document_id;
  end if;

  -- One statement instead of three. Nothing is read of a document before its matter was seen, and
  -- no text before the document was. Row security decides on the matter, and the wall is asked for
  -- by name besides: inside the cascade of a foreign key, which anybody may set up on a temporary
  -- table, the owner passes row security, and a plan made there is used outside as well.
  select p.matter_number, d.id is not null, b.content
  into v_matter_number, v_is_held, v_content
  from citeledger.projects as p
  left join citeledger.documents as d
    on d.firm_id = v_firm_id
    and d.id = v_document_id
    and d.project_id = p.id
    and d.document_kind = 'record'
    and not d.is_privileged
    and d.deleted_at is null
  -- Mostly the block is named and there: then its text is all that is needed.
  left join citeledger.document_page_blocks as b
    on b.firm_id = v_firm_id
    and b.document_id = d.id
    and b.page_number = v_page_number
    and b.block_index = v_block_index
  where p.firm_id = v_firm_id
    and p.id = p_matter_id
    and citeledger_private.is_behind_wall(v_firm_id, p.id) is false;
  if v_is_held is not true then
    perform citeledger_private.refuse_as_not_found();
  end if;

  if v_content is not null then
    -- Each is read once: the planner puts what is passed wherever quote_fault looks at it.
    v_char_start := (p_span ->> 'char_start')::integer;
    v_char_end := (p_span ->> 'char_end')::integer;
    v_quote := p_span ->> 'quote';
    v_reason := citeledger_private.quote_fault(v_content, v_char_start, v_char_end, v_quote);
    return citeledger_private.cite_answer(
      v_matter_number, v_document_id, v_page_number, v_block_index, p_span, v_reason
    );
  end if;

  if v_is_plain then
    v_span := citeledger_private.to_span(p_span);
  end if;
  select r.reason
  into strict v_reason
  from citeledger_private.resolve_spans(v_firm_id, array[v_span]) as r;
  return citeledger_private.cite_resolution(v_matter_number, v_span, v_reason);
end
$$;

comment on function citeledger_private.cite_resolution(text, citeledger_private.span, text) is
  'A CiteResolution as JSON; the link is there only when p_reason is null, which means verified.';
comment on function citeledger.cite(uuid, jsonb) is
  'Checks a span of a record of the matter p_matter_id against the live page, now, and gives the '
  'link to it when it holds: {"verified", "reason", "deep_link", "engine_state": "live", '
  '"checked_at", "span"}. The checks come in this order: the permission matters:read (42501), the '
  'form of the span (22023), the matter is visible and holds the document as a live, '
  'non-privileged record (P0002), the text. For the span and the reasons see resolve_span. '
  'deep_link is null unless verified. checked_at is when the statement began. For '
  'citeledger_reader. Errors: 42501; 22023 with the offending key in DETAIL; P0002, the same '
  'whatever is not there.';

revoke all on function citeledger_private.cite_resolution(text, citeledger_private.span, text)
  from public;
revoke all on function citeledger.cite(uuid, jsonb) from public;
grant execute on function citeledger.cite(uuid, jsonb) to citeledger_reader;
grant execute on function citeledger.cite(uuid, jsonb) to citeledger_app;
grant execute on function citeledger.cite(uuid, jsonb) to citeledger_admin;

reset role;

-- cite/cite_many

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.cite_many(
  p_matter_id uuid,
  p_spans jsonb
)
returns jsonb
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_matter_number text;
  v_matter_link text;
  v_result jsonb;
  -- The items that have no answer yet: where they are, what is wrong with each, and its span if
  -- the matter holds its document.
  v_positions bigint[];
  v_faults text[];
  v_spans jsonb[];
begin
  -- Asked as an expression first: to perform a function is a query, and this may be a short call.
  if citeledger.has_permission('matters:read') is not true then
    perform citeledger.require_permission('matters:read');
  end if;
  if p_spans is null or jsonb_typeof(p_spans) <> 'array' then
    raise exception using
      errcode = '22023',
      message = 'p_spans is not a list of spans',
      detail = format('p_spans is %s.', coalesce(jsonb_typeof(p_spans), 'null')),
      hint = 'Pass a JSON array of spans; for a single one there is citeledger.cite.';
  end if;
  v_matter_number := citeledger_private.visible_matter_number(v_firm_id, p_matter_id);
  if v_matter_number is null then
    perform citeledger_private.refuse_as_not_found();
  end if;
  v_matter_link := citeledger_private.matter_link(v_matter_number);

  -- Each item is judged once, and each document asked for once: "offset 0" keeps what was found
  -- out, where to materialize would write each row once more. What can be looked at is well-formed,
  -- and of a record of the matter.
  with item as (
    select i.position, i.item, citeledger_private.is_plain_span(i.item) as is_plain
    from jsonb_array_elements(p_spans) with ordinality as i (item, position)
    offset 0
  ),
  judged as (
    select
      i.position,
      i.item,
      i.is_plain,
      case when not i.is_plain then citeledger_private.span_fault(i.item) end as fault
    from item as i
    offset 0
  ),
  -- No row is left out before the end, so that the planner joins as many as there are.
  written as (
    select
      j.position,
      j.fault,
      case
        when j.is_plain then j.item
        when j.fault is null
          then citeledger_private.write_span(citeledger_private.to_span(j.item))
      end as item
    from judged as j
    offset 0
  ),
  span as materialized (
    select
      w.position,
      w.fault,
      w.item,
      (w.item ->> 'document_id')::uuid as document_id,
      (w.item ->> 'page_number')::integer as page_number,
      (w.item ->> 'block_index')::integer as block_index,
      (w.item ->> 'char_start')::integer as char_start,
      (w.item ->> 'char_end')::integer as char_end,
      w.item ->> 'quote' as quote
    from written as w
  ),
  document as materialized (
    select distinct s.document_id as id from span as s
  ),
  held as materialized (
    select d.id
    from document as d
    where citeledger_private.holds_record(v_firm_id, p_matter_id, d.id)
  ),
  -- Mostly the block is named and there: then its text is all that is needed. Laterally, an index
  -- look-up for each span, whatever the planner knows of the table: "offset 0" keeps it so, and no
  -- plan reads every block of the firm.
  found as (
    select
      s.position,
      s.fault,
      s.item,
      h.id as document_id,
      s.page_number,
      s.block_index,
      b.content is not null as is_found,
      case
        when b.content is not null
          then citeledger_private.quote_fault(b.content, s.char_start, s.char_end, s.quote)
      end as reason
    from span as s
    left join held as h on h.id = s.document_id
    left join lateral (
      select b.content
      from citeledger.document_page_blocks as b
      where b.firm_id = v_firm_id
        and b.document_id = h.id
        and b.page_number = s.page_number
        and b.block_index = s.block_index
      offset 0
    ) as b on true
    offset 0
  )
  -- What cite_answer answers, as a row: of rows the list is made at once, of objects by making
  -- each of them twice. What was not compared stays null.
  select
    to_jsonb(array_agg(case when f.is_found then a end order by f.position)),
    array_agg(f.position order by f.position) filter (where not f.is_found),
    array_agg(f.fault order by f.position) filter (where not f.is_found),
    array_agg(case when f.document_id is not null then f.item end order by f.position)
      filter (where not f.is_found)
  into v_result, v_positions, v_faults, v_spans
  from found as f
  cross join lateral (
    select
      f.item as span,
      f.reason as reason,
      f.reason is null as verified,
      case
        when f.reason is null then citeledger_private.page_link(
          v_matter_link, f.document_id, f.page_number, f.block_index
        )
      end as deep_link,
      statement_timestamp() as checked_at,
      'live' as engine_state
  ) as a;
  if v_positions is null then
    return coalesce(v_result, '[]');
  end if;

  with rest as materialized (
    select
      r.position,
      r.fault,
      r.item is not null as is_held,
      case when r.item is not null then citeledger_private.to_span(r.item) end as span
    from unnest(v_positions, v_faults, v_spans) as r (position, fault, item)
  ),
  held as materialized (
    select
      array_agg(r.position order by r.position) as positions,
      array_agg(r.span order by r.position) as spans
    from rest as r
    where r.is_held
    having count(*) > 0
  ),
  checked as materialized (
    select h.positions[c.span_position] as position, c.reason
    from held as h
    cross join lateral citeledger_private.resolve_spans(v_firm_id, h.spans) as c
  )
  -- What neither way compared stays without a verdict, never with a good one.
  select jsonb_agg(
    case
      when r.position is null then i.item
      when r.fault is not null then jsonb_build_object(
        'error',
        jsonb_build_object('sqlstate', '22023', 'message', 'the span is malformed: ' || r.fault)
      )
      when c.position is not null
        then citeledger_private.cite_resolution(v_matter_number, r.span, c.reason)
      else jsonb_build_object(
        'error', jsonb_build_object('sqlstate', 'P0002', 'message', 'record not found')
      )
    end
    order by i.position
  )
  into v_result
  from jsonb_array_elements(v_result) with ordinality as i (item, position)
  left join rest as r on r.position = i.position
  left join checked as c on c.position = i.position;
  return v_result;
end
$$;

comment on function citeledger.cite_many(uuid, jsonb) is
  'cite for a list of spans of one matter, set-based: a JSON array of CiteResolutions in the order '
  'of p_spans. Permission and matter are checked once. A bad item becomes {"error": {"sqlstate", '
  '"message"}} in its place and spoils no other: 22023 for a malformed span, with the offending '
  'key in the message, P0002 for a document that the matter does not hold as a live, '
  'non-privileged record. For citeledger_reader. Errors: 42501 without matters:read; 22023 when '
  'p_spans is no array; P0002 when the matter is not visible.';

revoke all on function citeledger.cite_many(uuid, jsonb) from public;
grant execute on function citeledger.cite_many(uuid, jsonb) to citeledger_reader;
grant execute on function citeledger.cite_many(uuid, jsonb) to citeledger_app;
grant execute on function citeledger.cite_many(uuid, jsonb) to citeledger_admin;

reset role;

-- graph/get_citations

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.visible_documents(
  p_firm_id uuid,
  p_document_ids uuid[]
)
returns setof uuid
language plpgsql
stable
parallel safe
security invoker
rows 10
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
begin
  -- Each matter is asked about once, and only those that hold one of the documents: what a wall
  -- costs to see is then the same however many matters the firm has.
  return query
  with live as materialized (
    select d.id, d.project_id
    from citeledger.documents as d
    where d.firm_id = p_firm_id and d.id = any(p_document_ids) and d.deleted_at is null
  ),
  seen as materialized (
    select m.project_id
    from (select distinct l.project_id from live as l where l.project_id is not null) as m
    where (
      select p.id
      -- The wall by name besides: a foreign key's cascade passes row security.
      from citeledger.projects as p
      where p.firm_id = p_firm_id
        and p.id = m.project_id
        and not citeledger_private.is_behind_wall(p_firm_id, p.id)
    ) is not null
  )
  select l.id
  from live as l
  where l.project_id is null or l.project_id in (select s.project_id from seen as s);
end
$$;

comment on function citeledger_private.visible_documents(uuid, uuid[]) is
  'Those of the documents that are live and in no matter that is hidden from the caller.';

revoke all on function citeledger_private.visible_documents(uuid, uuid[]) from public;

reset role;

-- graph/documents_to_check

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- Not concurrently, which no transaction can: writers of documents wait while they are read once.
-- A no-op but where an upgrade was interrupted and is run again; then it needs no notice.
set local client_min_messages = warning;
-- squawk-ignore require-concurrent-index-creation
create index if not exists documents_withdrawn_idx on citeledger.documents (firm_id, id)
  where deleted_at is not null;
-- Not "is not null": what looks for a document of a known matter would take it for the primary key.
-- squawk-ignore require-concurrent-index-creation
create index if not exists documents_in_matters_idx on citeledger.documents (firm_id, id)
  where num_nonnulls(project_id) = 1;

comment on index citeledger.documents_withdrawn_idx is
  'Which of some documents are withdrawn: asked at each hop of a walk, and mostly of few rows.';
comment on index citeledger.documents_in_matters_idx is
  'Which of some documents are in a matter, so that a wall may stand before them: asked at each '
  'hop of a walk where the firm has walls.';

reset role;

-- graph/walk_citations

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.walk_citations(
  p_document_ids uuid[],
  p_max_hops integer default 2,
  p_direction text default 'both'
)
returns table (
  document_id uuid,
  hop integer
)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_frontier uuid[];
  v_visited uuid[];
  v_suspects uuid[];
  v_hop integer := 0;
  v_has_walls boolean;
  v_has_withdrawn boolean;
begin
  -- Asked as an expression first: to perform a function is a query, and this is a short call.
  if citeledger.has_permission('matters:read') is not true then
    perform citeledger.require_permission('matters:read');
  end if;
  if p_max_hops is null or p_max_hops < 0 then
    raise exception using
      errcode = '22023',
      message = 'p_max_hops is not a number of hops',
      detail = format('p_max_hops is %s.', coalesce(p_max_hops::text, 'null')),
      hint = 'Pass a number from 0 up; beyond the depth of the graph it does no harm.';
  end if;
  if p_direction is null or p_direction not in ('cites', 'cited_by', 'both') then
    raise exception using
      errcode = '22023',
      message = 'p_direction is not a direction',
      detail = 'It is none of cites, cited_by and both.',
      hint = 'Pass cites, cited_by or both.';
  end if;

  -- Which of the given ones are there, and what the firm has of walls and of withdrawn documents:
  -- asked once and in one statement, for it is all one snapshot. By the first of an index, which
  -- costs the same whether there are many or none; whether any exists may be asked of the whole
  -- table. That a document is there its key says: no row is read for it.
  select
    array(
      select d.id
      from citeledger.documents as d
      where d.firm_id = v_firm_id and d.id = any(p_document_ids)
      order by d.id
    ),
    (
      select m.project_id
      from citeledger.project_members as m
      where m.firm_id = v_firm_id
      order by m.project_id
      limit 1
    ) is not null,
    (
      select d.id
      from citeledger.documents as d
      where d.firm_id = v_firm_id and d.deleted_at is not null
      order by d.id
      limit 1
    ) is not null
  into v_frontier, v_has_walls, v_has_withdrawn;

  -- Breadth first over an array: each document once, at its least hop, to the graph's own depth.
  loop
    -- All of these are documents of the firm, for an edge has foreign keys to both its ends. One
    -- that is live and of no matter is there for the whole firm, as is one of any matter where no
    -- wall stands: a matter that a document names is there, by its foreign key. So only the others
    -- are looked at; which they are two indexes know, without a row of any other.
    if v_has_walls or v_has_withdrawn then
      v_suspects := array(
        select d.id
        from citeledger.documents as d
        where v_has_withdrawn
          and d.firm_id = v_firm_id
          and d.id = any(v_frontier)
          and d.deleted_at is not null
        union all
        select d.id
        from citeledger.documents as d
        where v_has_walls
          and d.firm_id = v_firm_id
          and d.id = any(v_frontier)
          and num_nonnulls(d.project_id) = 1
      );
      if cardinality(v_suspects) > 0 then
        v_frontier := array(
          select f.id
          from (
            select r.id from unnest(v_frontier) as r (id)
            except
            (
              select s.id from unnest(v_suspects) as s (id)
              except
              select v.id from citeledger_private.visible_documents(v_firm_id, v_suspects) as v (id)
            )
          ) as f
          order by f.id
        );
      end if;
    end if;
    -- In the order of the array, which is that of the ids.
    return query select unnest(v_frontier), v_hop;
    exit when v_hop >= p_max_hops or cardinality(v_frontier) = 0;
    v_hop := v_hop + 1;
    v_visited := v_visited || v_frontier;
    -- The last hop is mostly most of the walk, and nothing starts from it: where there is nothing
    -- to look at either it goes straight out, through no array. Sorted inside as well, where a row
    -- is the id alone, which is the cheaper sort; the outer order then has nothing left to do.
    if v_hop = p_max_hops and not v_has_walls and not v_has_withdrawn then
      return query
      select e.id, v_hop
      from (
        (
          select c.cited_document_id
          from citeledger.document_citations as c
          where c.firm_id = v_firm_id
            and c.citing_document_id = any(v_frontier)
            and p_direction in ('cites', 'both')
          union all
          select c.citing_document_id
          from citeledger.document_citations as c
          where c.firm_id = v_firm_id
            and c.cited_document_id = any(v_frontier)
            and p_direction in ('cited_by', 'both')
        )
        except
        select unnest(v_visited)
        order by cited_document_id
      ) as e (id)
      order by e.id;
      exit;
    end if;
    v_frontier := array(
      select e.id
      from (
        (
          select c.cited_document_id
          from citeledger.document_citations as c
          where c.firm_id = v_firm_id
            and c.citing_document_id = any(v_frontier)
            and p_direction in ('cites', 'both')
          union all
          select c.citing_document_id
          from citeledger.document_citations as c
          where c.firm_id = v_firm_id
            and c.cited_document_id = any(v_frontier)
            and p_direction in ('cited_by', 'both')
        )
        except
        select unnest(v_visited)
      ) as e (id)
      order by e.id
    );
  end loop;
end
$$;

comment on function citeledger.walk_citations(uuid[], integer, text) is
  'The documents within p_max_hops citations of p_document_ids, each once, at its least hop; the '
  'given ones that are there at hop 0. p_direction: cites, cited_by or both. Rows by hop, then by '
  'id. A document that is not live, or in a matter that is hidden from the caller, is neither '
  'returned nor walked through. Needs matters:read. For citeledger_reader. Errors: 42501 without '
  'the permission; 22023 for hops that are null or negative, or another direction.';

revoke all on function citeledger.walk_citations(uuid[], integer, text) from public;
grant execute on function citeledger.walk_citations(uuid[], integer, text) to citeledger_reader;
grant execute on function citeledger.walk_citations(uuid[], integer, text) to citeledger_app;
grant execute on function citeledger.walk_citations(uuid[], integer, text) to citeledger_admin;

reset role;

-- graph/document_triggers

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.documents_arrived()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm record;
  v_outer text;
  v_awaited text[];
begin
  for v_firm in
    select n.firm_id, array_agg(distinct n.doi_key) as keys
    from new_rows as n
    where n.doi_key is not null
    group by n.firm_id
    order by n.firm_id
  loop
    v_outer := citeledger_private.enter_firm(v_firm.firm_id);
    perform citeledger_private.lock_graph(v_firm.firm_id);
    -- Under the lock, so that what was recorded before is seen, and what comes later will see these
    -- documents. What no list names gives no edge, and what just arrived has no list yet. Counted,
    -- for that is a look-up by index of each, whatever the planner expects; firm and keys through
    -- sub-selects, for what is known of them would else make the plan look worth making anew.
    v_awaited := array(
      select k.doi_key
      from unnest((select v_firm.keys)) as k (doi_key)
      where (
        select count(*)
        from citeledger.document_references as r
        where r.firm_id = (select v_firm.firm_id) and r.doi_key = k.doi_key
      ) > 0
    );
    if cardinality(v_awaited) > 0 then
      perform citeledger_private.reconcile_edges(v_firm.firm_id, '{}', v_awaited);
    end if;
    perform citeledger_private.leave_firm(v_outer);
  end loop;
  return null;
end
$$;

comment on function citeledger_private.documents_arrived() is
  'Trigger function: resolves the references that name the DOIs of inserted documents. Errors: '
  '25000 above read committed.';

revoke all on function citeledger_private.documents_arrived() from public;

reset role;

-- ledger/entry_values

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.entry_values(
  p_firm_id uuid,
  p_message_ids uuid[],
  p_source_ids uuid[]
)
returns table (
  project_id uuid,
  chat_id uuid,
  message_id uuid,
  source_table text,
  source_id uuid,
  message_citation_id uuid,
  message_caselaw_citation_id uuid,
  message_tool_source_id uuid,
  source_kind text,
  verification_status text,
  confidence double precision,
  provider text,
  retrieved_at timestamptz
)
language plpgsql
stable
parallel safe
security invoker
rows 10
set search_path = pg_catalog, pg_temp
-- An array of one looks cheaper than the generic plan's ten, so each call would be planned anew.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_sorted uuid[];
  v_least uuid := uuid '00000000-0000-0000-0000-000000000000';
  v_greatest uuid := uuid 'ffffffff-ffff-ffff-ffff-ffffffffffff';
begin
  if p_source_ids is not null then
    v_sorted := case
      when cardinality(p_source_ids) > 1
        then array(select s.id from unnest(p_source_ids) as s (id) order by s.id)
      else p_source_ids
    end;
    v_least := v_sorted[1];
    v_greatest := v_sorted[cardinality(v_sorted)];
  end if;

  -- Laterally, an index look-up for each turn, whatever the planner knows of the tables: "offset 0"
  -- keeps it from turning this into a scan of the firm. All sources, or from the first of the
  -- changed ones to the last: an "or" alone would read the whole turn for one late source, and a
  -- branch for each case would be twice as much to prepare.
  return query
  with turn as materialized (
    select m.id, m.chat_id, c.project_id
    from unnest(p_message_ids) as t (id)
    cross join lateral (
      select m.id, m.chat_id
      from citeledger.messages as m
      where m.firm_id = p_firm_id and m.id = t.id and m.role = 'assistant'
      offset 0
    ) as m
    cross join lateral (
      select c.project_id
      from citeledger.chats as c
      where c.firm_id = p_firm_id and c.id = m.chat_id
      offset 0
    ) as c
  )
  select
    t.project_id, t.chat_id, t.id, 'message_citations', s.id,
    s.id, null::uuid, null::uuid,
    'kb_document',
    case when s.verified then s.verification_method else 'unverified' end,
    case when s.verified then s.verification_confidence::double precision end,
    null::text,
    null::timestamptz
  from turn as t
  cross join lateral (
    select s.*
    from citeledger.message_citations as s
    where s.firm_id = p_firm_id
      and s.message_id = t.id
      and s.id between v_least and v_greatest
      and (p_source_ids is null or s.id = any(p_source_ids))
    offset 0
  ) as s
  union all
  select
    t.project_id, t.chat_id, t.id, 'message_caselaw_citations', s.id,
    null, s.id, null,
    'caselaw',
    case when s.verified then s.verification_method else 'unverified' end,
    case when s.verified then s.verification_confidence end,
    'courtlistener',
    s.created_at
  from turn as t
  cross join lateral (
    select s.*
    from citeledger.message_caselaw_citations as s
    where s.firm_id = p_firm_id
      and s.message_id = t.id
      and s.id between v_least and v_greatest
      and (p_source_ids is null or s.id = any(p_source_ids))
    offset 0
  ) as s
  union all
  select
    t.project_id, t.chat_id, t.id, 'message_tool_sources', s.id,
    null, null, s.id,
    s.source_kind,
    'provenance',
    null,
    s.provider,
    s.created_at
  from turn as t
  cross join lateral (
    select s.*
    from citeledger.message_tool_sources as s
    where s.firm_id = p_firm_id
      and s.message_id = t.id
      and s.id between v_least and v_greatest
      and (p_source_ids is null or s.id = any(p_source_ids))
    offset 0
  ) as s;
end
$$;

comment on function citeledger_private.entry_values(uuid, uuid[], uuid[]) is
  'What the ledger must say of the sources of the given turns: the one place that maps a source '
  'row to an entry. p_source_ids limits it to those sources; null means all of them. A message '
  'that is unknown, or not the assistant''s, has none.';

revoke all on function citeledger_private.entry_values(uuid, uuid[], uuid[]) from public;

reset role;

-- gate/compute_and_record_gate

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.compute_and_record_gate(
  p_message_id uuid
)
returns citeledger.work_product_fiduciary_gate
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_gate citeledger.work_product_fiduciary_gate;
begin
  perform citeledger_private.lock_turns(v_firm_id, array[p_message_id]);

  -- The firm through a sub-select: of one that the statistics do not know a row is expected, and
  -- then any index would do.
  if not exists (
    select
    from citeledger.messages as m
    where m.firm_id = (select v_firm_id) and m.id = p_message_id and m.role = 'assistant'
  ) then
    return null;
  end if;

  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    perform citeledger_private.withdraw_gates(v_firm_id, array[p_message_id], 'isolation', '25000');
    return null;
  end if;

  -- Where an earlier attempt failed, the ledger may be behind its sources: it is caught up first.
  if exists (
    select
    from citeledger.finalize_failure as f
    where f.firm_id = (select v_firm_id) and f.message_id = p_message_id
  ) then
    perform citeledger_private.assemble_turn(v_firm_id, p_message_id);
  end if;

  perform citeledger_private.record_gates(v_firm_id, array[p_message_id]);

  select g.*
  into v_gate
  from citeledger.work_product_fiduciary_gate as g
  where g.firm_id = (select v_firm_id) and g.message_id = p_message_id;
  return v_gate;
end
$$;

comment on function citeledger.compute_and_record_gate(uuid) is
  'Computes the verdict of the turn p_message_id from its ledger entries, stores it, and returns '
  'the row; an unchanged verdict is not written again. A citation that has no entry counts as '
  'failed. A turn with logged failures is assembled first. An unrecognised status counts in no '
  'tier, flags the turn, and is named in one warning. Null, and no row, for an unknown message and '
  'for one that is not the assistant''s. Above read committed no verdict is recorded: null, logged '
  'in finalize_failure (stage isolation). What it cannot see is a citation that the application '
  'never recorded: record failed ones too, as verified = false, also for caselaw. Locks the '
  'message until the transaction ends. For citeledger_app.';

revoke all on function citeledger.compute_and_record_gate(uuid) from public;
grant execute on function citeledger.compute_and_record_gate(uuid) to citeledger_app;
grant execute on function citeledger.compute_and_record_gate(uuid) to citeledger_admin;

reset role;

-- graph/record_references

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.record_references(
  p_document_id uuid,
  p_dois text[],
  p_source text default 'crossref'
)
returns jsonb
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_usable bigint;
begin
  if p_dois is null then
    raise exception using
      errcode = '22023',
      message = 'p_dois is not a list of DOIs',
      detail = 'p_dois is null.',
      hint = 'Pass an empty list to say that the document cites nothing.';
  end if;
  if p_source is null or p_source collate "C" !~ '^[a-z][a-z0-9_]{0,31}$' then
    raise exception using
      errcode = '22023',
      message = 'p_source is not a label',
      detail = 'A label is a lower-case letter, then at most 31 lower-case letters, digits or _.',
      hint = 'Pass for example crossref.';
  end if;

  perform citeledger_private.lock_graph(v_firm_id);
  -- The firm through a sub-select: of one that the statistics do not know a row is expected, and
  -- then any index would do.
  perform
  from citeledger.documents as d
  where d.firm_id = (select v_firm_id) and d.id = p_document_id
  for key share;
  if not found then
    raise exception using
      errcode = 'P0002',
      message = 'document not found',
      detail = 'No document of this id is in the firm of the context.',
      hint = 'Check the id and the firm of the context.';
  end if;

  delete from citeledger.document_references as r
  where r.firm_id = (select v_firm_id)
    and r.document_id = p_document_id
    and r.source = p_source;

  with printed as materialized (
    select n.doi, n.position, citeledger.normalize_doi(n.doi) as doi_key
    from unnest(p_dois) with ordinality as n (doi, position)
  ),
  written as (
    insert into citeledger.document_references (
      firm_id, document_id, position, cited_doi, source
    )
    select distinct on (p.doi_key) v_firm_id, p_document_id, p.position, p.doi, p_source
    from printed as p
    where p.doi_key is not null
    order by p.doi_key, p.position
    on conflict do nothing
    returning id
  )
  select count(p.doi_key) into v_usable from printed as p;

  return citeledger_private.reconcile_edges(
      v_firm_id, array[p_document_id], '{}', p_source => p_source
    )
    || jsonb_build_object('unusable', cardinality(p_dois) - v_usable);
end
$$;

comment on function citeledger.record_references(uuid, text[], text) is
  'Replaces the reference list of the document p_document_id for the source p_source, and resolves '
  'it. p_dois: the DOIs as printed, in their order; repeats of one DOI are one reference, at its '
  'first place. Strings without a DOI and nulls are counted as unusable and not stored. Returns '
  'the keys of resolve_references, for this list, and "unusable". Locks the firm''s graph until '
  'the transaction ends. For citeledger_app. Errors: 22023 for a null list or a source that is no '
  'label; P0002 when the document is not in the firm; 25000 above read committed.';

revoke all on function citeledger.record_references(uuid, text[], text) from public;
grant execute on function citeledger.record_references(uuid, text[], text) to citeledger_app;
grant execute on function citeledger.record_references(uuid, text[], text) to citeledger_admin;

reset role;

-- ops/describe_function

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

reset role;

-- ops/jit_off

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- Whatever is called from outside, and so all that it calls, has its statements interpreted. A
-- server that can compile plans goes by their estimate, and that of a plan that is kept is high: it
-- counts on ten elements of each array, and on a firm of average size. To compile such a plan takes
-- a hundred times as long as to run it, and is done anew each time.
alter function citeledger.assemble_ledger_entries(uuid) set jit = off;
alter function citeledger.check_integrity() set jit = off;
alter function citeledger.cite(uuid, jsonb) set jit = off;
alter function citeledger.cite_ledger_entry(uuid) set jit = off;
alter function citeledger.cite_many(uuid, jsonb) set jit = off;
alter function citeledger.compute_and_record_gate(uuid) set jit = off;
alter function citeledger.corpus_delete(uuid[]) set jit = off;
alter function citeledger.delete_firm(uuid) set jit = off;
alter function citeledger.finalize_pending(integer) set jit = off;
alter function citeledger.finalize_turn(uuid) set jit = off;
alter function citeledger.finalize_turns(uuid[]) set jit = off;
alter function citeledger.get_citations(uuid) set jit = off;
alter function citeledger.graph_gc(boolean) set jit = off;
alter function citeledger.graph_stage(text[], integer, boolean, jsonb, integer) set jit = off;
alter function citeledger.ledger_trace(uuid, uuid) set jit = off;
alter function citeledger.read_pages(uuid, uuid, integer) set jit = off;
alter function citeledger.recheck_document(uuid) set jit = off;
alter function citeledger.record_crossref_work(uuid, jsonb) set jit = off;
alter function citeledger.record_references(uuid, text[], text) set jit = off;
alter function citeledger.replace_document_pages(uuid, jsonb) set jit = off;
alter function citeledger.resolve_references(boolean) set jit = off;
alter function citeledger.resolve_span(jsonb) set jit = off;
alter function citeledger.suggest_spans(uuid, jsonb, integer) set jit = off;
alter function citeledger.walk_citations(uuid[], integer, text) set jit = off;
alter function citeledger_private.before_ingest() set jit = off;
alter function citeledger_private.citation_updated() set jit = off;
alter function citeledger_private.documents_arrived() set jit = off;
alter function citeledger_private.documents_changed() set jit = off;
alter function citeledger_private.documents_left() set jit = off;
alter function citeledger_private.finalize_inserted() set jit = off;
alter function citeledger_private.finalize_updated() set jit = off;
alter function citeledger_private.keep_deleted_values() set jit = off;
alter function citeledger_private.keep_replaced_values() set jit = off;
alter function citeledger_private.seal_message() set jit = off;
alter function citeledger_private.source_deleted() set jit = off;
alter function citeledger_private.source_inserted() set jit = off;

reset role;

-- ops/version

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.version()
returns text
language sql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
  select '0.2.0'::text
$$;

comment on function citeledger.version() is
  'The version of the installed schema, MAJOR.MINOR.PATCH. A client refuses one that it does not '
  'know.';

revoke all on function citeledger.version() from public;
grant execute on function citeledger.version() to citeledger_reader;
grant execute on function citeledger.version() to citeledger_app;
grant execute on function citeledger.version() to citeledger_admin;

reset role;
