-- Verify citeledger:tenancy/roles on pg

begin;

set local search_path = pg_catalog, pg_temp;

do $$
declare
  v_wrong text;
begin
  select pg_catalog.string_agg(e.name, ', ' order by e.name)
  into v_wrong
  from (values
    ('citeledger_owner'), ('citeledger_reader'), ('citeledger_app'), ('citeledger_admin')
  ) as e (name)
  left join pg_catalog.pg_roles as r on r.rolname = e.name
  where r.oid is null
    or r.rolsuper or r.rolbypassrls or r.rolcanlogin or r.rolcreaterole or r.rolcreatedb;
  if v_wrong is not null then
    raise exception using
      errcode = '55000',
      message = 'citeledger roles are absent or have attributes that they must not have',
      detail = pg_catalog.format('Wrong: %s.', v_wrong),
      hint = 'They must be NOLOGIN, NOSUPERUSER, NOBYPASSRLS, NOCREATEROLE and NOCREATEDB.';
  end if;

  -- Exactly this ladder: nothing but an admin is an app, and no role of ours is the owner.
  select pg_catalog.string_agg(pg_catalog.format('%s in %s', f.member, f.role), ', ')
  into v_wrong
  from (
    (
      select * from (values
        ('citeledger_app', 'citeledger_reader'),
        ('citeledger_admin', 'citeledger_app')
      ) as e (member, role)
      except
      select m.rolname, r.rolname
      from pg_catalog.pg_auth_members as a
      join pg_catalog.pg_roles as m on m.oid = a.member
      join pg_catalog.pg_roles as r on r.oid = a.roleid
    )
    union all
    select m.rolname, r.rolname
    from pg_catalog.pg_auth_members as a
    join pg_catalog.pg_roles as m on m.oid = a.member
    join pg_catalog.pg_roles as r on r.oid = a.roleid
    where m.rolname in (
        'citeledger_owner', 'citeledger_reader', 'citeledger_app', 'citeledger_admin')
      and (m.rolname, r.rolname) not in (
        ('citeledger_app', 'citeledger_reader'),
        ('citeledger_admin', 'citeledger_app')
      )
  ) as f (member, role);
  if v_wrong is not null then
    raise exception using
      errcode = '55000',
      message = 'citeledger roles are not members of each other as they were deployed',
      detail = pg_catalog.format('Missing or unexpected: %s.', v_wrong),
      hint = 'The app is a member of the reader, the admin of the app, and that is all.';
  end if;

  -- Later changes are deployed as the owner.
  if not pg_catalog.pg_has_role(current_user, 'citeledger_owner', 'usage') then
    raise exception using
      errcode = '55000',
      message = 'the deployer cannot become citeledger_owner',
      detail = 'The deploying role is not a member of citeledger_owner.',
      hint = 'Run: grant citeledger_owner to the deploying role.';
  end if;
end
$$;

rollback;
