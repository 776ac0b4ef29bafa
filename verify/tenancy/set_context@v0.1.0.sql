-- Verify citeledger:tenancy/set_context on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger.set_context(uuid, uuid, text[])', $facts$
  arguments p_firm_id uuid, p_user_id uuid DEFAULT NULL::uuid, p_permissions text[] DEFAULT
    '{}'::text[]
  grant execute to citeledger_admin
  grant execute to citeledger_app
  grant execute to citeledger_reader
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns void
  security invoker
  set search_path=pg_catalog, pg_temp
  volatile
$facts$);

rollback;
