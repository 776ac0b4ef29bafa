-- Revert citeledger:cite/resolve_span from pg

begin;

set local role citeledger_owner;

drop function citeledger.resolve_span(jsonb);
drop type citeledger.span_resolution;

commit;
