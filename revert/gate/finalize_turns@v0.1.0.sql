-- Revert citeledger:gate/finalize_turns from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.finalize_turns(uuid[]);

commit;
