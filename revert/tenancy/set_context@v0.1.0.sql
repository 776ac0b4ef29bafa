-- Revert citeledger:tenancy/set_context from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.set_context(uuid, uuid, text[]);

commit;
