-- The form of a span: what is malformed is 22023 with the key in DETAIL and a HINT, from every
-- function that takes one, and never verified = false.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(132);

-- A superuser, a role exempt from row security, or an owner would pass tests that guard nothing.
select is(
  (select r.rolsuper from pg_roles as r where r.rolname = session_user),
  false,
  'the login is no superuser'
);
select is(
  (select r.rolbypassrls from pg_roles as r where r.rolname = session_user),
  false,
  'the login is not exempt from row security'
);
select ok(
  not pg_has_role(session_user, 'citeledger_owner', 'member'),
  'the login is no member of citeledger_owner'
);

set local role citeledger_admin;
select set_config('test.a', citeledger.create_firm('Alpha LLP')::text, true);
select set_config('test.b', citeledger.create_firm('Beta LLP')::text, true);

select citeledger.set_context(current_setting('test.a')::uuid);
insert into citeledger.projects (id, matter_number, name)
values
  ('00000000-0000-4000-8000-0000000000f1', 'M-1', 'Matter'),
  ('00000000-0000-4000-8000-0000000000f2', 'M-2', 'Another'),
  ('00000000-0000-4000-8000-0000000000f3', 'M-3', 'Walled');
insert into citeledger.project_members (project_id, user_id)
values ('00000000-0000-4000-8000-0000000000f3', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');

set local role citeledger_app;
insert into citeledger.documents (id, project_id, title, document_kind, is_privileged, deleted_at)
values
  ('00000000-0000-4000-8000-0000000000d1', '00000000-0000-4000-8000-0000000000f1', 'Lease',
    'record', false, null),
  ('00000000-0000-4000-8000-0000000000d2', '00000000-0000-4000-8000-0000000000f1', 'Privileged',
    'record', true, null),
  ('00000000-0000-4000-8000-0000000000d3', '00000000-0000-4000-8000-0000000000f1', 'Deleted',
    'record', false, now()),
  ('00000000-0000-4000-8000-0000000000d4', '00000000-0000-4000-8000-0000000000f2', 'Elsewhere',
    'record', false, null),
  ('00000000-0000-4000-8000-0000000000d5', '00000000-0000-4000-8000-0000000000f3', 'Walled',
    'record', false, null),
  ('00000000-0000-4000-8000-0000000000d6', '00000000-0000-4000-8000-0000000000f1', 'Memo',
    'work_product', false, null),
  ('00000000-0000-4000-8000-0000000000d7', null, 'Of no matter', 'record', false, null),
  ('00000000-0000-4000-8000-0000000000d8', '00000000-0000-4000-8000-0000000000f1', 'Authority',
    'authority', false, null),
  ('00000000-0000-4000-8000-0000000000d9', '00000000-0000-4000-8000-0000000000f1', 'Publication',
    'publication', false, null);
select citeledger.replace_document_pages(
  d.id,
  '[{"page_number": 1, "blocks": ["Heading", "The rent is due.", "Signed"]},
    {"page_number": 2, "blocks": ["Second page"]}]'
)
from citeledger.documents as d;

select citeledger.set_context(current_setting('test.b')::uuid);
insert into citeledger.projects (id, matter_number, name)
values ('00000000-0000-4000-8000-0000000000b1', 'M-1', 'Theirs');
insert into citeledger.documents (id, project_id, title)
values (
  '00000000-0000-4000-8000-0000000000bd', '00000000-0000-4000-8000-0000000000b1', 'Their lease'
);
select citeledger.replace_document_pages(
  '00000000-0000-4000-8000-0000000000bd',
  '[{"page_number": 1, "blocks": ["Heading", "The rent is due.", "Signed"]}]'
);
select citeledger.set_context(current_setting('test.a')::uuid, null, array['matters:read']);

create function pg_temp.id(p_n text)
returns uuid
language sql
immutable
as $$
  select ('00000000-0000-4000-8000-' || lpad(p_n, 12, '0'))::uuid
$$;

create function pg_temp.span(
  p_quote text,
  p_page integer default 1,
  p_block integer default null,
  p_start integer default null,
  p_end integer default null,
  p_document uuid default '00000000-0000-4000-8000-0000000000d1'
)
returns jsonb
language sql
immutable
as $$
  select jsonb_build_object(
    'document_id', p_document, 'page_number', p_page, 'block_index', p_block,
    'char_start', p_start, 'char_end', p_end, 'quote', p_quote
  )
$$;

create function pg_temp.said(p_span jsonb)
returns text
language sql
as $$
  select case
      when r.verified is distinct from (r.reason is null) then 'contradiction'
      else coalesce(r.reason, 'verified')
    end
  from citeledger.resolve_span(p_span) as r
$$;

create function pg_temp.refusal(p_statement text)
returns text
language plpgsql
as $$
declare
  v_message text;
  v_detail text;
  v_hint text;
begin
  execute p_statement;
  return 'no error';
exception
  when others then
    get stacked diagnostics
      v_message = message_text, v_detail = pg_exception_detail, v_hint = pg_exception_hint;
    return format('%s|%s|%s|%s', sqlstate, v_message, v_detail, v_hint);
end
$$;

create function pg_temp.with_key(p_key text, p_value text)
returns jsonb
language sql
immutable
as $$
  select pg_temp.span('rent', 1, 1, 4, 8) || jsonb_build_object(p_key, p_value::jsonb)
$$;
create function pg_temp.detail(p_span jsonb)
returns text
language sql
as $$
  select split_part(pg_temp.refusal(format('select citeledger.resolve_span(%L)', p_span)), '|', 1)
    || ' '
    || split_part(pg_temp.refusal(format('select citeledger.resolve_span(%L)', p_span)), '|', 3)
$$;

select is(pg_temp.said(pg_temp.span('rent', 1, 1, 4, 8)), 'verified', 'the span itself is good');

select matches(
  pg_temp.detail(pg_temp.with_key(c.key, c.value)),
  format('^22023 %s: [^|]+\.$', c.key),
  format('%s: %s', c.key, c.value)
)
from (
  values
    ('document_id', 'null'), ('document_id', '5'), ('document_id', '"x"'), ('document_id', '""'),
    ('document_id', '"{00000000-0000-4000-8000-0000000000d1}"'),
    ('document_id', '"00000000000040008000000000000000"'),
    ('document_id', '"urn:uuid:00000000-0000-4000-8000-0000000000d1"'),
    ('document_id', '"00000000-0000-4000-8000-0000000000d1\n"'),
    ('document_id', '" 00000000-0000-4000-8000-0000000000d1"'),
    ('document_id', '"00000000-0000-4000-8000-00000000\uff10\uff10d1"'),
    ('document_id', '["00000000-0000-4000-8000-0000000000d1"]'),
    ('page_number', 'null'), ('page_number', '"3"'), ('page_number', '3.7'),
    ('page_number', '1.0000000000000000000000001'), ('page_number', 'true'),
    ('page_number', '"null"'), ('page_number', '3000000000'), ('page_number', '2147483648'),
    ('page_number', '0'), ('page_number', '-1'), ('page_number', '1e300'), ('page_number', '[]'),
    ('page_number', '{}'), ('page_number', '-0'), ('page_number', '0.9999999999999999999999'),
    ('block_index', '"0"'), ('block_index', '-1'), ('block_index', '0.5'),
    ('block_index', 'false'), ('block_index', '2147483648'), ('block_index', '[]'),
    ('char_start', '"4"'), ('char_start', '-1'), ('char_start', '4.5'), ('char_start', 'true'),
    ('char_start', '2147483648'), ('char_start', 'null'),
    ('char_end', '"8"'), ('char_end', '-1'), ('char_end', '8.5'), ('char_end', 'true'),
    ('char_end', '2147483648'), ('char_end', '4'), ('char_end', '3'), ('char_end', '0'),
    ('char_end', 'null'),
    ('quote', 'null'), ('quote', '5'), ('quote', '""'), ('quote', '["rent"]'), ('quote', '{}'),
    ('limit', '5'), ('Quote', '"x"'), ('firm_id', 'null'), ('pageNumber', '1')
) as c (key, value)
where (c.key, c.value) not in (('char_start', 'null'), ('char_end', 'null'));
select is(
  pg_temp.detail(pg_temp.with_key('char_start', 'null')),
  '22023 char_start: missing, for there is a char_end.',
  'an end without a start'
);
select is(
  pg_temp.detail(pg_temp.with_key('char_end', 'null')),
  '22023 char_end: missing, for there is a char_start.',
  'a start without an end'
);
select matches(
  pg_temp.detail(pg_temp.span('rent', 1, 1, 4, 8) - c.key),
  format('^22023 %s: missing', c.key),
  format('%s is missing', c.key)
)
from (
  values ('document_id'), ('page_number'), ('quote'), ('char_start'), ('char_end')
) as c (key);
select matches(
  pg_temp.detail(c.span::jsonb), '^22023 span: [^|]+\.$', format('not an object: %s', c.span)
)
from (values ('null'), ('[]'), ('5'), ('"{}"'), ('true'), (null), ('[{}]')) as c (span);
select matches(
  pg_temp.detail('{}'), '^22023 document_id: missing', 'the first key is named when all are missing'
);
select is(
  pg_temp.detail(pg_temp.with_key('The tenant''s secret', '1')),
  '22023 span: it has an unknown key.',
  'an unknown key that may be content is not repeated'
);

-- Null for an optional key means that it is absent; whole numbers may be written otherwise.
select is(pg_temp.said(c.span), 'verified', c.why)
from (
  values
    (pg_temp.span('rent') - '{block_index,char_start,char_end}'::text[], 'optional keys absent'),
    (pg_temp.span('rent'), 'optional keys null'),
    (pg_temp.with_key('page_number', '1.0'), '1.0 is 1'),
    (pg_temp.with_key('page_number', '1e0'), '1e0 is 1'),
    (pg_temp.with_key('document_id', '"00000000-0000-4000-8000-0000000000D1"'), 'upper case'),
    (pg_temp.with_key('block_index', '1.00'), '1.00 is 1')
) as c (span, why);

-- A quote in which nothing can be seen.
select matches(
  pg_temp.detail(pg_temp.span(c.quote)), '^22023 quote: ', format('blank: %s', c.why)
)
from (
  values
    ('', 'empty'), (' ', 'a space'), (E'\t', 'a tab'), (E'\n', 'a line feed'),
    (E'\r', 'a carriage return'), (E'\x0b', 'a vertical tab'), (E'\x0c', 'a form feed'),
    (U&'\0085', 'next line'), (U&'\00A0', 'a no-break space'), (U&'\00AD', 'a soft hyphen'),
    (U&'\034F', 'a grapheme joiner'), (U&'\061C', 'an Arabic letter mark'),
    (U&'\1680', 'an Ogham space'), (U&'\180E', 'a Mongolian vowel separator'),
    (U&'\2000', 'an en quad'), (U&'\2007', 'a figure space'), (U&'\2009', 'a thin space'),
    (U&'\200A', 'a hair space'), (U&'\200B', 'a zero-width space'), (U&'\200C', 'a non-joiner'),
    (U&'\200D', 'a joiner'), (U&'\200E', 'left to right'), (U&'\200F', 'right to left'),
    (U&'\2028', 'a line separator'), (U&'\2029', 'a paragraph separator'),
    (U&'\202A\202B\202C\202D\202E', 'embeddings'), (U&'\202F', 'a narrow no-break space'),
    (U&'\205F', 'a mathematical space'), (U&'\2060', 'a word joiner'),
    (U&'\2061\2062\2063\2064', 'invisible operators'), (U&'\2066\2067\2068\2069', 'isolates'),
    (U&'\206A\206F', 'deprecated controls'), (U&'\3000', 'an ideographic space'),
    (U&'\FEFF', 'a byte order mark'), (U&'\FE0F', 'a variation selector'),
    (U&'\115F\1160\3164\FFA0', 'Hangul fillers'), (U&'\2800', 'an empty Braille pattern'),
    (U&'\+0E0001\+0E0041', 'tags'), (U&'\+0E0100', 'a variation selector of plane 14'),
    (U&' \00A0\200B\FEFF\00AD' || E'\r\n', 'all together')
) as c (quote, why);
select is(pg_temp.said(pg_temp.span(c.quote)), 'quote_absent', format('not blank: %s', c.quote))
from (
  values ('#'), ('-'), ('0'), (U&'\00A0x\00A0'), (U&'\0301'), (U&'\2026'), (U&'\3001'), (U&'\FFFD')
) as c (quote);

-- Every function that takes a span says the same.
select matches(
  pg_temp.refusal(format(c.statement, pg_temp.id('f1'), pg_temp.with_key('page_number', '3.7'))),
  '^22023\|the span is malformed\|page_number: [^|]+\.\|A span is \{"document_id": uuid, .+$',
  c.why
)
from (
  values
    ('select citeledger.cite(%L, %L)', 'cite'),
    ('select citeledger.suggest_spans(%L, %L)', 'suggest_spans'),
    ('select citeledger.resolve_span(case when %L is not null then %L::jsonb end)', 'resolve_span')
) as c (statement, why);
select is(
  citeledger.cite_many(
    pg_temp.id('f1'), jsonb_build_array(pg_temp.with_key('page_number', '3.7'))
  ) #>> '{0,error,sqlstate}',
  '22023',
  'cite_many, in the place of the item'
);

select * from finish();

rollback;
