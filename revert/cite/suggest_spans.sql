-- Revert citeledger:cite/suggest_spans from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.suggest_spans(uuid, jsonb, integer);
drop function citeledger_private.occurrences(text, text);

commit;
