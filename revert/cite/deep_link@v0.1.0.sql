-- Revert citeledger:cite/deep_link from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.deep_link(text, uuid, integer, integer);

commit;
