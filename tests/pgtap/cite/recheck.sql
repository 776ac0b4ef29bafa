-- recheck_document: what still holds of a document's citations, changing nothing.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(14);

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

insert into citeledger.chats (id) values (pg_temp.id('c1'));
insert into citeledger.messages (id, chat_id, role)
values
  (pg_temp.id('e1'), pg_temp.id('c1'), 'assistant'),
  (pg_temp.id('e2'), pg_temp.id('c1'), 'assistant');
insert into citeledger.message_citations (
  id, message_id, source_document_id, source_page, source_block, source_offset_start,
  source_offset_end, source_text, created_at
)
select
  pg_temp.id(c.id), pg_temp.id(c.message), pg_temp.id(c.document), c.page, c.block, c.a, c.b,
  c.quote, timestamptz '2026-01-01' + c.place * interval '1 minute'
from (
  values
    (1, 'a9', 'e1', 'd1', 1, 1, 4, 8, 'rent'),
    (2, 'a1', 'e2', 'd1', 1, 1, null, null, 'rent'),
    (3, 'a8', 'e1', 'd1', 1, null, 12, 16, 'rent'),
    (4, 'a2', 'e1', 'd1', null, null, null, null, 'rent'),
    (5, 'a7', 'e1', 'd1', 2, 0, 0, 6, 'Second'),
    (6, 'a3', 'e1', 'd1', 3, null, null, null, 'x'),
    (7, 'a6', 'e1', 'd1', 1, 7, null, null, 'x'),
    (8, 'a4', 'e1', 'd1', 1, 1, 4, 400, 'rent'),
    (9, 'a5', 'e1', 'd1', 1, 1, null, null, 'Rent'),
    (10, 'aa', 'e1', 'd1', 1, 1, 4, 8, 'rents'),
    (11, 'ab', 'e1', 'd1', 1, 1, null, null, U&'\00A0'),
    (12, 'ac', 'e1', 'd2', 1, 1, 4, 8, 'rent'),
    (13, 'ad', 'e1', null, 1, 1, 4, 8, 'rent')
) as c (place, id, message, document, page, block, a, b, quote);

create function pg_temp.now_holds(p_document text default 'd1')
returns text
language sql
as $$
  select coalesce(
    string_agg(
      format(
        '%s %s %s',
        right(r.message_citation_id::text, 2),
        case when r.verified then 'holds' else 'fails' end,
        coalesce(r.reason, '-')
      ),
      ', '
      order by r.place
    ),
    'nothing'
  )
  from citeledger.recheck_document(pg_temp.id(p_document)) with ordinality
    as r (message_citation_id, message_id, verified, reason, place)
$$;
select is(
  pg_temp.now_holds(),
  'a9 holds -, a1 holds -, a8 holds -, a2 fails not_anchored, a7 holds -, a3 fails page_missing, '
    'a6 fails block_out_of_range, a4 fails offsets_out_of_range, a5 fails quote_absent, '
    'aa fails text_mismatch, ab fails quote_absent',
  'each citation of the document, in the order of recording, with its reason'
);
select results_eq(
  format('select r.message_citation_id, r.message_id from citeledger.recheck_document(%L) as r',
    pg_temp.id('d1')),
  format(
    'select k.id, k.message_id from citeledger.message_citations as k'
      ' where k.source_document_id = %L order by k.created_at',
    pg_temp.id('d1')
  ),
  'with its turn'
);
select is(pg_temp.now_holds('d2'), 'ac holds -', 'of a privileged document too: it shows no text');
select is(pg_temp.now_holds('d4'), 'nothing', 'of a document that nobody cited: nothing');
select citeledger.replace_document_pages(
  pg_temp.id('d1'),
  '[{"page_number": 1, "blocks": ["Heading", "The tent is due."]},
    {"page_number": 2, "blocks": ["Second page"]}]'
);
select matches(
  pg_temp.now_holds(),
  '^a9 fails text_mismatch, a1 fails quote_absent, a8 fails text_mismatch, a2 fails not_anchored, '
    'a7 holds -, ',
  'after the page was read again'
);
select citeledger.replace_document_pages(pg_temp.id('d1'), '[]');
select matches(
  pg_temp.now_holds(),
  '^a9 fails no_pages, a1 fails no_pages, a8 fails no_pages, a2 fails not_anchored, ',
  'after all pages are gone'
);
select is_empty(
  'select from citeledger.message_citations as k where k.verified',
  'it changes nothing'
);
select is(
  pg_temp.refusal(format('select * from citeledger.recheck_document(%L)', c.id)),
  'P0002|document not found|No document of this id is in the firm of the context.|'
    || 'Check the id and the firm of the context.',
  format('not found: %s', c.why)
)
from (
  values
    (pg_temp.id('dead'), 'unknown'), (pg_temp.id('bd'), 'of another firm'), (null, 'null')
) as c (id, why);
set local role citeledger_reader;
select throws_ok(
  format('select * from citeledger.recheck_document(%L)', pg_temp.id('d1')),
  '42501',
  null,
  'the reader may not call it'
);

select * from finish();

rollback;
