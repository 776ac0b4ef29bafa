-- Revert citeledger:tenancy/roles from pg

begin;

set local search_path = pg_catalog, pg_temp;

-- Another database of this cluster may still use a role, and people may be members of it: then the
-- role stays, and a notice says so. Dropping order: a role goes before the role it is a member of.
do $$
declare
  v_role text;
  v_reason text;
begin
  foreach v_role in array array[
    'citeledger_admin', 'citeledger_app', 'citeledger_reader', 'citeledger_owner'
  ] loop
    continue when not exists (select from pg_catalog.pg_roles as r where r.rolname = v_role);

    v_reason := null;
    if exists (
      select
      from pg_catalog.pg_shdepend as d
      where d.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass
        and d.refobjid = pg_catalog.to_regrole(v_role)
        and d.classid <> 'pg_catalog.pg_auth_members'::pg_catalog.regclass
    ) then
      v_reason := 'objects in this cluster depend on it';
    elsif exists (
      select
      from pg_catalog.pg_auth_members as m
      where m.roleid = pg_catalog.to_regrole(v_role)
        and m.member <> pg_catalog.to_regrole(pg_catalog.quote_ident(current_user))
    ) then
      v_reason := 'other roles are members of it';
    else
      begin
        execute pg_catalog.format('drop role %I', v_role);
      exception
        when insufficient_privilege then
          v_reason := 'the deployer may not drop it';
        when dependent_objects_still_exist then
          v_reason := 'objects in this cluster depend on it';
      end;
    end if;

    if v_reason is not null then
      raise notice 'role % stays: %', v_role, v_reason;
    end if;
  end loop;
end
$$;

commit;
