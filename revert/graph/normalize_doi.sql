-- Revert citeledger:graph/normalize_doi from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.normalize_doi(text);
drop function citeledger_private.percent_decode(text);

commit;
