-- Above read committed a verdict could be stale when it is committed: none is recorded, the failure
-- is logged, and an old verdict is not left standing.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

set transaction isolation level repeatable read;

select plan(12);

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

-- The warnings are meant, and would only stand between the lines of the tests.
set local client_min_messages = error;

set local role citeledger_admin;
select is(
  current_setting('transaction_isolation'),
  'repeatable read',
  'this file runs under repeatable read'
);
select set_config('test.firm', citeledger.create_firm('Isolation LLP')::text, true);
set local role citeledger_app;
select citeledger.set_context(current_setting('test.firm')::uuid, null, array['matters:read']);
insert into citeledger.chats (id) values ('00000000-0000-4000-8000-0000000000c1');
insert into citeledger.messages (id, chat_id, role)
values
  ('00000000-0000-4000-8000-0000000000e1', '00000000-0000-4000-8000-0000000000c1', 'assistant'),
  ('00000000-0000-4000-8000-0000000000e2', '00000000-0000-4000-8000-0000000000c1', 'assistant'),
  ('00000000-0000-4000-8000-0000000000e3', '00000000-0000-4000-8000-0000000000c1', 'assistant');
insert into citeledger.message_citations (message_id, source_text, verified, verification_method)
select m.id, 'quote', true, 'exact_match' from citeledger.messages as m;

select is(
  citeledger.finalize_turn('00000000-0000-4000-8000-0000000000e1'),
  '{"message_id": "00000000-0000-4000-8000-0000000000e1", "finalized": true,
    "entries_written": 0, "gate": null,
    "failures": [{"stage": "isolation", "sqlstate": "25000"}]}'::jsonb,
  'finalize_turn finalizes the message, gives no verdict, and says why'
);
select isnt(
  (
    select m.finalized_at
    from citeledger.messages as m
    where m.id = '00000000-0000-4000-8000-0000000000e1'
  ),
  null,
  'the message is finalized'
);
select is(
  citeledger.compute_and_record_gate('00000000-0000-4000-8000-0000000000e2') is null,
  true,
  'compute_and_record_gate gives null'
);
select is(
  citeledger.finalize_turns(array['00000000-0000-4000-8000-0000000000e3'::uuid]),
  0,
  'finalize_turns gives no verdict'
);
select is(
  citeledger.assemble_ledger_entries('00000000-0000-4000-8000-0000000000e1'),
  1,
  'the ledger alone may be assembled'
);
select is(citeledger.finalize_pending(), 0, 'finalize_pending gives no verdict either');
insert into citeledger.message_citations (message_id, source_text)
values ('00000000-0000-4000-8000-0000000000e1', 'late');
select is_empty(
  'select from citeledger.work_product_fiduciary_gate',
  'there is no verdict at all, also not by a late source'
);
select results_eq(
  $$select right(f.message_id::text, 2), f.stage, f.sqlstate
    from citeledger.finalize_failure as f
    order by 1$$,
  $$values ('e1', 'isolation', '25000'), ('e2', 'isolation', '25000'),
    ('e3', 'isolation', '25000')$$,
  'each turn''s failure is logged once, however often it was tried'
);

select * from finish();

rollback;
