-- Verify citeledger:cite/plain_span on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger_private.is_plain_span(jsonb)', $facts$
  arguments p_span jsonb
  immutable
  language sql
  owner citeledger_owner
  parallel safe
  returns boolean
  security invoker
  set nothing
$facts$);

rollback;
