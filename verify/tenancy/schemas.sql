-- Verify citeledger:tenancy/schemas on pg

begin;

set local search_path = pg_catalog, pg_temp;

do $$
declare
  v_wrong text;
begin
  select pg_catalog.string_agg(f.line, '; ' order by f.line)
  into v_wrong
  from (
    (
      select * from (values
        ('citeledger is owned by citeledger_owner'),
        ('citeledger: usage to citeledger_admin'),
        ('citeledger: usage to citeledger_app'),
        ('citeledger: usage to citeledger_reader'),
        ('citeledger_private is owned by citeledger_owner'),
        ('new functions: nothing to public'),
        ('new types: nothing to public')
      ) as e (line)
    )
    except
    (
      select pg_catalog.format('%s is owned by %s', n.nspname,
        pg_catalog.pg_get_userbyid(n.nspowner))
      from pg_catalog.pg_namespace as n
      where n.nspname in ('citeledger', 'citeledger_private')
      union all
      select pg_catalog.format(
        '%s: %s to %s', n.nspname, pg_catalog.lower(g.privilege_type collate "C"),
        pg_catalog.pg_get_userbyid(g.grantee)
      )
      from pg_catalog.pg_namespace as n
      cross join lateral pg_catalog.aclexplode(n.nspacl) as g
      where n.nspname in ('citeledger', 'citeledger_private') and g.grantee <> 0
      union all
      select case d.defaclobjtype
        when 'f' then 'new functions: nothing to public' else 'new types: nothing to public' end
      from pg_catalog.pg_default_acl as d
      where d.defaclrole = pg_catalog.to_regrole('citeledger_owner')
        and d.defaclnamespace = 0
        and d.defaclobjtype in ('f', 'T')
        and not exists (
          select from pg_catalog.aclexplode(d.defaclacl) as g where g.grantee = 0
        )
    )
    union all
    -- Who else may use a schema, or create in it.
    select pg_catalog.format(
      '%s: %s to %s', n.nspname, pg_catalog.lower(g.privilege_type collate "C"),
      case when g.grantee = 0 then 'public' else pg_catalog.pg_get_userbyid(g.grantee)::text end
    )
    from pg_catalog.pg_namespace as n
    cross join lateral pg_catalog.aclexplode(n.nspacl) as g
    where n.nspname in ('citeledger', 'citeledger_private')
      and g.grantee <> n.nspowner
      and not (
        n.nspname = 'citeledger'
        and g.privilege_type = 'USAGE'
        and g.grantee in (
          pg_catalog.to_regrole('citeledger_reader'),
          pg_catalog.to_regrole('citeledger_app'),
          pg_catalog.to_regrole('citeledger_admin')
        )
      )
    union all
    select pg_catalog.format('%s has no comment', n.nspname)
    from pg_catalog.pg_namespace as n
    where n.nspname in ('citeledger', 'citeledger_private')
      and pg_catalog.obj_description(n.oid, 'pg_namespace') is null
  ) as f (line);
  if v_wrong is not null then
    raise exception using
      errcode = '55000',
      message = 'the schemas are not as they were deployed',
      detail = pg_catalog.format('Missing or unexpected: %s.', v_wrong),
      hint = 'Somebody changed them by hand: put them back, or revert and deploy the change.';
  end if;
end
$$;

rollback;
