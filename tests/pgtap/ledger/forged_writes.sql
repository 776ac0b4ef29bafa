-- No role writes what the functions write, and none changes what it only may insert: every forged
-- insert, update, delete and truncate is refused with 42501, whatever the row.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(227);

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
select set_config('test.firm', citeledger.create_firm('Forged LLP')::text, true);

set local role citeledger_app;
select citeledger.set_context(current_setting('test.firm')::uuid, null, array['matters:read']);
insert into citeledger.projects (id, matter_number, name)
values ('00000000-0000-4000-8000-0000000000f1', 'M-1', 'Matter');
insert into citeledger.documents (id, title)
values ('00000000-0000-4000-8000-0000000000d1', 'Lease');
insert into citeledger.chats (id) values ('00000000-0000-4000-8000-0000000000c1');
insert into citeledger.messages (id, chat_id, role)
values (
  '00000000-0000-4000-8000-0000000000e1', '00000000-0000-4000-8000-0000000000c1', 'assistant'
);
insert into citeledger.message_citations (id, message_id, source_text)
values ('00000000-0000-4000-8000-00000000a001', '00000000-0000-4000-8000-0000000000e1', 'quote');
insert into citeledger.message_caselaw_citations (message_id, opinion_id, cluster_id, source_text)
values ('00000000-0000-4000-8000-0000000000e1', 1, 1, 'holding');
insert into citeledger.message_tool_sources (message_id, source_kind, label)
values ('00000000-0000-4000-8000-0000000000e1', 'web', 'Page');
select citeledger.finalize_turn('00000000-0000-4000-8000-0000000000e1');
update citeledger.message_citations
set verified = true, verification_method = 'paraphrase_judge', verification_confidence = 0.7;

-- What is there now must be there at the end.
create temporary table before_forgery as
select 'entry' as what, to_jsonb(e) as said from citeledger.citation_ledger_entry as e
union all
select 'gate', to_jsonb(g) from citeledger.work_product_fiduciary_gate as g
union all
select 'revision', to_jsonb(r) from citeledger.citation_ledger_entry_revision as r
union all
select 'message', to_jsonb(m) from citeledger.messages as m
union all
select 'citation', to_jsonb(s) from citeledger.message_citations as s;
select is(
  (select string_agg(b.what, ' ' order by b.what) from before_forgery as b),
  'citation entry entry entry gate message revision',
  'there is something to forge'
);

create temporary table forgeries (statement text);
grant select on forgeries to public;
insert into forgeries (statement)
values
  ('insert into citeledger.citation_ledger_entry (chat_id, message_id, source_kind, '
    'message_citation_id, verification_status, confidence) values '
    '(''00000000-0000-4000-8000-0000000000c1'', ''00000000-0000-4000-8000-0000000000e1'', '
    '''kb_document'', ''00000000-0000-4000-8000-00000000a001'', ''exact_match'', 1)'),
  ('insert into citeledger.citation_ledger_entry default values'),
  ('update citeledger.citation_ledger_entry set verification_status = ''exact_match'''),
  ('update citeledger.citation_ledger_entry set confidence = 1'),
  ('update citeledger.citation_ledger_entry set project_id = null'),
  ('delete from citeledger.citation_ledger_entry'),
  ('truncate citeledger.citation_ledger_entry'),
  ('insert into citeledger.work_product_fiduciary_gate (message_id, chat_id, gate_status, '
    'pass_count, supported_count, fail_count, total_assertions, unrecognized_count) values '
    '(''00000000-0000-4000-8000-0000000000e1'', ''00000000-0000-4000-8000-0000000000c1'', '
    '''fiduciary_grade'', 1, 0, 0, 1, 0)'),
  ('insert into citeledger.work_product_fiduciary_gate (message_id, chat_id, gate_status, '
    'pass_count, supported_count, fail_count, total_assertions, unrecognized_count) values '
    '(''00000000-0000-4000-8000-0000000000e1'', ''00000000-0000-4000-8000-0000000000c1'', '
    '''fiduciary_grade'', 1, 0, 0, 1, 0) on conflict (firm_id, message_id) do update '
    'set gate_status = excluded.gate_status'),
  ('update citeledger.work_product_fiduciary_gate set gate_status = ''fiduciary_grade'''),
  ('update citeledger.work_product_fiduciary_gate set computed_at = now()'),
  ('delete from citeledger.work_product_fiduciary_gate'),
  ('truncate citeledger.work_product_fiduciary_gate'),
  ('insert into citeledger.citation_ledger_entry_revision (message_id, entry_id, source_kind, '
    'verification_status) values (''00000000-0000-4000-8000-0000000000e1'', gen_random_uuid(), '
    '''kb_document'', ''exact_match'')'),
  ('update citeledger.citation_ledger_entry_revision set verification_status = ''exact_match'''),
  ('delete from citeledger.citation_ledger_entry_revision'),
  ('truncate citeledger.citation_ledger_entry_revision'),
  ('insert into citeledger.finalize_failure (message_id, stage, sqlstate) values '
    '(''00000000-0000-4000-8000-0000000000e1'', ''gate'', ''XX000'')'),
  ('update citeledger.finalize_failure set stage = ''gate'''),
  ('delete from citeledger.finalize_failure'),
  ('truncate citeledger.finalize_failure'),
  ('insert into citeledger.firms (name) values (''Forged'')'),
  ('update citeledger.firms set name = ''Forged'''),
  ('delete from citeledger.firms'),
  ('truncate citeledger.firms cascade'),
  -- What the app may insert, it may not move, re-label or empty.
  ('update citeledger.projects set matter_number = ''M-9'''),
  ('update citeledger.chats set project_id = null'),
  ('update citeledger.chats set title = ''x'''),
  ('update citeledger.messages set role = ''user'''),
  ('update citeledger.messages set chat_id = gen_random_uuid()'),
  ('update citeledger.messages set created_at = now()'),
  ('update citeledger.message_citations set source_text = ''x'''),
  ('update citeledger.message_citations set message_id = gen_random_uuid()'),
  ('update citeledger.message_citations set source_document_id = null'),
  ('update citeledger.message_citations set verified = true, source_page = 1'),
  ('update citeledger.message_caselaw_citations set source_text = ''x'''),
  ('update citeledger.message_caselaw_citations set opinion_id = 2'),
  ('update citeledger.message_caselaw_citations set partial = true'),
  ('update citeledger.message_tool_sources set label = ''x'''),
  ('update citeledger.message_tool_sources set provider = ''x'''),
  ('insert into citeledger.message_citations (id, message_id, source_text) values '
    '(''00000000-0000-4000-8000-00000000a001'', ''00000000-0000-4000-8000-0000000000e1'', '
    '''forged'') on conflict (firm_id, id) do update set source_text = excluded.source_text'),
  ('delete from citeledger.documents'),
  ('truncate citeledger.projects cascade'),
  ('truncate citeledger.project_members'),
  ('truncate citeledger.documents cascade'),
  ('truncate citeledger.chats cascade'),
  ('truncate citeledger.messages cascade'),
  ('truncate citeledger.message_citations cascade'),
  ('truncate citeledger.message_caselaw_citations cascade'),
  ('truncate citeledger.message_tool_sources cascade'),
  -- Nor take the machine apart.
  ('alter table citeledger.citation_ledger_entry disable trigger all'),
  ('alter table citeledger.messages disable row level security'),
  ('alter table citeledger.messages no force row level security'),
  ('alter table citeledger.work_product_fiduciary_gate '
    'drop constraint work_product_fiduciary_gate_status_is_what_counts_say'),
  ('create policy open on citeledger.messages using (true)'),
  ('drop policy messages_of_the_firm on citeledger.messages'),
  ('drop trigger messages_seal on citeledger.messages'),
  ('create or replace function citeledger.current_firm_id() returns uuid language sql '
    'as ''select null::uuid'''),
  ('create table citeledger.forged (id uuid)'),
  ('set local session_replication_role = replica'),
  ('set local role citeledger_owner'),
  ('set local session authorization citeledger_owner');

select throws_ok(
  f.statement, '42501', null, format('the app: %s', left(f.statement, 70))
)
from forgeries as f;
set local role citeledger_admin;
select throws_ok(
  f.statement, '42501', null, format('the admin: %s', left(f.statement, 70))
)
from forgeries as f;
set local role citeledger_reader;
select throws_ok(
  f.statement, '42501', null, format('the reader: %s', left(f.statement, 70))
)
from forgeries as f;

-- The reader reads and writes no table at all.
select throws_ok(
  format('select from citeledger.%I', t.name),
  '42501',
  null,
  format('the reader cannot read %s', t.name)
)
from (
  values
    ('firms'), ('projects'), ('project_members'), ('documents'), ('chats'), ('messages'),
    ('message_citations'), ('message_caselaw_citations'), ('message_tool_sources'),
    ('citation_ledger_entry'), ('citation_ledger_entry_revision'),
    ('work_product_fiduciary_gate'), ('finalize_failure')
) as t (name);
select throws_ok(
  c.statement, '42501', null, format('the reader: %s', left(c.statement, 70))
)
from (
  values
    ('insert into citeledger.projects (matter_number, name) values (''M'', ''x'')'),
    ('insert into citeledger.documents (title) values (''x'')'),
    ('insert into citeledger.chats (title) values (''x'')'),
    ('update citeledger.messages set content = ''x'''),
    ('update citeledger.messages set finalized_at = now()'),
    ('update citeledger.documents set title = ''x'''),
    ('update citeledger.message_citations set verified = false'),
    ('delete from citeledger.message_citations'),
    ('delete from citeledger.message_tool_sources')
) as c (statement);

-- The app deletes sources alone.
set local role citeledger_app;
select throws_ok(c.statement, '42501', null, format('the app: %s', c.statement))
from (
  values
    ('delete from citeledger.messages'),
    ('delete from citeledger.chats'),
    ('delete from citeledger.projects'),
    ('select from citeledger.project_members'),
    ('insert into citeledger.project_members (project_id, user_id) values '
      '(''00000000-0000-4000-8000-0000000000f1'', gen_random_uuid())'),
    ('update citeledger.project_members set user_id = gen_random_uuid()')
) as c (statement);

-- A firm_id is nobody's to change.
select throws_ok(
  format('update citeledger.%I set firm_id = gen_random_uuid()', t.name),
  '42501',
  null,
  format('the app cannot change firm_id in %s', t.name)
)
from (
  values
    ('projects'), ('documents'), ('chats'), ('messages'), ('message_citations'),
    ('message_caselaw_citations'), ('message_tool_sources')
) as t (name);

select set_eq(
  $$select 'entry' as what, to_jsonb(e) as said from citeledger.citation_ledger_entry as e
    union all
    select 'gate', to_jsonb(g) from citeledger.work_product_fiduciary_gate as g
    union all
    select 'revision', to_jsonb(r) from citeledger.citation_ledger_entry_revision as r
    union all
    select 'message', to_jsonb(m) from citeledger.messages as m
    union all
    select 'citation', to_jsonb(s) from citeledger.message_citations as s$$,
  'select what, said from before_forgery',
  'after all that nothing has changed'
);
select is_empty('select citeledger.check_integrity()', 'and the firm is healthy');

select * from finish();

rollback;
