-- Deploy citeledger:cite/cite to pg
-- requires: cite/cite@v0.1.0
-- requires: cite/resolve_spans
-- requires: cite/record_in_matter
-- requires: cite/cite_answer

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
  return citeledger_private.cite_answer(
    p_matter_number,
    p_span.document_id,
    p_span.page_number,
    p_span.block_index,
    citeledger_private.write_span(p_span),
    p_reason
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
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_is_plain boolean;
  v_span citeledger_private.span;
  v_document_id uuid;
  v_page_number integer;
  v_block_index integer;
  v_char_start integer;
  v_char_end integer;
  v_quote text;
  v_matter_number text;
  v_is_held boolean;
  v_content text;
  v_reason text;
begin
  -- Asked as an expression first: to perform a function is a query, and this is a short call.
  if citeledger.has_permission('matters:read') is not true then
    perform citeledger.require_permission('matters:read');
  end if;

  v_is_plain := citeledger_private.is_plain_span(p_span);
  if v_is_plain then
    v_document_id := (p_span ->> 'document_id')::uuid;
    v_page_number := (p_span ->> 'page_number')::integer;
    v_block_index := (p_span ->> 'block_index')::integer;
  else
    v_span := citeledger_private.read_span(p_span);
    v_document_id := v_span.document_id;
  end if;

  -- One statement instead of three. Nothing is read of a document before its matter was seen, and
  -- no text before the document was. Row security decides on the matter, and the wall is asked for
  -- by name besides: inside the cascade of a foreign key, which anybody may set up on a temporary
  -- table, the owner passes row security, and a plan made there is used outside as well.
  select p.matter_number, d.id is not null, b.content
  into v_matter_number, v_is_held, v_content
  from citeledger.projects as p
  left join citeledger.documents as d
    on d.firm_id = v_firm_id
    and d.id = v_document_id
    and d.project_id = p.id
    and d.document_kind = 'record'
    and not d.is_privileged
    and d.deleted_at is null
  -- Mostly the block is named and there: then its text is all that is needed.
  left join citeledger.document_page_blocks as b
    on b.firm_id = v_firm_id
    and b.document_id = d.id
    and b.page_number = v_page_number
    and b.block_index = v_block_index
  where p.firm_id = v_firm_id
    and p.id = p_matter_id
    and citeledger_private.is_behind_wall(v_firm_id, p.id) is false;
  if v_is_held is not true then
    perform citeledger_private.refuse_as_not_found();
  end if;

  if v_content is not null then
    -- Each is read once: the planner puts what is passed wherever quote_fault looks at it.
    v_char_start := (p_span ->> 'char_start')::integer;
    v_char_end := (p_span ->> 'char_end')::integer;
    v_quote := p_span ->> 'quote';
    v_reason := citeledger_private.quote_fault(v_content, v_char_start, v_char_end, v_quote);
    return citeledger_private.cite_answer(
      v_matter_number, v_document_id, v_page_number, v_block_index, p_span, v_reason
    );
  end if;

  if v_is_plain then
    v_span := citeledger_private.to_span(p_span);
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
