-- Verify citeledger:cite/replace_document_pages on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger_private.pages_fault(jsonb)', $facts$
  arguments p_pages jsonb
  immutable
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns text
  security invoker
  set search_path=pg_catalog, pg_temp
$facts$);

select citeledger_private.verify_function(
  'citeledger.replace_document_pages(uuid, jsonb)', $facts$
  arguments p_document_id uuid, p_pages jsonb
  grant execute to citeledger_admin
  grant execute to citeledger_app
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns integer
  security definer
  set search_path=pg_catalog, pg_temp
  volatile
$facts$);

rollback;
