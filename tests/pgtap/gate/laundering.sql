-- No order of calls makes a failed citation look verified: an entry follows its source from the
-- moment when it is written, so the gate never counts what a source no longer says.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(13);

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
select set_config('test.firm', citeledger.create_firm('Alpha LLP')::text, true);
select citeledger.set_context(
  current_setting('test.firm')::uuid, null, array['matters:read']
);
set local role citeledger_app;
insert into citeledger.chats (id) values ('00000000-0000-4000-8000-0000000000c1');
insert into citeledger.messages (id, chat_id, role)
values
  ('00000000-0000-4000-8000-0000000000e1', '00000000-0000-4000-8000-0000000000c1', 'assistant');
insert into citeledger.message_citations (
  id, message_id, source_text, verified, verification_method, verification_confidence
)
values (
  '00000000-0000-4000-8000-00000000a001', '00000000-0000-4000-8000-0000000000e1', 'quote', true,
  'exact_match', 1
);
insert into citeledger.message_caselaw_citations (
  id, message_id, opinion_id, cluster_id, source_text, verified, verification_method
)
values (
  '00000000-0000-4000-8000-00000000b001', '00000000-0000-4000-8000-0000000000e1', 1, 1, 'holding',
  true, 'tolerant_match'
);

-- Assembled while it holds, then found to have failed, with neither finalize nor verdict between.
select is(
  citeledger.assemble_ledger_entries('00000000-0000-4000-8000-0000000000e1'),
  2,
  'the turn is assembled, and nothing more'
);
update citeledger.message_citations set verified = false, verification_method = 'failed';
select results_eq(
  $$select e.verification_status, e.confidence
    from citeledger.citation_ledger_entry as e
    where e.message_citation_id is not null$$,
  $$values ('unverified'::text, null::double precision)$$,
  'the entry follows at once'
);
select is(
  (
    select r.verification_status
    from citeledger.citation_ledger_entry_revision as r
  ),
  'exact_match',
  'what it said is kept'
);
select is_empty(
  'select from citeledger.work_product_fiduciary_gate',
  'a verdict comes only when it is asked for'
);
select is(
  (citeledger.compute_and_record_gate('00000000-0000-4000-8000-0000000000e1')).gate_status,
  'flagged',
  'the gate counts what the source says now'
);
select is_empty('select * from citeledger.check_integrity()', 'all agrees');

-- Deleted and recorded anew as verified: the new row is a new source, the old one left a trace.
delete from citeledger.message_citations;
select is(
  (
    select g.gate_status || ' ' || g.total_assertions
    from citeledger.work_product_fiduciary_gate as g
  ),
  'fiduciary_grade 1',
  'a source that is gone before the seal counts no more'
);
select is(
  (
    select string_agg(r.verification_status, ', ' order by r.superseded_at)
    from citeledger.citation_ledger_entry_revision as r
  ),
  'exact_match, unverified',
  'but that it was there is kept'
);

-- After the seal there is no way back.
select citeledger.finalize_turn('00000000-0000-4000-8000-0000000000e1');
update citeledger.message_caselaw_citations set verified = false, verification_method = 'failed';
select throws_ok(
  'delete from citeledger.message_caselaw_citations',
  '55000',
  'the turn is finalized and its sources are sealed',
  'a failed source of a sealed turn cannot be deleted'
);
select is(
  (select g.gate_status from citeledger.work_product_fiduciary_gate as g),
  'flagged',
  'and flags its turn'
);

select * from finish();
rollback;
