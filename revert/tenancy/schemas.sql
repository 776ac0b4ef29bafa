-- Revert citeledger:tenancy/schemas from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- Back to the built-in default, which removes the entries that would keep the role alive.
alter default privileges for role citeledger_owner grant execute on functions to public;
alter default privileges for role citeledger_owner grant usage on types to public;

drop schema citeledger_private;
drop schema citeledger;

commit;
