-- Deploy citeledger:cite/cite_answer to pg
-- requires: cite/deep_link

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.cite_answer(
  p_matter_number text,
  p_document_id uuid,
  p_page_number integer,
  p_block_index integer,
  p_span jsonb,
  p_reason text
)
returns jsonb
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  -- The keys as jsonb keeps them, so that it need not sort them.
  return jsonb_build_object(
    'span', p_span,
    'reason', p_reason,
    'verified', p_reason is null,
    'deep_link', case
      when p_reason is null
        then citeledger.deep_link(p_matter_number, p_document_id, p_page_number, p_block_index)
    end,
    'checked_at', statement_timestamp(),
    'engine_state', 'live'
  );
end
$$;

comment on function citeledger_private.cite_answer(text, uuid, integer, integer, jsonb, text) is
  'A CiteResolution as JSON; the link is there only when p_reason is null, which means verified. '
  'p_span: the span as write_span writes it.';

revoke all
  on function citeledger_private.cite_answer(text, uuid, integer, integer, jsonb, text)
  from public;

commit;
