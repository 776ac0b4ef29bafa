-- Deploy citeledger:cite/suggest_spans to pg
-- requires: tenancy/require_permission
-- requires: cite/span
-- requires: cite/record_in_matter
-- requires: cite/document_pages

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.occurrences(
  p_text text,
  p_quote text
)
returns setof integer
language sql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
  -- Cutting the text at the quote leaves what lies between its occurrences: no pattern is involved.
  select (
    sum(char_length(piece.content)) over (order by piece.position)
      + (piece.position - 1) * char_length(p_quote)
  )::integer
  from string_to_table(p_text collate "C", p_quote collate "C")
    with ordinality as piece (content, position)
  order by piece.position
  limit (
    select count(*) - 1
    from string_to_table(p_text collate "C", p_quote collate "C") as piece
  )
$$;

create function citeledger.suggest_spans(
  p_matter_id uuid,
  p_span jsonb,
  p_limit integer default 5
)
returns table (
  page_number integer,
  block_index integer,
  char_start integer,
  char_end integer
)
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
  v_span citeledger_private.span;
begin
  perform citeledger.require_permission('matters:read');
  v_span := citeledger_private.read_span(p_span);
  if p_limit is null or p_limit < 1 then
    raise exception using
      errcode = '22023',
      message = 'p_limit is not a number of suggestions',
      detail = format('p_limit is %s.', coalesce(p_limit::text, 'null')),
      hint = 'Pass a number from 1 up, or leave it out for 5.';
  end if;
  if citeledger_private.visible_matter_number(v_firm_id, p_matter_id) is null
    or not citeledger_private.holds_record(v_firm_id, p_matter_id, v_span.document_id)
  then
    perform citeledger_private.refuse_as_not_found();
  end if;

  return query
  with place as (
    select b.page_number, b.block_index, o.char_start
    from citeledger.document_page_blocks as b
    cross join lateral citeledger_private.occurrences(b.content, v_span.quote) as o (char_start)
    where b.firm_id = v_firm_id
      and b.document_id = v_span.document_id
      and strpos(b.content collate "C", v_span.quote collate "C") > 0
    union all
    -- A quote that runs over the end of a block stands in the page alone.
    select p.page_number, null, o.char_start
    from (
      select
        b.page_number,
        string_agg(b.content, E'\n' order by b.block_index) as content,
        array_agg(char_length(b.content) order by b.block_index) as block_lengths
      from citeledger.document_page_blocks as b
      where b.firm_id = v_firm_id and b.document_id = v_span.document_id
      group by b.page_number
    ) as p
    cross join lateral citeledger_private.occurrences(p.content, v_span.quote) as o (char_start)
    where strpos(v_span.quote collate "C", E'\n') > 0
      and strpos(p.content collate "C", v_span.quote collate "C") > 0
      and not exists (
        select
        from (
          select
            sum(l.length + 1) over (order by l.position) - l.length - 1 as block_start,
            l.length
          from unnest(p.block_lengths) with ordinality as l (length, position)
        ) as b
        where o.char_start >= b.block_start
          and o.char_start + char_length(v_span.quote) <= b.block_start + b.length
      )
  )
  select f.page_number, f.block_index, f.char_start, f.char_start + char_length(v_span.quote)
  from place as f
  order by
    abs(f.page_number::bigint - v_span.page_number),
    abs(f.block_index::bigint - coalesce(v_span.block_index, f.block_index)),
    abs(f.char_start::bigint - coalesce(v_span.char_start, 0)),
    f.page_number, f.block_index, f.char_start
  limit p_limit;
end
$$;

comment on function citeledger_private.occurrences(text, text) is
  'Where p_quote stands in p_text, byte for byte and without overlap: the offset of each '
  'occurrence in Unicode code points from 0.';
comment on function citeledger.suggest_spans(uuid, jsonb, integer) is
  'Where the quote of a span stands in the live document now, at most p_limit places, nearest '
  'first: by page, then block, then offset. block_index null means that the offsets count in the '
  'page, for a quote that runs over the end of a block. It offers places for a person to look at; '
  'it verifies nothing, and nothing in cite uses it. Under the very checks of cite. For '
  'citeledger_reader. Errors: 42501 without matters:read; 22023 for a malformed span or limit; '
  'P0002, the same whatever is not there.';

revoke all on function citeledger_private.occurrences(text, text) from public;
revoke all on function citeledger.suggest_spans(uuid, jsonb, integer) from public;
grant execute on function citeledger.suggest_spans(uuid, jsonb, integer) to citeledger_reader;
grant execute on function citeledger.suggest_spans(uuid, jsonb, integer) to citeledger_app;
grant execute on function citeledger.suggest_spans(uuid, jsonb, integer) to citeledger_admin;

commit;
