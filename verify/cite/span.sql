-- Verify citeledger:cite/span on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

do $$
begin
  if not exists (
    select
    from pg_catalog.pg_type as t
    where t.oid = 'citeledger_private.span'::pg_catalog.regtype
      and pg_catalog.pg_get_userbyid(t.typowner) = 'citeledger_owner'
      and pg_catalog.obj_description(t.oid, 'pg_type') is not null
      and array[
        'document_id uuid', 'page_number integer', 'block_index integer',
        'char_start integer', 'char_end integer', 'quote text'
      ] = array(
        select pg_catalog.format(
          '%s %s', a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod)
        )
        from pg_catalog.pg_attribute as a
        where a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped
        order by a.attnum
      )
      and array[]::text[] = array(
        select case when g.grantee = 0 then 'public'
          else pg_catalog.pg_get_userbyid(g.grantee)::text end
        from pg_catalog.aclexplode(coalesce(t.typacl, pg_catalog.acldefault('T', t.typowner))) as g
        where g.grantee <> t.typowner
        order by 1
      )
  ) then
    raise exception using
      errcode = '55000',
      message = 'citeledger_private.span is not as it was deployed',
      detail = 'Its owner, attributes, comment or privileges differ.',
      hint = 'Somebody changed it by hand: put it back, or revert and deploy the change.';
  end if;
end
$$;

select citeledger_private.verify_function(
  'citeledger_private.is_whole_number(jsonb, integer)', $facts$
  arguments p_value jsonb, p_least integer
  immutable
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns boolean
  security invoker
  set search_path=pg_catalog, pg_temp
$facts$);

select citeledger_private.verify_function(
  'citeledger_private.is_blank(text)', $facts$
  arguments p_text text
  immutable
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns boolean
  security invoker
  set search_path=pg_catalog, pg_temp
$facts$);

select citeledger_private.verify_function(
  'citeledger_private.span_fault(jsonb)', $facts$
  arguments p_span jsonb
  immutable
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns text
  security invoker
  set search_path=pg_catalog, pg_temp
$facts$);

select citeledger_private.verify_function(
  'citeledger_private.read_span(jsonb)', $facts$
  arguments p_span jsonb
  immutable
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns citeledger_private.span
  security invoker
  set search_path=pg_catalog, pg_temp
$facts$);

select citeledger_private.verify_function(
  'citeledger_private.write_span(citeledger_private.span)', $facts$
  arguments p_span citeledger_private.span
  immutable
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns jsonb
  security invoker
  set search_path=pg_catalog, pg_temp
$facts$);

rollback;
