-- Deploy citeledger:cite/span to pg
-- requires: cite/span@v0.1.0
-- requires: cite/plain_span

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.span_fault(
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
  v_rest jsonb;
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

  v_rest := v_span - array[
    'document_id', 'page_number', 'block_index', 'char_start', 'char_end', 'quote'
  ];
  if v_rest <> '{}' then
    select min(k.key collate "C")
    into v_unknown
    from jsonb_object_keys(v_rest) as k (key);
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

create or replace function citeledger_private.to_span(
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
    (p_span -> 'page_number')::integer,
    -- Null has no number in it.
    nullif(p_span -> 'block_index', 'null')::integer,
    nullif(p_span -> 'char_start', 'null')::integer,
    nullif(p_span -> 'char_end', 'null')::integer,
    p_span ->> 'quote'
  );
end
$$;

create or replace function citeledger_private.read_span(
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
  v_fault text;
begin
  if not citeledger_private.is_plain_span(p_span) then
    v_fault := citeledger_private.span_fault(p_span);
    if v_fault is not null then
      raise exception using
        errcode = '22023',
        message = 'the span is malformed',
        detail = format('%s.', v_fault),
        hint = 'A span is {"document_id": uuid, "page_number": from 1, "block_index": from 0, '
          '"char_start": from 0, "char_end": exclusive, "quote": text}; block_index and the two '
          'offsets may be left out.';
    end if;
  end if;
  return citeledger_private.to_span(p_span);
end
$$;

comment on function citeledger_private.span_fault(jsonb) is
  'What is wrong with a span, as "key: problem" without any of its text; null when it is '
  'well-formed.';
comment on function citeledger_private.to_span(jsonb) is
  'The span that a well-formed p_span is; whoever calls it has asked span_fault.';
comment on function citeledger_private.read_span(jsonb) is
  'A well-formed span as a row. Errors: 22023 with the offending key in DETAIL.';

revoke all on function citeledger_private.span_fault(jsonb) from public;
revoke all on function citeledger_private.to_span(jsonb) from public;
revoke all on function citeledger_private.read_span(jsonb) from public;

commit;
