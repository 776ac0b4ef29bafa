-- Verify citeledger:graph/normalize_doi on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger_private.percent_decode(text)', $facts$
  arguments p_text text
  immutable
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns text
  security invoker
  set search_path=pg_catalog, pg_temp
$facts$);

select citeledger_private.verify_function(
  'citeledger.normalize_doi(text)', $facts$
  arguments p_doi text
  grant execute to citeledger_admin
  grant execute to citeledger_app
  grant execute to citeledger_reader
  immutable
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns text
  security definer
  set search_path=pg_catalog, pg_temp
$facts$);

rollback;
