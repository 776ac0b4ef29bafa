-- Revert citeledger:cite/cite_answer from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.cite_answer(text, uuid, integer, integer, jsonb, text);

commit;
