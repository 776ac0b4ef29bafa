-- Revert citeledger:ops/describe_relation from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.describe_relation(regclass);

commit;
