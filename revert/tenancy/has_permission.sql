-- Revert citeledger:tenancy/has_permission from pg

begin;

set local role citeledger_owner;

drop function citeledger.has_permission(text);

commit;
