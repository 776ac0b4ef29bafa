-- Deploy citeledger:cite/cite_many to pg
-- requires: cite/cite_many@v0.1.0
-- requires: cite/cite

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.cite_many(
  p_matter_id uuid,
  p_spans jsonb
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
  v_matter_number text;
  v_matter_link text;
  v_result jsonb;
  -- The items that have no answer yet: where they are, what is wrong with each, and its span if
  -- the matter holds its document.
  v_positions bigint[];
  v_faults text[];
  v_spans jsonb[];
begin
  -- Asked as an expression first: to perform a function is a query, and this may be a short call.
  if citeledger.has_permission('matters:read') is not true then
    perform citeledger.require_permission('matters:read');
  end if;
  if p_spans is null or jsonb_typeof(p_spans) <> 'array' then
    raise exception using
      errcode = '22023',
      message = 'p_spans is not a list of spans',
      detail = format('p_spans is %s.', coalesce(jsonb_typeof(p_spans), 'null')),
      hint = 'Pass a JSON array of spans; for a single one there is citeledger.cite.';
  end if;
  v_matter_number := citeledger_private.visible_matter_number(v_firm_id, p_matter_id);
  if v_matter_number is null then
    perform citeledger_private.refuse_as_not_found();
  end if;
  v_matter_link := citeledger_private.matter_link(v_matter_number);

  -- Each item is judged once, and each document asked for once: "offset 0" keeps what was found
  -- out, where to materialize would write each row once more. What can be looked at is well-formed,
  -- and of a record of the matter.
  with item as (
    select i.position, i.item, citeledger_private.is_plain_span(i.item) as is_plain
    from jsonb_array_elements(p_spans) with ordinality as i (item, position)
    offset 0
  ),
  judged as (
    select
      i.position,
      i.item,
      i.is_plain,
      case when not i.is_plain then citeledger_private.span_fault(i.item) end as fault
    from item as i
    offset 0
  ),
  -- No row is left out before the end, so that the planner joins as many as there are.
  written as (
    select
      j.position,
      j.fault,
      case
        when j.is_plain then j.item
        when j.fault is null
          then citeledger_private.write_span(citeledger_private.to_span(j.item))
      end as item
    from judged as j
    offset 0
  ),
  span as materialized (
    select
      w.position,
      w.fault,
      w.item,
      (w.item ->> 'document_id')::uuid as document_id,
      (w.item ->> 'page_number')::integer as page_number,
      (w.item ->> 'block_index')::integer as block_index,
      (w.item ->> 'char_start')::integer as char_start,
      (w.item ->> 'char_end')::integer as char_end,
      w.item ->> 'quote' as quote
    from written as w
  ),
  document as materialized (
    select distinct s.document_id as id from span as s
  ),
  held as materialized (
    select d.id
    from document as d
    where citeledger_private.holds_record(v_firm_id, p_matter_id, d.id)
  ),
  -- Mostly the block is named and there: then its text is all that is needed. Laterally, an index
  -- look-up for each span, whatever the planner knows of the table: "offset 0" keeps it so, and no
  -- plan reads every block of the firm.
  found as (
    select
      s.position,
      s.fault,
      s.item,
      h.id as document_id,
      s.page_number,
      s.block_index,
      b.content is not null as is_found,
      case
        when b.content is not null
          then citeledger_private.quote_fault(b.content, s.char_start, s.char_end, s.quote)
      end as reason
    from span as s
    left join held as h on h.id = s.document_id
    left join lateral (
      select b.content
      from citeledger.document_page_blocks as b
      where b.firm_id = v_firm_id
        and b.document_id = h.id
        and b.page_number = s.page_number
        and b.block_index = s.block_index
      offset 0
    ) as b on true
    offset 0
  )
  -- What cite_answer answers, as a row: of rows the list is made at once, of objects by making
  -- each of them twice. What was not compared stays null.
  select
    to_jsonb(array_agg(case when f.is_found then a end order by f.position)),
    array_agg(f.position order by f.position) filter (where not f.is_found),
    array_agg(f.fault order by f.position) filter (where not f.is_found),
    array_agg(case when f.document_id is not null then f.item end order by f.position)
      filter (where not f.is_found)
  into v_result, v_positions, v_faults, v_spans
  from found as f
  cross join lateral (
    select
      f.item as span,
      f.reason as reason,
      f.reason is null as verified,
      case
        when f.reason is null then citeledger_private.page_link(
          v_matter_link, f.document_id, f.page_number, f.block_index
        )
      end as deep_link,
      statement_timestamp() as checked_at,
      'live' as engine_state
  ) as a;
  if v_positions is null then
    return coalesce(v_result, '[]');
  end if;

  with rest as materialized (
    select
      r.position,
      r.fault,
      r.item is not null as is_held,
      case when r.item is not null then citeledger_private.to_span(r.item) end as span
    from unnest(v_positions, v_faults, v_spans) as r (position, fault, item)
  ),
  held as materialized (
    select
      array_agg(r.position order by r.position) as positions,
      array_agg(r.span order by r.position) as spans
    from rest as r
    where r.is_held
    having count(*) > 0
  ),
  checked as materialized (
    select h.positions[c.span_position] as position, c.reason
    from held as h
    cross join lateral citeledger_private.resolve_spans(v_firm_id, h.spans) as c
  )
  -- What neither way compared stays without a verdict, never with a good one.
  select jsonb_agg(
    case
      when r.position is null then i.item
      when r.fault is not null then jsonb_build_object(
        'error',
        jsonb_build_object('sqlstate', '22023', 'message', 'the span is malformed: ' || r.fault)
      )
      when c.position is not null
        then citeledger_private.cite_resolution(v_matter_number, r.span, c.reason)
      else jsonb_build_object(
        'error', jsonb_build_object('sqlstate', 'P0002', 'message', 'record not found')
      )
    end
    order by i.position
  )
  into v_result
  from jsonb_array_elements(v_result) with ordinality as i (item, position)
  left join rest as r on r.position = i.position
  left join checked as c on c.position = i.position;
  return v_result;
end
$$;

comment on function citeledger.cite_many(uuid, jsonb) is
  'cite for a list of spans of one matter, set-based: a JSON array of CiteResolutions in the order '
  'of p_spans. Permission and matter are checked once. A bad item becomes {"error": {"sqlstate", '
  '"message"}} in its place and spoils no other: 22023 for a malformed span, with the offending '
  'key in the message, P0002 for a document that the matter does not hold as a live, '
  'non-privileged record. For citeledger_reader. Errors: 42501 without matters:read; 22023 when '
  'p_spans is no array; P0002 when the matter is not visible.';

revoke all on function citeledger.cite_many(uuid, jsonb) from public;
grant execute on function citeledger.cite_many(uuid, jsonb) to citeledger_reader;
grant execute on function citeledger.cite_many(uuid, jsonb) to citeledger_app;
grant execute on function citeledger.cite_many(uuid, jsonb) to citeledger_admin;

commit;
