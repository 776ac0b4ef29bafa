-- Verify citeledger:ops/version on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger.version()', $facts$
  arguments none
  grant execute to citeledger_admin
  grant execute to citeledger_app
  grant execute to citeledger_reader
  immutable
  language sql
  owner citeledger_owner
  parallel safe
  returns text
  security invoker
  set search_path=pg_catalog, pg_temp
$facts$);

do $$
begin
  if citeledger.version() <> '0.2.0' then
    raise exception using
      errcode = '55000',
      message = 'citeledger.version() is not as it was deployed',
      detail = format('It says %s, not 0.2.0.', citeledger.version()),
      hint = 'Somebody changed it by hand: put it back, or revert and deploy the change.';
  end if;
end
$$;

rollback;
