-- Revert citeledger:ops/version from pg

begin;

set local role citeledger_owner;

drop function citeledger.version();

commit;
