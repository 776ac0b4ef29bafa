-- Deploy citeledger:cite/resolve_spans to pg
-- requires: cite/document_pages
-- requires: cite/span

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.resolve_spans(
  p_firm_id uuid,
  p_spans citeledger_private.span[]
)
returns table (
  span_position bigint,
  reason text
)
language plpgsql
stable
parallel safe
security invoker
rows 10
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  with span as materialized (
    select s.*
    from unnest(p_spans) with ordinality as s (
      document_id, page_number, block_index, char_start, char_end, quote, span_position
    )
  ),
  -- A page is put together once, however many spans are anchored in it.
  page as materialized (
    select a.document_id, a.page_number, t.content
    from (
      select distinct s.document_id, s.page_number from span as s where s.block_index is null
    ) as a
    join citeledger.document_pages as p
      on p.firm_id = p_firm_id
      and p.document_id = a.document_id
      and p.page_number = a.page_number
    cross join lateral (
      select coalesce(string_agg(b.content, E'\n' order by b.block_index), '') as content
      from citeledger.document_page_blocks as b
      where b.firm_id = p_firm_id
        and b.document_id = p.document_id
        and b.page_number = p.page_number
    ) as t
  ),
  unit as (
    select s.*, b.content
    from span as s
    left join citeledger.document_page_blocks as b
      on b.firm_id = p_firm_id
      and b.document_id = s.document_id
      and b.page_number = s.page_number
      and b.block_index = s.block_index
    where s.block_index is not null
    union all
    select s.*, p.content
    from span as s
    left join page as p on p.document_id = s.document_id and p.page_number = s.page_number
    where s.block_index is null
  )
  select
    u.span_position,
    case
      when u.content is null then
        case
          when not exists (
            select
            from citeledger.document_pages as p
            where p.firm_id = p_firm_id and p.document_id = u.document_id
          )
            then 'no_pages'
          when not exists (
            select
            from citeledger.document_pages as p
            where p.firm_id = p_firm_id
              and p.document_id = u.document_id
              and p.page_number = u.page_number
          )
            then 'page_missing'
          else 'block_out_of_range'
        end
      when u.char_start is null then
        case
          when strpos(u.content collate "C", u.quote collate "C") = 0
            or citeledger_private.is_blank(u.quote)
            then 'quote_absent'
        end
      -- Checked before the slice is cut: substring would clip to the text without a word.
      when u.char_end > char_length(u.content) then 'offsets_out_of_range'
      when substring(u.content from u.char_start + 1 for u.char_end - u.char_start) collate "C"
          <> u.quote collate "C"
        or citeledger_private.is_blank(u.quote)
        then 'text_mismatch'
    end
  from unit as u;
end
$$;

comment on function citeledger_private.resolve_spans(uuid, citeledger_private.span[]) is
  'Compares each span with the live page, byte for byte: one row a span, reason null where it '
  'verifies, else no_pages, page_missing, block_out_of_range, offsets_out_of_range, text_mismatch '
  'or quote_absent. span_position: the span''s place in the array, from 1. A blank quote verifies '
  'nowhere. The one place where a span is compared.';

revoke all on function citeledger_private.resolve_spans(uuid, citeledger_private.span[])
  from public;

commit;
