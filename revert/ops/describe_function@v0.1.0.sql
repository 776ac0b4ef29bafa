-- Revert citeledger:ops/describe_function from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.describe_function(regprocedure);

commit;
