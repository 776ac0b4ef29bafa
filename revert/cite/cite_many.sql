-- Revert citeledger:cite/cite_many from pg

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
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_matter_number text;
  v_faults text[];
  v_spans citeledger_private.span[];
  v_positions bigint[];
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
    select i.item, i.position, citeledger_private.span_fault(i.item) as fault
    from jsonb_array_elements(p_spans) with ordinality as i (item, position)
  ),
  span as materialized (
    select i.position, citeledger_private.to_span(i.item) as span
    from item as i
    where i.fault is null
  ),
  document as materialized (
    select distinct (s.span).document_id as id from span as s
  ),
  held as materialized (
    select d.id
    from document as d
    where citeledger_private.holds_record(v_firm_id, p_matter_id, d.id)
  ),
  good as materialized (
    select s.position, s.span
    from span as s
    where (s.span).document_id in (select h.id from held as h)
  )
  select
    (select array_agg(i.fault order by i.position) from item as i),
    (select array_agg(g.span order by g.position) from good as g),
    (select array_agg(g.position order by g.position) from good as g)
  into v_faults, v_spans, v_positions;

  select coalesce(
    jsonb_agg(
      coalesce(
        checked.resolution,
        jsonb_build_object(
          'error',
          case
            when v_faults[i.position] is not null then jsonb_build_object(
              'sqlstate', '22023',
              'message', 'the span is malformed: ' || v_faults[i.position]
            )
            else jsonb_build_object('sqlstate', 'P0002', 'message', 'record not found')
          end
        )
      )
      order by i.position
    ),
    '[]'
  )
  into v_result
  from generate_series(1, jsonb_array_length(p_spans)) as i (position)
  left join (
    select
      v_positions[r.span_position] as position,
      citeledger_private.cite_resolution(
        v_matter_number, v_spans[r.span_position], r.reason
      ) as resolution
    from citeledger_private.resolve_spans(v_firm_id, v_spans) as r
  ) as checked on checked.position = i.position;
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
