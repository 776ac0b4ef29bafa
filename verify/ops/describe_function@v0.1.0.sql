-- Verify citeledger:ops/describe_function on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- By hand: what the other verify scripts compare with is what this function says.
do $$
begin
  if not exists (
    select
    from pg_catalog.pg_proc as f
    where f.oid = 'citeledger_private.describe_function(regprocedure)'::pg_catalog.regprocedure
      and f.proowner = pg_catalog.to_regrole('citeledger_owner')
      and f.prokind = 'f'
      and not f.prosecdef
      and f.provolatile = 's'
      and f.proconfig = array['search_path=pg_catalog, pg_temp', 'quote_all_identifiers=off']
      and pg_catalog.obj_description(f.oid, 'pg_proc') is not null
      and not exists (
        select
        from pg_catalog.aclexplode(
          coalesce(f.proacl, pg_catalog.acldefault('f', f.proowner))
        ) as g
        where g.grantee <> f.proowner
      )
  ) then
    raise exception using
      errcode = '55000',
      message = 'citeledger_private.describe_function is not as it was deployed',
      detail = 'Its owner, labels, settings, comment or privileges differ.',
      hint = 'Somebody changed it by hand: revert and deploy the change.';
  end if;
end
$$;

rollback;
