-- Revert citeledger:graph/edge_doi from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.edge_doi(text);

commit;
