-- Revert citeledger:gate/withdraw_gates from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.withdraw_gates(uuid, uuid[], text, text);
drop function citeledger_private.clear_failures(uuid, uuid[]);
drop function citeledger_private.log_failure(uuid, uuid[], text, text);

commit;
