-- Revert citeledger:cite/resolve_spans from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.resolve_spans(uuid, citeledger_private.span[]);

commit;
