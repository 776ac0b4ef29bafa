-- Deploy citeledger:ops/describe_relation to pg
-- requires: tenancy/schemas

begin;

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

commit;
