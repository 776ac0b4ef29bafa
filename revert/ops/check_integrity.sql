-- Revert citeledger:ops/check_integrity from pg

begin;

set local role citeledger_owner;

drop function citeledger.check_integrity();

commit;
