-- replace_document_pages and read_pages: the live text, whole, and under the checks of cite.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(109);

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

create function pg_temp.replaced(p_pages text, p_document text default 'd1')
returns text
language sql
as $$
  select pg_temp.refusal(
    format('select citeledger.replace_document_pages(%L, %L)', pg_temp.id(p_document), p_pages)
  )
$$;
create function pg_temp.read(p_page integer default null, p_document text default 'd1')
returns text
language sql
as $$
  select coalesce(
    string_agg(
      format('%s/%s %s', b.page_number, b.block_index, b.content), ', ' order by b.place
    ),
    'nothing'
  )
  from citeledger.read_pages(pg_temp.id('f1'), pg_temp.id(p_document), p_page) with ordinality
    as b (page_number, block_index, content, place)
$$;
select is(
  pg_temp.read(),
  '1/0 Heading, 1/1 The rent is due., 1/2 Signed, 2/0 Second page',
  'the text, in reading order'
);
select is(pg_temp.read(2), '2/0 Second page', 'one page');
select is(pg_temp.read(3), 'nothing', 'a page that is not there');

select is(
  citeledger.replace_document_pages(
    pg_temp.id('d1'),
    '[{"page_number": 30, "blocks": ["c"]}, {"blocks": ["a", "", "b"], "page_number": 2},
      {"page_number": 10, "blocks": []}]'
  ),
  3,
  'it says how many pages there are now'
);
select is(pg_temp.read(), '2/0 a, 2/1 , 2/2 b, 30/0 c', 'the old pages are gone, all of them');
select results_eq(
  format(
    'select p.page_number from citeledger.document_pages as p where p.document_id = %L order by 1',
    pg_temp.id('d1')
  ),
  array[2, 10, 30],
  'a page without blocks is a page'
);
select is(
  (
    select count(*) from citeledger.document_pages as p where p.document_id = pg_temp.id('d2')
  ),
  2::bigint,
  'other documents keep theirs'
);
select is(
  citeledger.replace_document_pages(pg_temp.id('d1'), '[{"page_number": 2.0, "blocks": ["x"]}]'),
  1,
  'a whole number in another writing is one'
);
select is(citeledger.replace_document_pages(pg_temp.id('d1'), '[]'), 0, 'an empty list: none');
select is(pg_temp.read(), 'nothing', 'and then there is nothing to read');
select is(
  citeledger.replace_document_pages(
    pg_temp.id('d1'),
    jsonb_build_array(jsonb_build_object('page_number', 1, 'blocks', jsonb_build_array(t.content)))
  )::text || pg_temp.read(),
  format('11/0 %s', t.content),
  'kept byte for byte'
)
from (
  values
    (U&'\FEFF e\0301 \00E9 \00AD \200B \202E \+01F4C4 '), (E'a\r\nb\tc\x0c'), ('  '), ('%s \u0041'),
    (E'\x01\x7f')
) as t (content);

-- Malformed pages, and what stays.
select matches(
  pg_temp.replaced(c.pages), format('^22023\|the pages are malformed\|%s', c.detail), c.why
)
from (
  values
    (null, 'p_pages: not a list of pages', 'null'),
    ('null', 'p_pages: not a list of pages', 'null of JSON'),
    ('{}', 'p_pages: not a list of pages', 'an object'),
    ('"[]"', 'p_pages: not a list of pages', 'a text'),
    ('[5]', 'page 1 of the list: not an object', 'a number for a page'),
    ('[{"page_number": 1, "blocks": []}, null]', 'page 2 of the list: not an object', 'a null'),
    ('[{}]', 'page 1 of the list: its keys', 'no keys'),
    ('[{"page_number": 1}]', 'page 1 of the list: its keys', 'no blocks'),
    ('[{"blocks": []}]', 'page 1 of the list: its keys', 'no number'),
    ('[{"page_number": 1, "blocks": [], "text": ""}]', 'page 1 of the list: its keys', 'another'),
    ('[{"page_number": 0, "blocks": []}]', 'page_number of page 1', 'page 0'),
    ('[{"page_number": -1, "blocks": []}]', 'page_number of page 1', 'page -1'),
    ('[{"page_number": "1", "blocks": []}]', 'page_number of page 1', 'a text for a number'),
    ('[{"page_number": 1.5, "blocks": []}]', 'page_number of page 1', 'half a page'),
    ('[{"page_number": null, "blocks": []}]', 'page_number of page 1', 'no number at all'),
    ('[{"page_number": true, "blocks": []}]', 'page_number of page 1', 'true'),
    ('[{"page_number": 2147483648, "blocks": []}]', 'page_number of page 1', 'beyond int4'),
    ('[{"page_number": 1, "blocks": "x"}]', 'blocks of page 1', 'a text for blocks'),
    ('[{"page_number": 1, "blocks": null}]', 'blocks of page 1', 'null for blocks'),
    ('[{"page_number": 1, "blocks": {"0": "x"}}]', 'blocks of page 1', 'an object for blocks'),
    ('[{"page_number": 1, "blocks": ["x", null]}]', 'blocks of page 1', 'null for a block'),
    ('[{"page_number": 1, "blocks": [5]}]', 'blocks of page 1', 'a number for a block'),
    ('[{"page_number": 1, "blocks": [["x"]]}]', 'blocks of page 1', 'a list for a block'),
    ('[{"page_number": 1, "blocks": []}, {"page_number": 1, "blocks": []}]',
      'page_number: a page is given twice', 'a page twice'),
    ('[{"page_number": 1, "blocks": []}, {"page_number": 1.0, "blocks": []}]',
      'page_number: a page is given twice', 'a page twice, in two writings')
) as c (pages, detail, why);
select unalike(pg_temp.replaced('[{"secret": "words"}]'), '%words%', 'no content is repeated');
select is(pg_temp.read(), E'1/0 \x01\x7f', 'nothing of it was done');
select is(
  pg_temp.replaced('[]', c.document),
  'P0002|document not found|No document of this id is in the firm of the context.|'
    || 'Check the id and the firm of the context.',
  format('not found: %s', c.document)
)
from (values ('dead'), ('bd')) as c (document);
select matches(
  pg_temp.refusal('select citeledger.replace_document_pages(null, ''[]'')'),
  '^P0002\|document not found',
  'null is no document'
);
select is(
  citeledger.replace_document_pages(pg_temp.id(c.document), '[]'),
  0,
  format('an ingest may write whatever it owns: %s', c.document)
)
from (values ('d2'), ('d3'), ('d5'), ('d7')) as c (document);

-- read_pages is no side door.
set local role citeledger_reader;
select is(
  pg_temp.refusal(
    format(
      'select * from citeledger.read_pages(%L, %L, %L)',
      pg_temp.id(c.matter), pg_temp.id(c.document), p.page
    )
  ),
  'P0002|record not found|No record that may be cited here is visible in the context.|'
    || 'Check the ids, the firm of the context, and who may see the matter.',
  format('not found: %s in %s, page %s', c.document, c.matter, coalesce(p.page::text, 'null'))
)
from (
  values
    ('f1', 'd2'), ('f1', 'd3'), ('f1', 'd4'), ('f2', 'd1'), ('f3', 'd5'), ('f1', 'd6'),
    ('f1', 'd7'), ('f1', 'd8'), ('f1', 'd9'), ('f1', 'bd'), ('b1', 'bd'), ('f1', 'dead'),
    ('dead', 'd1')
) as c (matter, document)
cross join (values (null), (1)) as p (page);
select throws_ok(
  $$select citeledger.replace_document_pages('00000000-0000-4000-8000-0000000000d1', '[]')$$,
  '42501',
  null,
  'the reader replaces nothing'
);

-- Nobody writes or reads past the functions.
select throws_ok(c.statement, '42501', null, format('%s: %s', r.role, c.statement))
from (
  values ('citeledger_reader'), ('citeledger_app'), ('citeledger_admin')
) as r (role)
cross join (
  values
    ('select from citeledger.document_page_blocks'),
    ('select content from citeledger.document_page_blocks'),
    ('insert into citeledger.document_page_blocks default values'),
    ('update citeledger.document_page_blocks set content = ''x'''),
    ('delete from citeledger.document_page_blocks'),
    ('truncate citeledger.document_page_blocks'),
    ('insert into citeledger.document_pages default values'),
    ('update citeledger.document_pages set page_number = 1'),
    ('delete from citeledger.document_pages'),
    ('truncate citeledger.document_pages cascade')
) as c (statement)
cross join lateral (select set_config('role', r.role, true)) as become;

select * from finish();

rollback;
