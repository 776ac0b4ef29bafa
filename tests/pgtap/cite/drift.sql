-- resolve_span: every way in which a page can have drifted from a stored span fails closed, with a
-- reason; and bytes decide, whatever the text is made of.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(112);

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

create function pg_temp.page(variadic p_blocks text[])
returns void
language sql
as $$
  select citeledger.replace_document_pages(
    '00000000-0000-4000-8000-0000000000d1',
    jsonb_build_array(jsonb_build_object('page_number', 1, 'blocks', to_jsonb(p_blocks)))
  );
  select
$$;

-- Each reason, and what it does not hide.
select is(pg_temp.said(c.span), c.reason, c.why)
from (
  values
    (pg_temp.span('The rent is due.', 1, 1, 0, 16), 'verified', 'the whole block'),
    (pg_temp.span('rent', 1, 1, 4, 8), 'verified', 'a part of a block'),
    (pg_temp.span('rent', 1, 1), 'verified', 'somewhere in a block'),
    (pg_temp.span('rent'), 'verified', 'somewhere in a page'),
    (pg_temp.span('rent', 1, null, 12, 16), 'verified', 'offsets counted in the page'),
    (pg_temp.span(E'Heading\nThe', 1, null, 0, 11), 'verified', 'over the end of a block'),
    (pg_temp.span(E'due.\nSigned'), 'verified', 'over the end of a block, somewhere'),
    (pg_temp.span('rent', 1, 1, null, null, pg_temp.id('dead')), 'no_pages', 'no such document'),
    (pg_temp.span('rent', 3, 1, 4, 8), 'page_missing', 'the page after the last'),
    (pg_temp.span('rent', 2147483647), 'page_missing', 'the last page that there could be'),
    (pg_temp.span('rent', 1, 3, 4, 8), 'block_out_of_range', 'the block after the last'),
    (pg_temp.span('rent', 1, 2147483647), 'block_out_of_range', 'a block far off'),
    (pg_temp.span('Second', 2, 1), 'block_out_of_range', 'a block of another page'),
    (pg_temp.span('due.', 1, 1, 12, 17), 'offsets_out_of_range', 'the end one beyond the block'),
    (pg_temp.span('due.', 1, 1, 12, 2147483647), 'offsets_out_of_range', 'the end far beyond it'),
    (pg_temp.span('x', 1, 1, 16, 17), 'offsets_out_of_range', 'a start at the end'),
    (pg_temp.span('Signed', 1, null, 25, 32), 'offsets_out_of_range', 'beyond the page'),
    (pg_temp.span('Rent', 1, 1, 4, 8), 'text_mismatch', 'another case'),
    (pg_temp.span('rent', 1, 1, 5, 9), 'text_mismatch', 'shifted by one'),
    (pg_temp.span('rent', 1, 1, 3, 7), 'text_mismatch', 'shifted by one to the front'),
    (pg_temp.span('ren', 1, 1, 4, 8), 'text_mismatch', 'a quote that is cut short'),
    (pg_temp.span('rent ', 1, 1, 4, 8), 'text_mismatch', 'a quote that is padded'),
    (pg_temp.span('rent', 1, 0, 4, 8), 'offsets_out_of_range', 'the offsets in a block before'),
    (pg_temp.span('rent', 1, null, 4, 8), 'text_mismatch', 'offsets of the block, in the page'),
    (pg_temp.span('rent', 1, 1, 12, 16), 'text_mismatch', 'offsets of the page, in the block'),
    (pg_temp.span('Rent', 1, 1), 'quote_absent', 'another case, somewhere'),
    (pg_temp.span('rent', 2), 'quote_absent', 'on a neighbour page'),
    (pg_temp.span('rent', 1, 0), 'quote_absent', 'in a neighbour block'),
    (pg_temp.span('Heading The'), 'quote_absent', 'blocks are joined by a line feed, no space')
) as c (span, reason, why);

-- Code points count, not bytes and not UTF-16 units.
select pg_temp.page(repeat(U&'\+01F4C4', 3) || ' rent due');
select is(pg_temp.said(pg_temp.span('rent due', 1, 0, c.a, c.b)), c.said, c.why)
from (
  values
    (4, 12, 'verified', 'code points'),
    (7, 15, 'offsets_out_of_range', 'UTF-16 units'),
    (13, 21, 'offsets_out_of_range', 'bytes')
) as c (a, b, said, why);
select pg_temp.page(repeat(U&'\+01F4C4', 3) || ' rent due and more than that to come');
select is(
  pg_temp.said(pg_temp.span('rent due', 1, 0, c.a, c.b)), c.said, c.why || ', with room behind'
)
from (
  values
    (4, 12, 'verified', 'code points'),
    (7, 15, 'text_mismatch', 'UTF-16 units'),
    (13, 21, 'text_mismatch', 'bytes')
) as c (a, b, said, why);

-- Nothing is trimmed, folded, joined or normalised, in the quote or in the page.
create function pg_temp.on_page(p_page text, p_quote text)
returns text
language sql
as $$
  select pg_temp.page(p_page);
  select pg_temp.said(pg_temp.span(p_quote))
    || ', '
    || pg_temp.said(pg_temp.span(p_quote, 1, 0, 0, char_length(p_quote)))
$$;
select is(pg_temp.on_page(c.page, c.page), 'verified, verified', 'itself: ' || c.why)
from (
  values
    (U&'pro\FB01t share', 'a ligature'),
    (U&'Ver\00AD' || E'\n' || 'trag', 'a soft hyphen at the end of a line'),
    (U&'\00A7\00A02', 'a no-break space'),
    (U&'\FEFFArticle 1', 'a byte order mark'),
    (E'line1\r\nline2', 'CR LF'),
    (U&'e\0301', 'a combining accent'),
    (U&'\202E\05D0\05D1\202C', 'right to left'),
    (U&'a\200Bb', 'a zero-width space'),
    ('  padded  ', 'white space around'),
    (E'tab\there', 'a tab'),
    (U&'\+01F468\200D\+01F469', 'joined emoji'),
    (E'back\\slash', 'a backslash'),
    (U&'\FFFF\+10FFFF', 'the last code points')
) as c (page, why);
select is(
  pg_temp.on_page(c.page, c.quote),
  case when char_length(c.quote) > char_length(c.page)
    then 'quote_absent, offsets_out_of_range'
    else 'quote_absent, text_mismatch'
  end,
  'not itself: ' || c.why
)
from (
  values
    (U&'pro\FB01t share', 'profit share', 'a ligature'),
    ('profit share', U&'pro\FB01t share', 'a ligature in the quote'),
    (U&'Ver\00AD' || E'\n' || 'trag', 'Vertrag', 'a hyphenated word'),
    (U&'\00A7\00A02', U&'\00A7 2', 'a no-break space'),
    (U&'\00A7 2', U&'\00A7\00A02', 'a space'),
    (E'line1\r\nline2', E'line1\nline2', 'CR LF'),
    (E'line1\nline2', E'line1\r\nline2', 'LF'),
    (U&'caf\00E9', U&'cafe\0301', 'NFD'),
    (U&'cafe\0301', U&'caf\00E9', 'NFC'),
    (U&'\212B', U&'\00C5', 'the sign of a unit'),
    (U&'stra\00DFe', 'strasse', 'a sharp s'),
    ('I', 'i', 'a case'),
    (U&'\0130', 'i', 'a Turkish case'),
    (U&'\FF11', '1', 'a full-width digit'),
    (U&'a\200Bb', 'ab', 'a zero-width space'),
    (U&'a\00ADb', 'ab', 'a soft hyphen'),
    (U&'it\2019s', 'it''s', 'a curly apostrophe'),
    (U&'1\20132', '1-2', 'a dash')
) as c (page, quote, why);
select pg_temp.page(U&'\FEFFArticle 1');
select is(pg_temp.said(pg_temp.span('Article 1', 1, 0, 0, 9)), 'text_mismatch', 'the mark counts');
select is(pg_temp.said(pg_temp.span('Article 1', 1, 0, 1, 10)), 'verified', 'it starts at 1');

-- No pattern is made of a quote.
select pg_temp.page('Fees rose 12% (est) in May.');
select is(pg_temp.said(pg_temp.span('12% (est', 1, 0, 10, 18)), 'verified', 'the very text');
select is(
  pg_temp.said(pg_temp.span(c.quote, 1, 0, 10, 10 + char_length(c.quote))),
  'text_mismatch',
  format('no pattern at the place: %s', c.quote)
)
from (
  values ('_______'), ('.*'), (E'\\'), ('(...)'), ('[1]'), ('1|2'), ('^12'), ('12$')
) as c (quote);
select is(
  pg_temp.said(pg_temp.span(c.quote)), 'quote_absent', format('no pattern anywhere: %s', c.quote)
)
from (
  values ('____'), ('%%'), ('F%s'), ('.*'), (E'\\'), (E'\\d'), ('(est|x)'), ('[FR]ees'),
    ('12% ('''), ('Fees*'), (E'rose\\ 12')
) as c (quote);
select is(pg_temp.said(pg_temp.span('%')), 'verified', 'a percent sign is itself');

-- A quote over the end of a page stands on neither.
select citeledger.replace_document_pages(
  pg_temp.id('d1'),
  '[{"page_number": 12, "blocks": ["the lessee shall"]},
    {"page_number": 13, "blocks": ["notify the owner"]}, {"page_number": 14, "blocks": []},
    {"page_number": 15, "blocks": [""]}]'
);
select is(pg_temp.said(c.span), c.said, c.why)
from (
  values
    (pg_temp.span('shall notify', 12), 'quote_absent', 'over the end of a page'),
    (pg_temp.span(E'shall\nnotify', 12), 'quote_absent', 'over the end, with a line feed'),
    (pg_temp.span('notify', 12), 'quote_absent', 'no fallback to the next page'),
    (pg_temp.span('shall', 13), 'quote_absent', 'nor to the one before'),
    (pg_temp.span('shall', 11), 'page_missing', 'a page that is not there'),
    (pg_temp.span('shall', 1), 'page_missing', 'pages are known by their number, not their place'),
    (pg_temp.span('x', 14), 'quote_absent', 'a page without blocks has an empty text'),
    (pg_temp.span('x', 14, null, 0, 1), 'offsets_out_of_range', 'without a single code point'),
    (pg_temp.span('x', 14, 0), 'block_out_of_range', 'and no block'),
    (pg_temp.span('x', 15, 0), 'quote_absent', 'an empty block is a block')
) as c (span, said, why);

-- The live text decides, every time.
select pg_temp.page('a modern lease');
select is(pg_temp.said(pg_temp.span('modern', 1, 0, 2, 8)), 'verified', 'first it holds');
select pg_temp.page('a modem lease');
select is(pg_temp.said(pg_temp.span('modern', 1, 0, 2, 8)), 'text_mismatch', 'read again as modem');
select pg_temp.page('a modern lease');
select is(pg_temp.said(pg_temp.span('modern', 1, 0, 2, 8)), 'verified', 'restored');
select pg_temp.page('Page header a modern lease');
select is(pg_temp.said(pg_temp.span('modern', 1, 0, 2, 8)), 'text_mismatch', 'behind a header');
select pg_temp.page('', 'a modern lease');
select is(pg_temp.said(pg_temp.span('modern', 1, 0, 2, 8)), 'offsets_out_of_range', 'block before');
select citeledger.replace_document_pages(
  pg_temp.id('d1'), '[{"page_number": 2, "blocks": ["a modern lease"]}]'
);
select is(pg_temp.said(pg_temp.span('modern', 1, 0, 2, 8)), 'page_missing', 'the page is gone');
select citeledger.replace_document_pages(pg_temp.id('d1'), '[]');
select is(pg_temp.said(pg_temp.span('modern', 1, 0, 2, 8)), 'no_pages', 'all pages are gone');

-- Of another firm there is nothing, and without a context there is nothing at all.
select is(
  pg_temp.said(pg_temp.span('rent', 1, 1, null, null, pg_temp.id('bd'))),
  'no_pages',
  'the pages of another firm are not there'
);
select citeledger.set_context(current_setting('test.b')::uuid);
select is(
  pg_temp.said(pg_temp.span('rent', 1, 1, null, null, pg_temp.id('bd'))),
  'verified',
  'that firm has them'
);
select citeledger.set_context(null);
select is(
  pg_temp.said(pg_temp.span('rent', 1, 1, null, null, pg_temp.id('bd'))),
  'no_pages',
  'without a context there are none'
);

select * from finish();

rollback;
