-- Deploy citeledger:tenancy/roles to pg

begin;

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

commit;
