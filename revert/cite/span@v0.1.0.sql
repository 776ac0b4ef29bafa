-- Revert citeledger:cite/span from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.write_span(citeledger_private.span);
drop function citeledger_private.read_span(jsonb);
drop function citeledger_private.to_span(jsonb);
drop function citeledger_private.span_fault(jsonb);
drop function citeledger_private.is_blank(text);
drop function citeledger_private.is_whole_number(jsonb, integer);
drop type citeledger_private.span;

commit;
