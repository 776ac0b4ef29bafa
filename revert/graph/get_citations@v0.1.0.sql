-- Revert citeledger:graph/get_citations from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.get_citations(uuid);
drop function citeledger_private.visible_documents(uuid, uuid[]);

commit;
