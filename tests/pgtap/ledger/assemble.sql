-- assemble_ledger_entries: one entry for each source, none twice; called again it writes what is
-- missing and refreshes what changed, and the replaced values stay as revisions.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(39);

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
select set_config('test.firm', citeledger.create_firm('Assemble LLP')::text, true);
select citeledger.set_context(current_setting('test.firm')::uuid);
insert into citeledger.projects (id, matter_number, name)
values ('00000000-0000-4000-8000-0000000000f1', 'M-1', 'Matter');

set local role citeledger_app;
insert into citeledger.documents (id, title)
values ('00000000-0000-4000-8000-0000000000d1', 'Lease');
insert into citeledger.chats (id, project_id)
values ('00000000-0000-4000-8000-0000000000c1', '00000000-0000-4000-8000-0000000000f1');
insert into citeledger.messages (id, chat_id, role)
values
  ('00000000-0000-4000-8000-0000000000e1', '00000000-0000-4000-8000-0000000000c1', 'assistant'),
  ('00000000-0000-4000-8000-0000000000e2', '00000000-0000-4000-8000-0000000000c1', 'user'),
  ('00000000-0000-4000-8000-0000000000e3', '00000000-0000-4000-8000-0000000000c1', 'system'),
  ('00000000-0000-4000-8000-0000000000e4', '00000000-0000-4000-8000-0000000000c1', 'tool'),
  ('00000000-0000-4000-8000-0000000000e5', '00000000-0000-4000-8000-0000000000c1', 'assistant');

-- Nothing to assemble.
select is(
  citeledger.assemble_ledger_entries('00000000-0000-4000-8000-00000000dead'),
  0,
  'an unknown message: 0, and no error'
);
select is(citeledger.assemble_ledger_entries(null), 0, 'null: 0, and no error');
select is(
  citeledger.assemble_ledger_entries('00000000-0000-4000-8000-0000000000e1'),
  0,
  'a turn without sources: 0'
);
insert into citeledger.message_citations (message_id, source_text)
select m.id, 'quote' from citeledger.messages as m where m.role <> 'assistant';
insert into citeledger.message_tool_sources (message_id, source_kind, label)
select m.id, 'web', 'Page' from citeledger.messages as m where m.role <> 'assistant';
select is(
  citeledger.assemble_ledger_entries(m.id),
  0,
  format('a message of the %s: 0, whatever sources it has', m.role)
)
from citeledger.messages as m
where m.role <> 'assistant'
order by m.id;
select is_empty('select from citeledger.citation_ledger_entry', 'and no entry was written');

-- The same span twice and another span of the same document, in one statement.
insert into citeledger.message_citations (
  message_id, source_document_id, source_page, source_offset_start, source_offset_end, source_text
)
values
  ('00000000-0000-4000-8000-0000000000e1', '00000000-0000-4000-8000-0000000000d1', 1, 0, 20, 'a'),
  ('00000000-0000-4000-8000-0000000000e1', '00000000-0000-4000-8000-0000000000d1', 1, 0, 20, 'a'),
  ('00000000-0000-4000-8000-0000000000e1', '00000000-0000-4000-8000-0000000000d1', 1, 400, 440,
    'b');
insert into citeledger.message_caselaw_citations (
  message_id, opinion_id, cluster_id, source_text
)
values
  ('00000000-0000-4000-8000-0000000000e1', 1, 1, 'holding'),
  ('00000000-0000-4000-8000-0000000000e1', 1, 1, 'holding');
insert into citeledger.message_tool_sources (message_id, source_kind, label, url)
values
  ('00000000-0000-4000-8000-0000000000e1', 'web', 'Page', 'https://a.example/'),
  ('00000000-0000-4000-8000-0000000000e1', 'web', 'Page', 'https://a.example/');
select is_empty(
  'select from citeledger.citation_ledger_entry',
  'sources of a turn that is being written wait for the assembly'
);
select is(
  citeledger.assemble_ledger_entries('00000000-0000-4000-8000-0000000000e1'),
  7,
  'the count is that of the sources: the same span twice is two entries'
);
select is(
  (select count(*) from citeledger.citation_ledger_entry),
  7::bigint,
  'seven entries are there'
);

-- Again: nothing new, the same ids, not even a row written.
create temporary table first_time as
select e.ctid as row_version, e.* from citeledger.citation_ledger_entry as e;
select is(
  citeledger.assemble_ledger_entries('00000000-0000-4000-8000-0000000000e1'),
  0,
  'a second time there is nothing new'
);
select results_eq(
  'select e.ctid, e.id from citeledger.citation_ledger_entry as e order by e.id',
  'select f.row_version, f.id from first_time as f order by f.id',
  'the entries are the very same rows'
);
select is_empty(
  'select from citeledger.citation_ledger_entry_revision',
  'what did not change leaves no revision'
);

-- Something is missing.
insert into citeledger.message_tool_sources (id, message_id, source_kind, label)
values ('00000000-0000-4000-8000-0000000000b1', '00000000-0000-4000-8000-0000000000e1', 'web', 'x');
select is(
  citeledger.assemble_ledger_entries('00000000-0000-4000-8000-0000000000e1'),
  1,
  'only the missing one is written, and counted'
);
select is(
  (
    select count(*)
    from citeledger.citation_ledger_entry as e
    join first_time as f on f.id = e.id and f.row_version = e.ctid
  ),
  7::bigint,
  'the others were not touched'
);

-- Something changed: while the turn is being written nothing follows by itself.
update citeledger.message_citations
set verified = true, verification_method = 'exact_match', verification_confidence = 0.9
where message_id = '00000000-0000-4000-8000-0000000000e1' and source_text = 'b';
update citeledger.message_caselaw_citations
set verified = true, verification_method = 'ensemble_strict', verification_confidence = 0.8
where message_id = '00000000-0000-4000-8000-0000000000e1';
select is(
  citeledger.assemble_ledger_entries('00000000-0000-4000-8000-0000000000e1'),
  0,
  'a refreshed entry is not new'
);
select results_eq(
  $$select e.verification_status, e.confidence, count(*)
    from citeledger.citation_ledger_entry as e
    group by 1, 2
    order by 1$$,
  $$values
    ('ensemble_strict', 0.8::double precision, 2::bigint),
    ('exact_match', 0.9, 1),
    ('provenance', null, 3),
    ('unverified', null, 2)$$,
  'the entries say what their sources say now'
);
select is(
  (
    select count(*)
    from citeledger.citation_ledger_entry as e
    join first_time as f on f.id = e.id
      and f.created_at = e.created_at
      and f.message_citation_id is not distinct from e.message_citation_id
      and f.message_caselaw_citation_id is not distinct from e.message_caselaw_citation_id
  ),
  7::bigint,
  'refreshed entries keep their ids and their sources'
);
select results_eq(
  $$select r.message_id::text, r.entry_id, r.source_kind, r.verification_status, r.confidence,
      r.provider, r.retrieved_at
    from citeledger.citation_ledger_entry_revision as r
    order by r.entry_id$$,
  $$select f.message_id::text, f.id, f.source_kind, f.verification_status, f.confidence,
      f.provider, f.retrieved_at
    from first_time as f
    join citeledger.citation_ledger_entry as e on e.id = f.id and e.ctid <> f.row_version
    order by f.id$$,
  'the replaced values of exactly those are revisions'
);
select is(
  (select count(*) from citeledger.citation_ledger_entry_revision),
  3::bigint,
  'three entries changed, three revisions'
);
select citeledger.assemble_ledger_entries('00000000-0000-4000-8000-0000000000e1');
select is(
  (select count(*) from citeledger.citation_ledger_entry_revision),
  3::bigint,
  'a third assembly changes nothing'
);

-- A change of what the ledger does not mirror is none.
update citeledger.message_citations
set verification_method = 'paraphrase_judge', verification_confidence = 0.2
where message_id = '00000000-0000-4000-8000-0000000000e1' and not verified;
select citeledger.assemble_ledger_entries('00000000-0000-4000-8000-0000000000e1');
select is(
  (select count(*) from citeledger.citation_ledger_entry_revision),
  3::bigint,
  'method and confidence of what is not verified are not the ledger''s'
);

-- Back and forth leaves every step.
update citeledger.message_citations
set verified = false
where message_id = '00000000-0000-4000-8000-0000000000e1' and source_text = 'b';
select citeledger.assemble_ledger_entries('00000000-0000-4000-8000-0000000000e1');
select results_eq(
  $$select r.verification_status, r.confidence
    from citeledger.citation_ledger_entry_revision as r
    join citeledger.citation_ledger_entry as e on e.id = r.entry_id
    join citeledger.message_citations as s on s.id = e.message_citation_id
    where s.source_text = 'b'
    order by r.superseded_at$$,
  $$values ('unverified', null::double precision), ('exact_match', 0.9)$$,
  'an entry that went up and down again has both revisions, in order'
);

-- A source that goes takes its entry along, and leaves a revision.
delete from citeledger.message_tool_sources where id = '00000000-0000-4000-8000-0000000000b1';
select is(
  (select count(*) from citeledger.citation_ledger_entry),
  7::bigint,
  'the entry of a deleted source is gone'
);
select results_eq(
  $$select r.source_kind, r.verification_status, r.message_id::text
    from citeledger.citation_ledger_entry_revision as r
    where not exists (
      select from citeledger.citation_ledger_entry as e where e.id = r.entry_id
    )$$,
  $$values ('web', 'provenance', '00000000-0000-4000-8000-0000000000e1')$$,
  'what it said is a revision'
);

-- The matter is that of the time of writing.
set local role citeledger_admin;
delete from citeledger.projects;
set local role citeledger_app;
select is(
  (select c.project_id from citeledger.chats as c),
  null,
  'the chat has no matter any more'
);
insert into citeledger.message_tool_sources (message_id, source_kind, label)
values ('00000000-0000-4000-8000-0000000000e1', 'web_late', 'Page');
update citeledger.message_citations
set verified = true
where message_id = '00000000-0000-4000-8000-0000000000e1';
select is(
  citeledger.assemble_ledger_entries('00000000-0000-4000-8000-0000000000e1'),
  1,
  'one more after the matter went'
);
select results_eq(
  $$select e.source_kind = 'web_late', e.project_id::text, count(*)
    from citeledger.citation_ledger_entry as e
    group by 1, 2
    order by 1$$,
  $$values
    (false, '00000000-0000-4000-8000-0000000000f1', 7::bigint),
    (true, null, 1)$$,
  'entries keep the matter of their time, also when they are refreshed; a new one has the new'
);

-- Assembling alone gives no verdict, and finalizes nothing.
select is_empty(
  'select from citeledger.work_product_fiduciary_gate',
  'assembling records no verdict'
);
select is(
  (
    select m.finalized_at
    from citeledger.messages as m
    where m.id = '00000000-0000-4000-8000-0000000000e1'
  ),
  null,
  'assembling finalizes nothing'
);
-- But a verdict that is there follows.
insert into citeledger.message_citations (
  message_id, source_text, verified, verification_method
)
values ('00000000-0000-4000-8000-0000000000e5', 'quote', true, 'exact_match');
select is(
  (citeledger.compute_and_record_gate('00000000-0000-4000-8000-0000000000e5')).gate_status,
  'flagged',
  'a citation without an entry flags the turn'
);
select is(
  citeledger.assemble_ledger_entries('00000000-0000-4000-8000-0000000000e5'),
  1,
  'the entry is assembled'
);
select is(
  (
    select g.gate_status
    from citeledger.work_product_fiduciary_gate as g
    where g.message_id = '00000000-0000-4000-8000-0000000000e5'
  ),
  'fiduciary_grade',
  'and the verdict that was there follows the assembly'
);

-- Nothing without a context.
select citeledger.set_context(null);
select is(
  citeledger.assemble_ledger_entries('00000000-0000-4000-8000-0000000000e1'),
  0,
  'without a context there is no turn to assemble'
);

-- A chat that goes takes all of it along; the turn is then unknown.
set local role citeledger_admin;
select citeledger.set_context(current_setting('test.firm')::uuid);
delete from citeledger.chats;
select is(
  citeledger.assemble_ledger_entries('00000000-0000-4000-8000-0000000000e1'),
  0,
  'a turn whose chat is gone: 0, and no error'
);
select is_empty(
  $$select from citeledger.citation_ledger_entry
    union all
    select from citeledger.citation_ledger_entry_revision
    union all
    select from citeledger.work_product_fiduciary_gate
    union all
    select from citeledger.message_citations$$,
  'nothing is orphaned'
);

select * from finish();

rollback;
