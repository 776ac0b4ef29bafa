-- Verify citeledger:cite/record_in_matter on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger_private.visible_matter_number(uuid, uuid)', $facts$
  arguments p_firm_id uuid, p_matter_id uuid
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns text
  security invoker
  set search_path=pg_catalog, pg_temp; plan_cache_mode=force_generic_plan
  stable
$facts$);

select citeledger_private.verify_function(
  'citeledger_private.holds_record(uuid, uuid, uuid)', $facts$
  arguments p_firm_id uuid, p_matter_id uuid, p_document_id uuid
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns boolean
  security invoker
  set search_path=pg_catalog, pg_temp; plan_cache_mode=force_generic_plan
  stable
$facts$);

select citeledger_private.verify_function(
  'citeledger_private.refuse_as_not_found()', $facts$
  arguments none
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns void
  security invoker
  set search_path=pg_catalog, pg_temp
  stable
$facts$);

rollback;
