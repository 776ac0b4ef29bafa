-- Revert citeledger:tenancy/set_context from pg

begin;

set local role citeledger_owner;

drop function citeledger.set_context(uuid, uuid, text[]);

commit;
