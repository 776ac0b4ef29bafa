-- Revert citeledger:tenancy/require_permission from pg

begin;

set local role citeledger_owner;

drop function citeledger.require_permission(text);

commit;
