-- Verify citeledger:cite/span on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

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
  'citeledger_private.to_span(jsonb)', $facts$
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
