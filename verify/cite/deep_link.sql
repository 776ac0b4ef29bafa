-- Verify citeledger:cite/deep_link on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger_private.matter_link(text)', $facts$
  arguments p_matter_number text
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns text
  security invoker
  set search_path=pg_catalog, pg_temp
  stable
$facts$);

select citeledger_private.verify_function(
  'citeledger_private.page_link(text, uuid, integer, integer)', $facts$
  arguments p_matter_link text, p_document_id uuid, p_page_number integer, p_block_index integer
  immutable
  language sql
  owner citeledger_owner
  parallel safe
  returns text
  security invoker
  set nothing
$facts$);

select citeledger_private.verify_function(
  'citeledger.deep_link(text, uuid, integer, integer)', $facts$
  arguments p_matter_number text, p_document_id uuid, p_page_number integer, p_block_index integer
    DEFAULT NULL::integer
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns text
  security invoker
  set search_path=pg_catalog, pg_temp
  stable
$facts$);

rollback;
