-- Revert citeledger:tenancy/current_firm_id from pg

begin;

set local role citeledger_owner;

drop function citeledger.current_firm_id();

commit;
