-- Revert citeledger:gate/finalize_report from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.finalize_report(uuid, uuid);
drop function citeledger_private.count_entries(uuid, uuid);

commit;
