-- Revert citeledger:cite/resolve_span from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.resolve_span(jsonb);
drop type citeledger.span_resolution;

commit;
