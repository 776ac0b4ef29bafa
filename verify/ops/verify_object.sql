-- Verify citeledger:ops/verify_object on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger_private.verify_lines(text, text[], text, text)', $facts$
  arguments p_object text, p_found text[], p_expected text, p_closed text
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns void
  security invoker
  set search_path=pg_catalog, pg_temp
  stable
$facts$);

select citeledger_private.verify_function(
  'citeledger_private.verify_relation(regclass, text)', $facts$
  arguments p_relation regclass, p_expected text
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns void
  security invoker
  set search_path=pg_catalog, pg_temp
  stable
$facts$);

select citeledger_private.verify_function(
  'citeledger_private.verify_parts(regclass, text)', $facts$
  arguments p_relation regclass, p_expected text
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns void
  security invoker
  set search_path=pg_catalog, pg_temp
  stable
$facts$);

select citeledger_private.verify_function(
  'citeledger_private.verify_function(regprocedure, text)', $facts$
  arguments p_function regprocedure, p_expected text
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns void
  security invoker
  set search_path=pg_catalog, pg_temp
  stable
$facts$);

rollback;
