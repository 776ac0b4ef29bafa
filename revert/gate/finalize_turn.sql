-- Revert citeledger:gate/finalize_turn from pg

begin;

set local role citeledger_owner;

drop function citeledger.finalize_turn(uuid);

commit;
