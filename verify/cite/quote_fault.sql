-- Verify citeledger:cite/quote_fault on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger_private.quote_fault(text, integer, integer, text)', $facts$
  arguments p_content text, p_char_start integer, p_char_end integer, p_quote text
  immutable
  language sql
  owner citeledger_owner
  parallel safe
  returns text
  security invoker
  set nothing
$facts$);

rollback;
