-- Revert citeledger:gate/verification_tier from pg

begin;

set local role citeledger_owner;

drop function citeledger.verification_tier(text);

commit;
