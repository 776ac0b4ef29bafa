-- Revert citeledger:cite/plain_span from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.is_plain_span(jsonb);

commit;
