-- check_integrity finds what is broken. The owner breaks it here: an entry lost, an entry altered,
-- a verdict lost, a verdict altered; each alone, each mended by finalize_turn.
--
-- Needs a login that may SET ROLE to citeledger_owner (the deployer), no superuser and not exempt
-- from row security. Row security is forced, so the owner too sees the firm of its context alone.
-- All is rolled back.

begin;

select plan(24);

-- A superuser or a role exempt from row security would pass tests that guard nothing.
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
  pg_has_role(session_user, 'citeledger_owner', 'member'),
  'the login may become citeledger_owner'
);

set local role citeledger_owner;

select is(
  (
    select array[r.rolsuper, r.rolbypassrls]
    from pg_roles as r
    where r.rolname = current_user
  ),
  array[false, false],
  'citeledger_owner is no superuser and not exempt from row security'
);

create function pg_temp.found()
returns text
language sql
as $$
  select coalesce(
    string_agg(format('%s in %s', c.problem, c.table_name), ', ' order by c.problem, c.row_key),
    'healthy'
  )
  from citeledger.check_integrity() as c
$$;

select set_config('test.a', citeledger.create_firm('Alpha LLP')::text, true);
select set_config('test.b', citeledger.create_firm('Beta LLP')::text, true);
select citeledger.set_context(current_setting('test.a')::uuid, null, array['matters:read']);
insert into citeledger.chats (id)
values ('00000000-0000-4000-8000-0000000000c1'), ('00000000-0000-4000-8000-0000000000c2');
insert into citeledger.messages (id, chat_id, role)
values
  ('00000000-0000-4000-8000-0000000000e1', '00000000-0000-4000-8000-0000000000c1', 'assistant'),
  ('00000000-0000-4000-8000-0000000000e2', '00000000-0000-4000-8000-0000000000c1', 'assistant');
insert into citeledger.message_citations (
  id, message_id, source_text, verified, verification_method, verification_confidence
)
values
  ('00000000-0000-4000-8000-00000000a001', '00000000-0000-4000-8000-0000000000e1', 'quote', true,
    'exact_match', 0.9),
  ('00000000-0000-4000-8000-00000000a002', '00000000-0000-4000-8000-0000000000e2', 'quote', true,
    'exact_match', 0.9);
insert into citeledger.message_caselaw_citations (
  id, message_id, opinion_id, cluster_id, source_text, verified, verification_method
)
values (
  '00000000-0000-4000-8000-00000000b001', '00000000-0000-4000-8000-0000000000e1', 1, 1, 'holding',
  true, 'tolerant_match'
);
insert into citeledger.message_tool_sources (id, message_id, source_kind, label, provider)
values (
  '00000000-0000-4000-8000-00000000d001', '00000000-0000-4000-8000-0000000000e1', 'web', 'Page',
  'a.example'
);
select citeledger.finalize_turn('00000000-0000-4000-8000-0000000000e1');
select is(pg_temp.found(), 'healthy', 'a firm with a finalized turn is healthy');

-- Breaks something, looks, mends it by finalizing, looks again.
create function pg_temp.broken(p_statement text)
returns text
language plpgsql
as $$
declare
  v_found text;
  v_mended text;
begin
  execute p_statement;
  v_found := pg_temp.found();
  perform citeledger.finalize_turn('00000000-0000-4000-8000-0000000000e1');
  v_mended := pg_temp.found();
  return v_found || '; then ' || v_mended;
end
$$;
select is(pg_temp.broken(c.statement), c.found || '; then healthy', c.why)
from (
  values
    ('a lost entry of a citation: missing, and the verdict no longer adds up',
      'source_without_entry in message_citations, '
      'verdict_differs_from_recount in work_product_fiduciary_gate',
      'delete from citeledger.citation_ledger_entry where message_citation_id is not null'),
    ('a lost entry of an opinion',
      'source_without_entry in message_caselaw_citations, '
      'verdict_differs_from_recount in work_product_fiduciary_gate',
      'delete from citeledger.citation_ledger_entry where message_caselaw_citation_id is not null'),
    ('a lost entry of a tool source, which the verdict does not count',
      'source_without_entry in message_tool_sources',
      'delete from citeledger.citation_ledger_entry where message_tool_source_id is not null'),
    ('a status that was altered within its tier',
      'entry_differs_from_source in citation_ledger_entry',
      'update citeledger.citation_ledger_entry set verification_status = ''tolerant_match'' '
      'where verification_status = ''exact_match'''),
    ('a status that was altered to another tier',
      'entry_differs_from_source in citation_ledger_entry, '
      'verdict_differs_from_recount in work_product_fiduciary_gate',
      'update citeledger.citation_ledger_entry set verification_status = ''failed'' '
      'where verification_status = ''exact_match'''),
    ('a confidence that was altered',
      'entry_differs_from_source in citation_ledger_entry, '
      'verdict_differs_from_recount in work_product_fiduciary_gate',
      'update citeledger.citation_ledger_entry set confidence = 1 where confidence = 0.9'),
    ('a kind that was altered',
      'entry_differs_from_source in citation_ledger_entry',
      'update citeledger.citation_ledger_entry set source_kind = ''paper'' '
      'where source_kind = ''web'''),
    ('a provider that was altered',
      'entry_differs_from_source in citation_ledger_entry',
      'update citeledger.citation_ledger_entry set provider = ''b.example'' '
      'where provider = ''a.example'''),
    ('a time of retrieval that was altered',
      'entry_differs_from_source in citation_ledger_entry',
      'update citeledger.citation_ledger_entry set retrieved_at = now() - interval ''1 year'' '
      'where source_kind = ''web'''),
    ('a lost verdict',
      'finalized_turn_without_verdict in messages',
      'delete from citeledger.work_product_fiduciary_gate'),
    ('a verdict that was made worse',
      'verdict_differs_from_recount in work_product_fiduciary_gate',
      'update citeledger.work_product_fiduciary_gate set gate_status = ''flagged'', '
      'unrecognized_count = 1'),
    ('a verdict whose counts were altered',
      'verdict_differs_from_recount in work_product_fiduciary_gate',
      'update citeledger.work_product_fiduciary_gate set pass_count = 9, total_assertions = 9'),
    ('a verdict whose confidence was altered',
      'verdict_differs_from_recount in work_product_fiduciary_gate',
      'update citeledger.work_product_fiduciary_gate set confidence = 0.91')
) as c (why, found, statement);

-- Where a row is, by its key.
delete from citeledger.citation_ledger_entry
where message_tool_source_id = '00000000-0000-4000-8000-00000000d001';
select results_eq(
  'select problem, table_name, row_key from citeledger.check_integrity()',
  $$values ('source_without_entry', 'message_tool_sources',
    '00000000-0000-4000-8000-00000000d001')$$,
  'a problem names the table and the key of its row'
);
delete from citeledger.work_product_fiduciary_gate;
select results_eq(
  $$select row_key from citeledger.check_integrity()
    where problem = 'finalized_turn_without_verdict'$$,
  array['00000000-0000-4000-8000-0000000000e1'],
  'a turn without a verdict is named by its message'
);

-- Another firm neither sees it nor is seen.
select citeledger.set_context(current_setting('test.b')::uuid, null, array['matters:read']);
select is(pg_temp.found(), 'healthy', 'another firm is not told of it');
select citeledger.set_context(current_setting('test.a')::uuid, null, array['matters:read']);

-- What is not finalized and has no verdict is not looked at; once it has a verdict it is.
select citeledger.finalize_turn('00000000-0000-4000-8000-0000000000e1');
select is(pg_temp.found(), 'healthy', 'the turn that is being written is no problem');
insert into citeledger.work_product_fiduciary_gate (
  message_id, chat_id, gate_status, pass_count, supported_count, fail_count, total_assertions,
  unrecognized_count
)
values (
  '00000000-0000-4000-8000-0000000000e2', '00000000-0000-4000-8000-0000000000c1',
  'fiduciary_grade', 1, 0, 0, 1, 0
);
select is(
  pg_temp.found(),
  'source_without_entry in message_citations, '
  'verdict_differs_from_recount in work_product_fiduciary_gate',
  'a verdict without a ledger is a problem, finalized or not'
);

-- A verdict on a message that can have none.
insert into citeledger.messages (id, chat_id, role)
values ('00000000-0000-4000-8000-0000000000e3', '00000000-0000-4000-8000-0000000000c1', 'user');
select citeledger.finalize_turn('00000000-0000-4000-8000-0000000000e2');
insert into citeledger.work_product_fiduciary_gate (
  message_id, chat_id, gate_status, pass_count, supported_count, fail_count, total_assertions,
  unrecognized_count
)
values (
  '00000000-0000-4000-8000-0000000000e3', '00000000-0000-4000-8000-0000000000c1',
  'fiduciary_grade', 0, 0, 0, 0, 0
);
select is(
  pg_temp.found(),
  'verdict_differs_from_recount in work_product_fiduciary_gate',
  'a verdict on a user''s message is a problem'
);

select * from finish();

rollback;
