-- Deploy citeledger:cite/plain_span to pg
-- requires: cite/span@v0.1.0

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- In place of a call the planner puts what is below, for every span of a list: that takes a body
-- that is bound when the function is made, and no setting of its own.
create or replace function citeledger_private.is_plain_span(
  p_span jsonb
)
returns boolean
language sql
immutable
parallel safe
security invoker
return (
  -- Whatever is null here is not plain.
  jsonb_typeof(p_span) = 'object'
  and p_span - array[
    'document_id', 'page_number', 'block_index', 'char_start', 'char_end', 'quote'
  ] = '{}'
  -- Numbers: a path finds nothing else less than a number. It would look into a list as well, but a
  -- list has more than digits, and so have a sign and a fraction. What most spans have comes first.
  and p_span @@ (
    '$.page_number >= 1 && $.page_number <= 2147483647'
    ' && ($.block_index <= 2147483647 || !exists($.block_index))'
    ' && ($.char_start < $.char_end && $.char_end <= 2147483647'
    '   || !exists($.char_start) && !exists($.char_end))'
    ' && $.quote.type() == "string"'
  )
  and (
    (p_span ->> 'page_number')
    || coalesce(p_span ->> 'block_index', '')
    || coalesce(p_span ->> 'char_start', '')
    || coalesce(p_span ->> 'char_end', '')
  ) collate "C" !~ '[^0-9]'
  -- Lower case with dashes in their places, nowhere else: as a uuid is written.
  and (p_span ->> 'document_id') collate "C" like '________-____-____-____-____________'
  and (p_span ->> 'document_id') collate "C" not like '%-%-%-%-%-%'
  and (p_span ->> 'document_id') collate "C" !~ '[^0-9a-f-]'
  -- Nearly always the first character is a letter, digit or sign of ASCII.
  and (
    ascii(p_span ->> 'quote') between 33 and 126
    or citeledger_private.is_blank(p_span ->> 'quote') is false
  )
) is true;

comment on function citeledger_private.is_plain_span(jsonb) is
  'Whether a span is well-formed and written as write_span writes it: no null, no 1.0 for 1, the '
  'document in lower case. A shortcut for the many: where it is false, span_fault says what is '
  'wrong, if anything is.';

revoke all on function citeledger_private.is_plain_span(jsonb) from public;

commit;
