-- Revert citeledger:tenancy/acting_firm from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.leave_firm(text);
drop function citeledger_private.enter_firm(uuid);

commit;
