-- Verify citeledger:cite/cite_answer on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger_private.cite_answer(text, uuid, integer, integer, jsonb, text)', $facts$
  arguments p_matter_number text, p_document_id uuid, p_page_number integer, p_block_index integer,
    p_span jsonb, p_reason text
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns jsonb
  security invoker
  set search_path=pg_catalog, pg_temp
  stable
$facts$);

rollback;
