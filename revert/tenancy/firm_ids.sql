-- Revert citeledger:tenancy/firm_ids from pg

begin;

set local role citeledger_owner;

drop function citeledger.firm_ids();

commit;
