-- Revert citeledger:cite/cite from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.cite(uuid, jsonb);
drop function citeledger_private.cite_resolution(text, citeledger_private.span, text);

commit;
