-- Revert citeledger:gate/record_gates from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.record_gates(uuid, uuid[]);
drop function citeledger_private.warn_of_unrecognized(text);

commit;
