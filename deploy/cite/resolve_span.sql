-- Deploy citeledger:cite/resolve_span to pg
-- requires: cite/resolve_spans

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create type citeledger.span_resolution as (
  verified boolean,
  reason text
);

create function citeledger.resolve_span(
  p_span jsonb
)
returns citeledger.span_resolution
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_span citeledger_private.span := citeledger_private.read_span(p_span);
  v_resolution citeledger.span_resolution;
begin
  select r.reason is null, r.reason
  into v_resolution
  from citeledger_private.resolve_spans(citeledger.current_firm_id(), array[v_span]) as r;
  return v_resolution;
end
$$;

comment on type citeledger.span_resolution is
  'Whether a span holds against the live page now, and why not: reason is null exactly when '
  'verified is true.';
comment on column citeledger.span_resolution.verified is
  'Whether the quote stands where the span says, byte for byte.';
comment on column citeledger.span_resolution.reason is
  'Null when verified, else no_pages, page_missing, block_out_of_range, offsets_out_of_range, '
  'text_mismatch or quote_absent.';
comment on function citeledger.resolve_span(jsonb) is
  'Compares a span with the live page of its document: {"document_id", "page_number" from 1, '
  '"block_index" from 0, "char_start", "char_end", "quote"}; null for block_index or the offsets '
  'means absent. Offsets are Unicode code points from 0, end exclusive, in the block, or in the '
  'page (its blocks joined by one line feed) without block_index. With offsets the slice must '
  'equal the quote byte for byte; without, the quote must stand somewhere in the block or page. '
  'Nothing is normalised, trimmed or folded. Every drift is verified = false with a reason: '
  'no_pages (also for a document that is not there), page_missing, block_out_of_range, '
  'offsets_out_of_range, text_mismatch, quote_absent. It checks no matter: for applications that '
  'cite, there is cite. For citeledger_app. Errors: 22023 for a malformed span, with the offending '
  'key in DETAIL.';

revoke all on type citeledger.span_resolution from public;
grant usage on type citeledger.span_resolution to citeledger_app;
grant usage on type citeledger.span_resolution to citeledger_admin;
revoke all on function citeledger.resolve_span(jsonb) from public;
grant execute on function citeledger.resolve_span(jsonb) to citeledger_app;
grant execute on function citeledger.resolve_span(jsonb) to citeledger_admin;

commit;
