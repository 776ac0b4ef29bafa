-- Revert citeledger:gate/finalize_turns from pg

begin;

set local role citeledger_owner;

drop function citeledger.finalize_turns(uuid[]);

commit;
