-- Revert citeledger:tenancy/acting_firm from pg

begin;

set local role citeledger_owner;

drop function citeledger_private.leave_firm(text);
drop function citeledger_private.enter_firm(uuid);

commit;
