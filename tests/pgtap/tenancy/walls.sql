-- Ethical walls: a matter with members is there for them alone, one without for the whole firm; and
-- no function and no other policy opens a way around.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(28);

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

-- The same ids in another firm: its members must count for nothing here.
select citeledger.set_context(current_setting('test.b')::uuid);
insert into citeledger.projects (id, matter_number, name)
values ('00000000-0000-4000-8000-000000000002', 'M-2', 'Open here, walled there');
insert into citeledger.project_members (project_id, user_id)
values ('00000000-0000-4000-8000-000000000002', 'cccccccc-cccc-4ccc-8ccc-cccccccccccc');

select citeledger.set_context(current_setting('test.a')::uuid);
insert into citeledger.projects (id, matter_number, name)
values
  ('00000000-0000-4000-8000-000000000001', 'M-1', 'Walled'),
  ('00000000-0000-4000-8000-000000000002', 'M-2', 'Open');
insert into citeledger.documents (id, project_id, title)
values ('00000000-0000-4000-8000-0000000000d1', '00000000-0000-4000-8000-000000000001', 'Secret');
insert into citeledger.chats (id, project_id)
values
  ('00000000-0000-4000-8000-0000000000c1', '00000000-0000-4000-8000-000000000001'),
  ('00000000-0000-4000-8000-0000000000c2', '00000000-0000-4000-8000-000000000002'),
  ('00000000-0000-4000-8000-0000000000c3', null);
insert into citeledger.messages (id, chat_id, role)
values
  ('00000000-0000-4000-8000-0000000000e1', '00000000-0000-4000-8000-0000000000c1', 'assistant'),
  ('00000000-0000-4000-8000-0000000000e2', '00000000-0000-4000-8000-0000000000c2', 'assistant');
insert into citeledger.message_citations (message_id, source_document_id, source_text)
values
  ('00000000-0000-4000-8000-0000000000e1', '00000000-0000-4000-8000-0000000000d1', 'quote'),
  ('00000000-0000-4000-8000-0000000000e2', '00000000-0000-4000-8000-0000000000d1', 'quote');
select citeledger.finalize_turn('00000000-0000-4000-8000-0000000000e1');
select citeledger.finalize_turn('00000000-0000-4000-8000-0000000000e2');

create function pg_temp.become(p_user text)
returns void
language sql
as $$
  select citeledger.set_context(
    current_setting('test.a')::uuid, p_user::uuid, array['matters:read']
  )
$$;

set local role citeledger_app;
select pg_temp.become(null);
select results_eq(
  'select matter_number from citeledger.projects order by 1',
  array['M-1', 'M-2'],
  'a matter without members is visible to the whole firm'
);

set local role citeledger_admin;
insert into citeledger.project_members (project_id, user_id)
values
  ('00000000-0000-4000-8000-000000000001', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'),
  ('00000000-0000-4000-8000-000000000001', 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb');

set local role citeledger_app;
select results_eq(
  'select matter_number from citeledger.projects order by 1',
  array['M-2'],
  'its first member closes it at once to everybody else; nobody is no member'
);
select pg_temp.become('dddddddd-dddd-4ddd-8ddd-dddddddddddd');
select results_eq(
  'select matter_number from citeledger.projects order by 1',
  array['M-2'],
  'a person who is no member does not see it'
);
select pg_temp.become('cccccccc-cccc-4ccc-8ccc-cccccccccccc');
select results_eq(
  'select matter_number from citeledger.projects order by 1',
  array['M-2'],
  'a member of another firm''s matter with the same id is no member here, and walls nothing here'
);
select pg_temp.become('aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select results_eq(
  'select matter_number from citeledger.projects order by 1',
  array['M-1', 'M-2'],
  'a member sees it'
);
select pg_temp.become('bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb');
select results_eq(
  'select matter_number from citeledger.projects order by 1',
  array['M-1', 'M-2'],
  'the other member sees it'
);
set local citeledger.user_id = 'garbage';
select results_eq(
  'select matter_number from citeledger.projects order by 1',
  array['M-2'],
  'a malformed person is no member'
);

-- Through the claims.
set local citeledger.firm_id = '';
select set_config(
  'request.jwt.claims',
  format(
    '{"firm_id":"%s","sub":"aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"}', current_setting('test.a')
  ),
  true
);
select results_eq(
  'select matter_number from citeledger.projects order by 1',
  array['M-1', 'M-2'],
  'the claims'' sub is the member'
);
select set_config(
  'request.jwt.claims', format('{"firm_id":"%s"}', current_setting('test.a')), true
);
set local citeledger.user_id = 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa';
select results_eq(
  'select matter_number from citeledger.projects order by 1',
  array['M-2'],
  'a member in the settings does not pass the wall for the claims'' firm'
);
set local request.jwt.claims = '';

-- The members are not the application's to know, nor to write.
select throws_ok(
  'select from citeledger.project_members',
  '42501',
  null,
  'the app cannot read who the members are'
);
select throws_ok(
  'select citeledger_private.is_behind_wall(null, null)',
  '42501',
  null,
  'the app cannot ask whether a matter has a wall'
);
select throws_ok(
  $$delete from citeledger.project_members$$,
  '42501',
  null,
  'the app cannot take a wall down'
);

-- The admin stands before the wall too, in projects.
set local role citeledger_admin;
select pg_temp.become(null);
select results_eq(
  'select matter_number from citeledger.projects order by 1',
  array['M-2'],
  'the admin sees no walled matter without being a member'
);
delete from citeledger.projects where id = '00000000-0000-4000-8000-000000000001';
select pg_temp.become('aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select results_eq(
  'select matter_number from citeledger.projects order by 1',
  array['M-1', 'M-2'],
  'the admin cannot delete a walled matter without being a member'
);

-- Traces reach a matter through projects alone.
set local role citeledger_reader;
select pg_temp.become('dddddddd-dddd-4ddd-8ddd-dddddddddddd');
select throws_ok(
  $$select citeledger.ledger_trace('00000000-0000-4000-8000-0000000000c1')$$,
  'P0002',
  'chat not found',
  'the chat of a walled matter is not found by who is no member'
);
select is(
  jsonb_path_query_array(
    citeledger.ledger_trace('00000000-0000-4000-8000-0000000000c2'),
    '$.entries[*].source.withheld'
  ),
  '[true]'::jsonb,
  'a quote from a document of a walled matter is withheld in another matter''s chat'
);
select is(
  jsonb_path_query_array(
    citeledger.ledger_trace('00000000-0000-4000-8000-0000000000c2'),
    '$.entries[*].source.passages'
  ),
  '[null]'::jsonb,
  'its passages are null then'
);
select pg_temp.become('aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select is(
  jsonb_array_length(
    citeledger.ledger_trace('00000000-0000-4000-8000-0000000000c1') -> 'entries'
  ),
  1,
  'the chat of a walled matter is there for a member'
);
select is(
  citeledger.ledger_trace('00000000-0000-4000-8000-0000000000c2')
    #>> '{entries,0,source,passages,0,text}',
  'quote',
  'the quote from a walled matter''s document is shown to a member'
);

-- The policy is restrictive: it narrows, so no second policy can open what it closes.
select is(
  (
    select array_agg(p.polname::text)
    from pg_policy as p
    where p.polrelid = 'citeledger.projects'::regclass and not p.polpermissive
  ),
  array['projects_behind_a_wall'],
  'the wall''s policy is restrictive'
);

-- Down it comes with its last member.
set local role citeledger_admin;
delete from citeledger.project_members
where user_id = 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa';
set local role citeledger_app;
select results_eq(
  'select matter_number from citeledger.projects order by 1',
  array['M-2'],
  'a person who is removed sees the matter no longer'
);
set local role citeledger_admin;
delete from citeledger.project_members;
set local role citeledger_app;
select results_eq(
  'select matter_number from citeledger.projects order by 1',
  array['M-1', 'M-2'],
  'without any member the matter is the whole firm''s again'
);

-- A wall goes with its matter.
set local role citeledger_admin;
insert into citeledger.project_members (project_id, user_id)
values ('00000000-0000-4000-8000-000000000002', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select pg_temp.become('aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
delete from citeledger.projects where id = '00000000-0000-4000-8000-000000000002';
select is_empty(
  'select from citeledger.project_members',
  'the members of a matter go with it'
);
select throws_ok(
  $$insert into citeledger.project_members (project_id, user_id)
    values ('00000000-0000-4000-8000-000000000002', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')$$,
  '23503',
  null,
  'there is no wall without a matter'
);
insert into citeledger.project_members (project_id, user_id)
values ('00000000-0000-4000-8000-000000000001', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select throws_ok(
  $$insert into citeledger.project_members (project_id, user_id)
    values ('00000000-0000-4000-8000-000000000001', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')$$,
  '23505',
  'duplicate key value violates unique constraint "project_members_pkey"',
  'a person is a member of a matter once'
);

select * from finish();

rollback;
