-- Revert citeledger:graph/corpus_delete from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.corpus_delete(uuid[]);

commit;
