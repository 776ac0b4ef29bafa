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
  v_result jsonb;
begin
  perform citeledger.require_permission('matters:read');
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

  -- Each item is judged once, and each document asked for once. What can be looked at is
  -- well-formed, and of a record of the matter.
  with item as materialized (
    select i.position, i.item, citeledger_private.is_plain_span(i.item) as is_plain
    from jsonb_array_elements(p_spans) with ordinality as i (item, position)
  ),
  judged as materialized (
    select
      i.position,
      i.item,
      i.is_plain,
      case when not i.is_plain then citeledger_private.span_fault(i.item) end as fault
    from item as i
  ),
  -- No row is left out before the end, so that the planner joins as many as there are.
  span as materialized (
    select
      j.position,
      j.fault,
      case
        when j.is_plain then j.item
        when j.fault is null
          then citeledger_private.write_span(citeledger_private.to_span(j.item))
      end as item,
      case when j.fault is null then (j.item ->> 'document_id')::uuid end as document_id,
      case when j.fault is null then (j.item -> 'page_number')::integer end as page_number,
      case when j.fault is null then nullif(j.item -> 'block_index', 'null')::integer end
        as block_index,
      case when j.fault is null then nullif(j.item -> 'char_start', 'null')::integer end
        as char_start,
      case when j.fault is null then nullif(j.item -> 'char_end', 'null')::integer end
        as char_end,
      case when j.fault is null then j.item ->> 'quote' end as quote
    from judged as j
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
  found as materialized (
    select
      s.*,
      h.id is not null as is_held,
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
  ),
  rest as materialized (
    select
      array_agg(f.position order by f.position) as positions,
      array_agg(
        row(
          f.document_id, f.page_number, f.block_index, f.char_start, f.char_end, f.quote
        )::citeledger_private.span
        order by f.position
      ) as spans
    from found as f
    where f.is_held and not f.is_found
    having count(*) > 0
  ),
  checked as materialized (
    select r.positions[c.span_position] as position, c.reason
    from rest as r
    cross join lateral citeledger_private.resolve_spans(v_firm_id, r.spans) as c
  ),
  -- What neither way compared stays without a verdict, never with a good one.
  compared as materialized (
    select
      f.position,
      f.fault,
      f.item,
      f.document_id,
      f.page_number,
      f.block_index,
      f.is_found or c.position is not null as is_compared,
      case when f.is_found then f.reason else c.reason end as reason
    from found as f
    left join checked as c on c.position = f.position
  )
  select coalesce(
    to_jsonb(
      array_agg(
        case
          when c.fault is not null then jsonb_build_object(
            'error',
            jsonb_build_object(
              'sqlstate', '22023', 'message', 'the span is malformed: ' || c.fault
            )
          )
          when c.is_compared then citeledger_private.cite_answer(
            v_matter_number, c.document_id, c.page_number, c.block_index, c.item, c.reason
          )
          else jsonb_build_object(
            'error', jsonb_build_object('sqlstate', 'P0002', 'message', 'record not found')
          )
        end
        order by c.position
      )
    ),
    '[]'
  )
  into v_result
  from compared as c;
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
