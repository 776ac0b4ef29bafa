-- Revert citeledger:gate/finalize_pending from pg

begin;

set local role citeledger_owner;

drop function citeledger.finalize_pending(integer);

commit;
