-- check_integrity: empty on a healthy firm, for the context's firm alone, behind its permission.
-- What it finds when something is broken needs somebody who can break it: see owner/integrity.sql.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(11);

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

set local role citeledger_app;
select citeledger.set_context(current_setting('test.a')::uuid, null, array['matters:read']);
select is_empty('select citeledger.check_integrity()', 'an empty firm is healthy');

insert into citeledger.chats (id) values ('00000000-0000-4000-8000-0000000000c1');
insert into citeledger.messages (id, chat_id, role, finalized_at)
values
  ('00000000-0000-4000-8000-0000000000e0', '00000000-0000-4000-8000-0000000000c1', 'user', now()),
  ('00000000-0000-4000-8000-0000000000e1', '00000000-0000-4000-8000-0000000000c1', 'assistant',
    null),
  ('00000000-0000-4000-8000-0000000000e2', '00000000-0000-4000-8000-0000000000c1', 'assistant',
    null),
  ('00000000-0000-4000-8000-0000000000e3', '00000000-0000-4000-8000-0000000000c1', 'assistant',
    now());
insert into citeledger.message_citations (
  message_id, source_text, verified, verification_method, verification_confidence
)
select m.id, 'quote', s.n % 2 = 0, 'ensemble_strict', 0.33
from citeledger.messages as m
cross join generate_series(1, 4) as s (n);
insert into citeledger.message_caselaw_citations (
  message_id, opinion_id, cluster_id, source_text, verified, verification_method,
  verification_confidence
)
select m.id, s.n, s.n, 'holding', true, 'exact_match', 0.1 * s.n
from citeledger.messages as m
cross join generate_series(1, 3) as s (n);
insert into citeledger.message_tool_sources (message_id, source_kind, label)
select m.id, 'web', 'Page' from citeledger.messages as m;
select is_empty(
  'select citeledger.check_integrity()',
  'turns that are being written, late sources, and sources of a user''s message are healthy'
);

select citeledger.finalize_turns(array(select m.id from citeledger.messages as m));
select is(
  (select count(*) from citeledger.work_product_fiduciary_gate),
  3::bigint,
  'three turns have a verdict'
);
select is_empty('select citeledger.check_integrity()', 'finalized turns are healthy');

update citeledger.message_citations set verified = not verified;
update citeledger.message_caselaw_citations set verification_confidence = null;
insert into citeledger.message_tool_sources (message_id, source_kind, label)
select m.id, 'web', 'Another page' from citeledger.messages as m;
select is_empty(
  'select citeledger.check_integrity()',
  'late sources and late verdicts are healthy'
);

select citeledger.set_context(current_setting('test.b')::uuid, null, array['matters:read']);
select is_empty('select citeledger.check_integrity()', 'another firm is healthy beside it');

select citeledger.set_context(current_setting('test.a')::uuid, null, array['matters:write']);
select throws_ok(
  'select citeledger.check_integrity()',
  '42501',
  'permission denied by the citeledger context',
  'check_integrity needs matters:read'
);
select citeledger.set_context(null, null, array['matters:read']);
select throws_ok(
  'select citeledger.check_integrity()',
  '42501',
  'permission denied by the citeledger context',
  'check_integrity needs a firm'
);

select * from finish();

rollback;
