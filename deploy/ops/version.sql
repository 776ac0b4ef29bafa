-- Deploy citeledger:ops/version to pg
-- requires: ops/version@v0.1.0
-- requires: ops/metadata_only_violations
-- requires: graph/edge_doi_valid

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.version()
returns text
language sql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
  select '0.2.0'::text
$$;

comment on function citeledger.version() is
  'The version of the installed schema, MAJOR.MINOR.PATCH. A client refuses one that it does not '
  'know.';

revoke all on function citeledger.version() from public;
grant execute on function citeledger.version() to citeledger_reader;
grant execute on function citeledger.version() to citeledger_app;
grant execute on function citeledger.version() to citeledger_admin;

commit;
