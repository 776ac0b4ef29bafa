-- Deploy citeledger:tenancy/schemas to pg
-- requires: tenancy/roles

begin;

-- As the deployer: CREATE on the database is the deployer's, not the owner role's.
create schema citeledger authorization citeledger_owner;
create schema citeledger_private authorization citeledger_owner;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

comment on schema citeledger is
  'citeledger: the ledger of the sources that assistant turns used, and the verdict of each turn. '
  'Tables and public functions; every access is granted by name, none to PUBLIC.';
comment on schema citeledger_private is
  'citeledger: helpers and trigger functions. No role but the owner may look names up in it.';

-- A new function is executable by PUBLIC unless told otherwise; here none ever is, not even for the
-- moment between its creation and its revoke, and not after it was dropped and created again.
alter default privileges for role citeledger_owner revoke execute on functions from public;
alter default privileges for role citeledger_owner revoke usage on types from public;

grant usage on schema citeledger to citeledger_reader;
grant usage on schema citeledger to citeledger_app;
grant usage on schema citeledger to citeledger_admin;

commit;
