-- Revert citeledger:cite/cite_many from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.cite_many(uuid, jsonb);

commit;
