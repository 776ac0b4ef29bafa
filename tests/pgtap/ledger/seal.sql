-- The seal: a finalized message keeps its words and stays finalized, and its sources stay; only
-- their verification is open, and what it changes leaves a revision.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(49);

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
select set_config('test.firm', citeledger.create_firm('Seal LLP')::text, true);

set local role citeledger_app;
select citeledger.set_context(current_setting('test.firm')::uuid);
insert into citeledger.chats (id) values ('00000000-0000-4000-8000-0000000000c1');
insert into citeledger.messages (id, chat_id, role, content)
values
  ('00000000-0000-4000-8000-0000000000e1', '00000000-0000-4000-8000-0000000000c1',
    'assistant', 'A'),
  ('00000000-0000-4000-8000-0000000000e2', '00000000-0000-4000-8000-0000000000c1',
    'assistant', 'B'),
  ('00000000-0000-4000-8000-0000000000e3', '00000000-0000-4000-8000-0000000000c1', 'user', 'C'),
  ('00000000-0000-4000-8000-0000000000e4', '00000000-0000-4000-8000-0000000000c1', 'assistant',
    null);
insert into citeledger.message_citations (message_id, source_text)
select m.id, 'quote' from citeledger.messages as m;
insert into citeledger.message_caselaw_citations (message_id, opinion_id, cluster_id, source_text)
select m.id, 1, 1, 'holding' from citeledger.messages as m;
insert into citeledger.message_tool_sources (message_id, source_kind, label)
select m.id, 'web', 'Page' from citeledger.messages as m;

-- Before: all is open.
select lives_ok(
  $$update citeledger.messages
    set content = content || ' and more'
    where id = '00000000-0000-4000-8000-0000000000e1'$$,
  'content is open while the message is being written'
);
select lives_ok(
  $$update citeledger.messages
    set content = content || ' and more', finalized_at = now()
    where id = '00000000-0000-4000-8000-0000000000e1'$$,
  'content may change in the very update that finalizes'
);
update citeledger.messages
set finalized_at = now()
where id in ('00000000-0000-4000-8000-0000000000e3', '00000000-0000-4000-8000-0000000000e4');

-- After: the words and the time are sealed, also of a message that is not the assistant's.
select throws_ok(
  format('update citeledger.messages set %s where id = %L', c.change, c.id),
  '55000',
  'the message is finalized and sealed',
  format('sealed (%s): %s', c.whose, c.change)
)
from (
  values
    ('00000000-0000-4000-8000-0000000000e1', 'the assistant''s', 'content = ''forged'''),
    ('00000000-0000-4000-8000-0000000000e1', 'the assistant''s', 'content = null'),
    ('00000000-0000-4000-8000-0000000000e1', 'the assistant''s', 'content = content || '' '''),
    ('00000000-0000-4000-8000-0000000000e1', 'the assistant''s', 'finalized_at = null'),
    ('00000000-0000-4000-8000-0000000000e1', 'the assistant''s', 'finalized_at = ''infinity'''),
    ('00000000-0000-4000-8000-0000000000e1', 'the assistant''s',
      'finalized_at = null, content = ''forged'''),
    ('00000000-0000-4000-8000-0000000000e3', 'a user''s', 'content = ''forged'''),
    ('00000000-0000-4000-8000-0000000000e3', 'a user''s', 'finalized_at = null'),
    ('00000000-0000-4000-8000-0000000000e4', 'without content', 'content = ''late''')
) as c (id, whose, change);
select throws_ok(
  'update citeledger.messages set content = ''forged''',
  '55000',
  'the message is finalized and sealed',
  'an update of many messages fails whole when one of them is sealed'
);
select is(
  (
    select string_agg(coalesce(m.content, '-'), ', ' order by m.id)
    from citeledger.messages as m
  ),
  'A and more and more, B, C, -',
  'no content has changed'
);
select lives_ok(
  $$update citeledger.messages
    set content = content, finalized_at = finalized_at
    where id = '00000000-0000-4000-8000-0000000000e1'$$,
  'an update that changes nothing is no offence'
);

-- The sources are sealed, for the app and for the admin.
create temporary table deletions (statement text);
grant select on deletions to public;
insert into deletions (statement)
values
  ('delete from citeledger.message_citations '
    'where message_id = ''00000000-0000-4000-8000-0000000000e1'''),
  ('delete from citeledger.message_caselaw_citations '
    'where message_id = ''00000000-0000-4000-8000-0000000000e1'''),
  ('delete from citeledger.message_tool_sources '
    'where message_id = ''00000000-0000-4000-8000-0000000000e1'''),
  ('delete from citeledger.message_citations '
    'where message_id = ''00000000-0000-4000-8000-0000000000e3'''),
  ('delete from citeledger.message_citations'),
  ('delete from citeledger.message_caselaw_citations'),
  ('delete from citeledger.message_tool_sources');
select throws_ok(
  d.statement,
  '55000',
  'the turn is finalized and its sources are sealed',
  format('sealed for the app: %s', d.statement)
)
from deletions as d;
set local role citeledger_admin;
select throws_ok(
  d.statement,
  '55000',
  'the turn is finalized and its sources are sealed',
  format('sealed for the admin: %s', d.statement)
)
from deletions as d;
reset role;
select throws_ok(
  d.statement,
  '55000',
  'the turn is finalized and its sources are sealed',
  format('sealed for the login itself: %s', d.statement)
)
from deletions as d;

set local role citeledger_app;
select is(
  (
    select count(*) from citeledger.message_citations
  ) + (
    select count(*) from citeledger.message_caselaw_citations
  ) + (
    select count(*) from citeledger.message_tool_sources
  ),
  12::bigint,
  'every source is still there'
);
select is(
  (
    select count(*)
    from citeledger.citation_ledger_entry as e
    where e.message_id = '00000000-0000-4000-8000-0000000000e1'
  ),
  3::bigint,
  'and so is every entry'
);
select lives_ok(
  $$delete from citeledger.message_citations
    where message_id = '00000000-0000-4000-8000-0000000000e2'$$,
  'the sources of a message that is not finalized may go'
);

-- The verification stays open, and leaves its trace.
select lives_ok(
  $$update citeledger.message_citations
    set verified = true, verification_method = 'exact_match', verification_confidence = 1
    where message_id = '00000000-0000-4000-8000-0000000000e1'$$,
  'a late verification of an own document is taken'
);
select lives_ok(
  $$update citeledger.message_caselaw_citations
    set verified = true, verification_method = 'ensemble_majority'
    where message_id = '00000000-0000-4000-8000-0000000000e1'$$,
  'a late verification of an opinion is taken'
);
select results_eq(
  $$select r.source_kind, r.verification_status
    from citeledger.citation_ledger_entry_revision as r
    where r.message_id = '00000000-0000-4000-8000-0000000000e1'
    order by r.superseded_at$$,
  $$values ('kb_document', 'unverified'), ('caselaw', 'unverified')$$,
  'each leaves a revision of what stood before'
);
select lives_ok(
  $$insert into citeledger.message_citations (message_id, source_text)
    values ('00000000-0000-4000-8000-0000000000e1', 'late')$$,
  'a late source is taken: hiding one would be worse'
);

-- Whole messages are the admin's to delete, seal or not.
set local role citeledger_admin;
select lives_ok(
  $$delete from citeledger.messages where id = '00000000-0000-4000-8000-0000000000e1'$$,
  'the admin may delete a sealed message whole'
);
select is_empty(
  $$select from citeledger.citation_ledger_entry
    where message_id = '00000000-0000-4000-8000-0000000000e1'
    union all
    select from citeledger.citation_ledger_entry_revision
    where message_id = '00000000-0000-4000-8000-0000000000e1'
    union all
    select from citeledger.work_product_fiduciary_gate
    where message_id = '00000000-0000-4000-8000-0000000000e1'$$,
  'its ledger, its revisions and its verdict go with it'
);
select lives_ok(
  'delete from citeledger.chats',
  'the admin may delete a chat with sealed messages'
);
select is_empty('select from citeledger.message_citations', 'its sources go with it');

select * from finish();

rollback;
