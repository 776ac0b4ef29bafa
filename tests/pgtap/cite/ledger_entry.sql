-- cite_ledger_entry: one click from an entry to its live check, under the entry's matter.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(31);

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

insert into citeledger.chats (id, project_id)
values
  (pg_temp.id('c1'), pg_temp.id('f1')), (pg_temp.id('c2'), null),
  (pg_temp.id('c3'), pg_temp.id('f3')), (pg_temp.id('c4'), pg_temp.id('f2'));
insert into citeledger.messages (id, chat_id, role)
select pg_temp.id('e' || n), pg_temp.id('c' || n), 'assistant'
from generate_series(1, 4) as n;
create function pg_temp.cited(
  p_n integer,
  p_message text,
  p_document text,
  p_page integer,
  p_block integer,
  p_start integer,
  p_end integer,
  p_quote text
)
returns void
language sql
as $$
  insert into citeledger.message_citations (
    id, message_id, source_document_id, source_page, source_block, source_offset_start,
    source_offset_end, source_text, verified, verification_method, verification_confidence
  )
  values (
    pg_temp.id('a0' || p_n), pg_temp.id(p_message), pg_temp.id(p_document), p_page, p_block,
    p_start, p_end, p_quote, true, 'exact_match', 1
  )
$$;
select
  pg_temp.cited(1, 'e1', 'd1', 1, 1, 4, 8, 'rent'),
  pg_temp.cited(2, 'e1', 'd1', 1, 1, 4, 8, 'Rent'),
  pg_temp.cited(3, 'e1', 'd1', null, null, null, null, 'rent'),
  pg_temp.cited(4, 'e1', 'd1', 1, null, null, null, 'rent'),
  pg_temp.cited(5, 'e1', 'd2', 1, 1, 4, 8, 'rent'),
  pg_temp.cited(6, 'e1', 'd3', 1, 1, 4, 8, 'rent'),
  pg_temp.cited(7, 'e1', 'd4', 1, 1, 4, 8, 'rent'),
  pg_temp.cited(8, 'e1', null, 1, 1, 4, 8, 'rent'),
  pg_temp.cited(9, 'e2', 'd1', 1, 1, 4, 8, 'rent'),
  pg_temp.cited(10, 'e3', 'd5', 1, 1, 4, 8, 'rent'),
  pg_temp.cited(11, 'e1', 'd5', 1, 1, 4, 8, 'rent'),
  pg_temp.cited(12, 'e1', 'd1', 9, null, null, null, 'rent'),
  pg_temp.cited(13, 'e1', 'd6', 1, 1, 4, 8, 'rent'),
  pg_temp.cited(14, 'e1', 'd1', 1, 1, 4, 8, U&'\00A0\200B'),
  pg_temp.cited(15, 'e4', 'd1', 1, 1, 4, 8, 'rent');
insert into citeledger.message_caselaw_citations (
  message_id, opinion_id, cluster_id, source_text
)
values (pg_temp.id('e1'), 1, 1, 'rent');
insert into citeledger.message_tool_sources (message_id, source_kind, label)
values (pg_temp.id('e1'), 'web_search', 'rent');
select citeledger.finalize_turns(array(select m.id from citeledger.messages as m));
select set_config(
  'test.entries',
  (
    select jsonb_object_agg(
      coalesce(ltrim(right(e.message_citation_id::text, 4), '0'), e.source_kind), e.id
    )::text
    from citeledger.citation_ledger_entry as e
  ),
  true
);
create function pg_temp.entry(p_key text)
returns uuid
language sql
stable
as $$
  select (current_setting('test.entries')::jsonb ->> p_key)::uuid
$$;
create function pg_temp.clicked(p_key text)
returns jsonb
language sql
as $$
  select citeledger.cite_ledger_entry(pg_temp.entry(p_key)) - 'checked_at' - 'engine_state'
$$;

set local role citeledger_reader;
select is(
  (select count(*) from jsonb_object_keys(current_setting('test.entries')::jsonb)),
  17::bigint,
  'there is an entry for each source'
);
select is(
  pg_temp.clicked('a01'),
  '{"verified": true, "reason": null,
    "deep_link": "/matters/M-1/record/doc/00000000-0000-4000-8000-0000000000d1?page=1&block=1",
    "span": {"document_id": "00000000-0000-4000-8000-0000000000d1", "page_number": 1,
      "block_index": 1, "char_start": 4, "char_end": 8, "quote": "rent"}}'::jsonb,
  'what holds is verified now, and has its link'
);
select is(
  pg_temp.clicked(c.key) - 'span',
  jsonb_build_object('verified', false, 'reason', c.reason, 'deep_link', null),
  format('recorded as verified, but not now: %s', c.reason)
)
from (
  values
    ('a02', 'text_mismatch'), ('a03', 'not_anchored'), ('a012', 'page_missing'),
    ('a014', 'text_mismatch')
) as c (key, reason);
select is(
  pg_temp.clicked('a03') -> 'span',
  '{"document_id": "00000000-0000-4000-8000-0000000000d1", "quote": "rent"}'::jsonb,
  'a citation without a page names none'
);
select matches(pg_temp.clicked('a04') ->> 'deep_link', 'page=1$', 'anchored in the page');
select is(
  pg_temp.refusal(format('select citeledger.cite_ledger_entry(%L)', pg_temp.entry(c.key))),
  'P0002|record not found|No record that may be cited here is visible in the context.|'
    || 'Check the ids, the firm of the context, and who may see the matter.',
  format('not found: %s', c.why)
)
from (
  values
    ('a05', 'privileged'), ('a06', 'deleted'), ('a07', 'a document of another matter'),
    ('a08', 'a citation of no document'), ('a09', 'an entry of no matter'),
    ('a010', 'an entry of a walled matter'), ('a011', 'a document behind a wall'),
    ('a013', 'a work product'), ('a015', 'an entry of another matter than the document''s'),
    ('caselaw', 'an entry of another kind: caselaw'), ('web_search', 'of another kind: a tool'),
    ('none', 'null')
) as c (key, why);
select is(
  pg_temp.refusal(format('select citeledger.cite_ledger_entry(%L)', pg_temp.id('dead'))),
  pg_temp.refusal(format('select citeledger.cite_ledger_entry(%L)', pg_temp.entry('a05'))),
  'an entry of nobody is the same'
);
select citeledger.set_context(
  current_setting('test.a')::uuid, 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', array['matters:read']
);
select is(pg_temp.clicked('a010') ->> 'verified', 'true', 'the wall opens for its member');
select is(
  pg_temp.refusal(format('select citeledger.cite_ledger_entry(%L)', pg_temp.entry('a011'))),
  pg_temp.refusal(format('select citeledger.cite_ledger_entry(%L)', pg_temp.id('dead'))),
  'who may see both matters still finds no document of the one in the other'
);
select citeledger.set_context(current_setting('test.b')::uuid, null, array['matters:read']);
select is(
  pg_temp.refusal(format('select citeledger.cite_ledger_entry(%L)', pg_temp.entry('a01'))),
  pg_temp.refusal(format('select citeledger.cite_ledger_entry(%L)', pg_temp.id('dead'))),
  'of another firm'
);
select citeledger.set_context(current_setting('test.a')::uuid);
select throws_ok(
  format('select citeledger.cite_ledger_entry(%L)', pg_temp.entry('a01')),
  '42501',
  'permission denied by the citeledger context',
  'without the permission'
);

-- The matter is the one at that time: the chat may have moved since.
set local role citeledger_admin;
select citeledger.set_context(current_setting('test.a')::uuid, null, array['matters:read']);
delete from citeledger.projects where id = pg_temp.id('f2');
set local role citeledger_reader;
select is(
  pg_temp.refusal(format('select citeledger.cite_ledger_entry(%L)', pg_temp.entry('a015'))),
  pg_temp.refusal(format('select citeledger.cite_ledger_entry(%L)', pg_temp.id('dead'))),
  'the matter of the entry is gone'
);

-- The live text decides, not what was recorded.
set local role citeledger_app;
select citeledger.replace_document_pages(
  pg_temp.id('d1'), '[{"page_number": 1, "blocks": ["Heading", "The tent is due."]}]'
);
set local role citeledger_reader;
select is(
  pg_temp.clicked('a01') ->> 'reason', 'text_mismatch', 'the page was read again: no longer there'
);
set local role citeledger_app;
select is(
  (
    select e.verification_status
    from citeledger.citation_ledger_entry as e
    where e.id = pg_temp.entry('a01')
  ),
  'exact_match',
  'a click changes nothing in the ledger'
);

select * from finish();

rollback;
