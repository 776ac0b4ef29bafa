-- Revert citeledger:tenancy/current_user_id from pg

begin;

set local role citeledger_owner;

drop function citeledger.current_user_id();

commit;
