-- Revert citeledger:cite/quote_fault from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.quote_fault(text, integer, integer, text);

commit;
