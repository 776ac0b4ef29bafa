-- Revert citeledger:tenancy/create_firm from pg

begin;

set local role citeledger_owner;

drop function citeledger.create_firm(text);

commit;
