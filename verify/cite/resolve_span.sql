-- Verify citeledger:cite/resolve_span on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

do $$
begin
  if not exists (
    select
    from pg_catalog.pg_type as t
    where t.oid = 'citeledger.span_resolution'::pg_catalog.regtype
      and pg_catalog.pg_get_userbyid(t.typowner) = 'citeledger_owner'
      and pg_catalog.obj_description(t.oid, 'pg_type') is not null
      and array[
        'verified boolean', 'reason text'
      ] = array(
        select pg_catalog.format(
          '%s %s', a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod)
        )
        from pg_catalog.pg_attribute as a
        where a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped
        order by a.attnum
      )
      and array['citeledger_admin', 'citeledger_app'] = array(
        select case when g.grantee = 0 then 'public'
          else pg_catalog.pg_get_userbyid(g.grantee)::text end
        from pg_catalog.aclexplode(coalesce(t.typacl, pg_catalog.acldefault('T', t.typowner))) as g
        where g.grantee <> t.typowner
        order by 1
      )
  ) then
    raise exception using
      errcode = '55000',
      message = 'citeledger.span_resolution is not as it was deployed',
      detail = 'Its owner, attributes, comment or privileges differ.',
      hint = 'Somebody changed it by hand: put it back, or revert and deploy the change.';
  end if;
end
$$;

select citeledger_private.verify_function(
  'citeledger.resolve_span(jsonb)', $facts$
  arguments p_span jsonb
  grant execute to citeledger_admin
  grant execute to citeledger_app
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns citeledger.span_resolution
  security definer
  set search_path=pg_catalog, pg_temp
  stable
$facts$);

rollback;
