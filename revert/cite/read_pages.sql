-- Revert citeledger:cite/read_pages from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.read_pages(uuid, uuid, integer);

commit;
