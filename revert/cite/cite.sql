-- Revert citeledger:cite/cite from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.cite_resolution(
  p_matter_number text,
  p_span citeledger_private.span,
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
  return jsonb_build_object(
    'verified', p_reason is null,
    'reason', p_reason,
    'deep_link', case
      when p_reason is null then citeledger.deep_link(
        p_matter_number, p_span.document_id, p_span.page_number, p_span.block_index
      )
    end,
    'engine_state', 'live',
    'checked_at', statement_timestamp(),
    'span', citeledger_private.write_span(p_span)
  );
end
$$;

create or replace function citeledger.cite(
  p_matter_id uuid,
  p_span jsonb
)
returns jsonb
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_span citeledger_private.span;
  v_matter_number text;
  v_reason text;
begin
  perform citeledger.require_permission('matters:read');
  v_span := citeledger_private.read_span(p_span);

  v_matter_number := citeledger_private.visible_matter_number(v_firm_id, p_matter_id);
  if v_matter_number is null
    or not citeledger_private.holds_record(v_firm_id, p_matter_id, v_span.document_id)
  then
    perform citeledger_private.refuse_as_not_found();
  end if;

  select r.reason
  into strict v_reason
  from citeledger_private.resolve_spans(v_firm_id, array[v_span]) as r;
  return citeledger_private.cite_resolution(v_matter_number, v_span, v_reason);
end
$$;

comment on function citeledger_private.cite_resolution(text, citeledger_private.span, text) is
  'A CiteResolution as JSON; the link is there only when p_reason is null, which means verified.';
comment on function citeledger.cite(uuid, jsonb) is
  'Checks a span of a record of the matter p_matter_id against the live page, now, and gives the '
  'link to it when it holds: {"verified", "reason", "deep_link", "engine_state": "live", '
  '"checked_at", "span"}. The checks come in this order: the permission matters:read (42501), the '
  'form of the span (22023), the matter is visible and holds the document as a live, '
  'non-privileged record (P0002), the text. For the span and the reasons see resolve_span. '
  'deep_link is null unless verified. checked_at is when the statement began. For '
  'citeledger_reader. Errors: 42501; 22023 with the offending key in DETAIL; P0002, the same '
  'whatever is not there.';

revoke all on function citeledger_private.cite_resolution(text, citeledger_private.span, text)
  from public;
revoke all on function citeledger.cite(uuid, jsonb) from public;
grant execute on function citeledger.cite(uuid, jsonb) to citeledger_reader;
grant execute on function citeledger.cite(uuid, jsonb) to citeledger_app;
grant execute on function citeledger.cite(uuid, jsonb) to citeledger_admin;

commit;
