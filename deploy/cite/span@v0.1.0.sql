-- Deploy citeledger:cite/span to pg
-- requires: tenancy/schemas

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create type citeledger_private.span as (
  document_id uuid,
  page_number integer,
  block_index integer,
  char_start integer,
  char_end integer,
  quote text
);

create function citeledger_private.is_whole_number(
  p_value jsonb,
  p_least integer
)
returns boolean
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_number numeric;
begin
  if p_value is null or jsonb_typeof(p_value) <> 'number' then
    return false;
  end if;
  v_number := p_value::numeric;
  return v_number = trunc(v_number) and v_number between p_least and 2147483647;
end
$$;

create function citeledger_private.is_blank(
  p_text text
)
returns boolean
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_invisible constant text :=
    -- Controls that are white space, blanks, the no-break space and the soft hyphen.
    E'\u0009\u000a\u000b\u000c\u000d\u001c\u001d\u001e\u001f\u0020\u0085\u00a0\u00ad'
    -- Joiners and fillers that show nothing.
    || E'\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f'
    -- Spaces of every width, zero-width characters, direction marks, line separators.
    || E'\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u200b\u200c\u200d'
    || E'\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u202f\u205f\u2060\u2061\u2062'
    || E'\u2063\u2064\u2066\u2067\u2068\u2069\u206a\u206b\u206c\u206d\u206e\u206f'
    -- Wide fillers, variation selectors, byte order mark, annotation marks.
    || E'\u2800\u3000\u3164\ufe00\ufe01\ufe02\ufe03\ufe04\ufe05\ufe06\ufe07\ufe08\ufe09\ufe0a'
    || E'\ufe0b\ufe0c\ufe0d\ufe0e\ufe0f\ufeff\uffa0\ufff9\ufffa\ufffb';
  v_rest text;
begin
  -- Nearly always the first character is a letter, digit or sign of ASCII.
  if ascii(p_text) between 33 and 126 then
    return false;
  end if;
  v_rest := ltrim(p_text, v_invisible);
  -- Or the first one that is left can be seen. Tags and further variation selectors fill a plane
  -- that shows nothing.
  if v_rest = '' or ascii(v_rest) not between 917504 and 921599 then
    return v_rest = '';
  end if;
  return not exists (
    select
    from string_to_table(v_rest, null) as l (letter)
    where ascii(l.letter) not between 917504 and 921599
      and strpos(v_invisible, l.letter) = 0
  );
end
$$;

create function citeledger_private.span_fault(
  p_span jsonb
)
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  -- Null for an optional key means that the key is absent.
  v_span jsonb;
  v_unknown text;
begin
  if p_span is null or jsonb_typeof(p_span) <> 'object' then
    return 'span: not an object';
  end if;
  v_span := p_span;
  if v_span -> 'block_index' = 'null' then
    v_span := v_span - 'block_index';
  end if;
  if v_span -> 'char_start' = 'null' then
    v_span := v_span - 'char_start';
  end if;
  if v_span -> 'char_end' = 'null' then
    v_span := v_span - 'char_end';
  end if;

  select min(k.key collate "C")
  into v_unknown
  from jsonb_object_keys(
    v_span - array[
      'document_id', 'page_number', 'block_index', 'char_start', 'char_end', 'quote'
    ]
  ) as k (key);
  if v_unknown is not null then
    -- Named only where it has the form of a name, which holds no content.
    return case
      when v_unknown ~ '^[A-Za-z_][A-Za-z0-9_]{0,31}$' then format('%s: unknown key', v_unknown)
      else 'span: it has an unknown key'
    end;
  end if;
  if not v_span ? 'document_id' then
    return 'document_id: missing';
  end if;
  if jsonb_typeof(v_span -> 'document_id') <> 'string'
    or v_span ->> 'document_id' !~ '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'
  then
    return 'document_id: not a uuid';
  end if;
  if not v_span ? 'page_number' then
    return 'page_number: missing';
  end if;
  if not citeledger_private.is_whole_number(v_span -> 'page_number', 1) then
    return 'page_number: not a whole number from 1 to 2147483647';
  end if;
  if v_span ? 'block_index'
    and not citeledger_private.is_whole_number(v_span -> 'block_index', 0)
  then
    return 'block_index: not a whole number from 0 to 2147483647';
  end if;
  if v_span ? 'char_start'
    and not citeledger_private.is_whole_number(v_span -> 'char_start', 0)
  then
    return 'char_start: not a whole number from 0 to 2147483647';
  end if;
  if v_span ? 'char_end'
    and not citeledger_private.is_whole_number(v_span -> 'char_end', 0)
  then
    return 'char_end: not a whole number from 0 to 2147483647';
  end if;
  if v_span ? 'char_start' and not v_span ? 'char_end' then
    return 'char_end: missing, for there is a char_start';
  end if;
  if v_span ? 'char_end' and not v_span ? 'char_start' then
    return 'char_start: missing, for there is a char_end';
  end if;
  if v_span ? 'char_start'
    and (v_span -> 'char_end')::numeric <= (v_span -> 'char_start')::numeric
  then
    return 'char_end: not after char_start';
  end if;
  if not v_span ? 'quote' then
    return 'quote: missing';
  end if;
  if jsonb_typeof(v_span -> 'quote') <> 'string' then
    return 'quote: not a text';
  end if;
  if citeledger_private.is_blank(v_span ->> 'quote') then
    return 'quote: empty, or nothing in it can be seen';
  end if;
  return null;
end
$$;

create function citeledger_private.to_span(
  p_span jsonb
)
returns citeledger_private.span
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  return row(
    (p_span ->> 'document_id')::uuid,
    (p_span ->> 'page_number')::numeric::integer,
    (p_span ->> 'block_index')::numeric::integer,
    (p_span ->> 'char_start')::numeric::integer,
    (p_span ->> 'char_end')::numeric::integer,
    p_span ->> 'quote'
  );
end
$$;

create function citeledger_private.read_span(
  p_span jsonb
)
returns citeledger_private.span
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fault text := citeledger_private.span_fault(p_span);
begin
  if v_fault is not null then
    raise exception using
      errcode = '22023',
      message = 'the span is malformed',
      detail = format('%s.', v_fault),
      hint = 'A span is {"document_id": uuid, "page_number": from 1, "block_index": from 0, '
        '"char_start": from 0, "char_end": exclusive, "quote": text}; block_index and the two '
        'offsets may be left out.';
  end if;
  return citeledger_private.to_span(p_span);
end
$$;

create function citeledger_private.write_span(
  p_span citeledger_private.span
)
returns jsonb
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  return jsonb_strip_nulls(to_jsonb(p_span));
end
$$;

comment on type citeledger_private.span is
  'A quote and where it is said to stand. page_number from 1, block_index from 0 or null, offsets '
  'in Unicode code points from 0, end exclusive, both or neither, counted in the block, or in the '
  'page where block_index is null.';
comment on column citeledger_private.span.document_id is 'The document.';
comment on column citeledger_private.span.page_number is 'The page, from 1.';
comment on column citeledger_private.span.block_index is 'The block, from 0; null for the page.';
comment on column citeledger_private.span.char_start is
  'First character of the quote, in code points from 0; null when it may stand anywhere.';
comment on column citeledger_private.span.char_end is
  'One past the last character of the quote; null exactly when the start is.';
comment on column citeledger_private.span.quote is 'The quote, byte for byte.';
comment on function citeledger_private.is_whole_number(jsonb, integer) is
  'Whether a JSON value is a whole number from p_least to 2147483647; a text or a boolean never '
  'is.';
comment on function citeledger_private.is_blank(text) is
  'Whether nothing in the text can be seen: it is empty, or only white space, Unicode spaces, soft '
  'hyphens, zero-width characters, joiners, direction marks, variation selectors and byte order '
  'marks, or it is null.';
comment on function citeledger_private.span_fault(jsonb) is
  'What is wrong with a span, as "key: problem" without any of its text; null when it is '
  'well-formed.';
comment on function citeledger_private.to_span(jsonb) is
  'The span that a well-formed p_span is; whoever calls it has asked span_fault.';
comment on function citeledger_private.read_span(jsonb) is
  'A well-formed span as a row. Errors: 22023 with the offending key in DETAIL.';
comment on function citeledger_private.write_span(citeledger_private.span) is
  'A span as JSON, without the optional keys that are absent.';

revoke all on type citeledger_private.span from public;
revoke all on function citeledger_private.is_whole_number(jsonb, integer) from public;
revoke all on function citeledger_private.is_blank(text) from public;
revoke all on function citeledger_private.span_fault(jsonb) from public;
revoke all on function citeledger_private.to_span(jsonb) from public;
revoke all on function citeledger_private.read_span(jsonb) from public;
revoke all on function citeledger_private.write_span(citeledger_private.span) from public;

commit;
