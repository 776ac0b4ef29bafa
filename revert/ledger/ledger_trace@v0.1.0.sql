-- Revert citeledger:ledger/ledger_trace from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.ledger_trace(uuid, uuid);

commit;
