-- Revert citeledger:ops/check_integrity from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.check_integrity();

commit;
