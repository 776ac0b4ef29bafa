-- Revert citeledger:tenancy/delete_firm from pg

begin;

set local role citeledger_owner;

drop function citeledger.delete_firm(uuid);

commit;
