-- Finalizing a turn: by the functions, by the triggers that let no call site forget it, and what a
-- report says.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(38);

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

create function pg_temp.id(p_n integer)
returns uuid
language sql
immutable
as $$
  select ('00000000-0000-4000-8000-' || lpad(p_n::text, 12, '0'))::uuid
$$;

set local role citeledger_admin;
select set_config('test.firm', citeledger.create_firm('Finalize LLP')::text, true);
set local role citeledger_app;
select citeledger.set_context(current_setting('test.firm')::uuid, null, array['matters:read']);
insert into citeledger.chats (id) values ('00000000-0000-4000-8000-0000000000c1');
insert into citeledger.messages (id, chat_id, role)
select
  pg_temp.id(n), '00000000-0000-4000-8000-0000000000c1', 'assistant'
from generate_series(1, 20) as n;
insert into citeledger.message_citations (
  message_id, source_text, verified, verification_method, verification_confidence
)
select pg_temp.id(n), 'quote', true, 'exact_match', 0.9 from generate_series(1, 20) as n;
insert into citeledger.message_tool_sources (message_id, source_kind, label)
select pg_temp.id(n), 'web', 'Page' from generate_series(1, 20) as n;

-- The report.
select set_config('test.report', citeledger.finalize_turn(pg_temp.id(1))::text, true);
select is(
  current_setting('test.report')::jsonb - 'gate',
  '{"message_id": "00000000-0000-4000-8000-000000000001", "finalized": true,
    "entries_written": 2, "failures": []}'::jsonb,
  'the report says what was written and that nothing failed'
);
select is(
  current_setting('test.report')::jsonb -> 'gate',
  (
    select to_jsonb(g) - 'firm_id'
    from citeledger.work_product_fiduciary_gate as g
    where g.message_id = pg_temp.id(1)
  ),
  'its gate is the verdict''s row less firm_id'
);
select is(
  current_setting('test.report')::jsonb #>> '{gate,gate_status}',
  'fiduciary_grade',
  'the verdict is that of the sources'
);
select isnt(
  (select m.finalized_at from citeledger.messages as m where m.id = pg_temp.id(1)),
  null,
  'finalized_at is set'
);

-- Again.
create temporary table finalized_first as
select m.finalized_at, m.ctid as row_version
from citeledger.messages as m
where m.id = pg_temp.id(1);
create temporary table entries_first as
select e.id, e.ctid as row_version from citeledger.citation_ledger_entry as e;
select is(
  citeledger.finalize_turn(pg_temp.id(1)) - 'gate',
  '{"message_id": "00000000-0000-4000-8000-000000000001", "finalized": true,
    "entries_written": 0, "failures": []}'::jsonb,
  'finalized again: nothing is written'
);
select is(
  citeledger.finalize_turn(pg_temp.id(1)) -> 'gate',
  current_setting('test.report')::jsonb -> 'gate',
  'the verdict is the same, to its time'
);
select results_eq(
  'select m.finalized_at, m.ctid from citeledger.messages as m where m.id = pg_temp.id(1)',
  'select f.finalized_at, f.row_version from finalized_first as f',
  'the message is not written again'
);
select results_eq(
  'select e.id, e.ctid from citeledger.citation_ledger_entry as e order by e.id',
  'select f.id, f.row_version from entries_first as f order by f.id',
  'the entries are the very same rows'
);

-- An entry that is there already is not written: what assemble did is not counted twice.
select citeledger.assemble_ledger_entries(pg_temp.id(2));
select is(
  citeledger.finalize_turn(pg_temp.id(2)) ->> 'entries_written',
  '0',
  'entries that were assembled before are not counted as written'
);

-- Nothing to finalize.
insert into citeledger.messages (id, chat_id, role)
select pg_temp.id(100 + r.n::integer), '00000000-0000-4000-8000-0000000000c1', r.role
from unnest(array['user', 'system', 'tool']) with ordinality as r (role, n);
select is(
  citeledger.finalize_turn(c.id),
  jsonb_build_object(
    'message_id', c.id, 'finalized', false, 'entries_written', 0, 'gate', null,
    'failures', '[]'::jsonb
  ),
  format('not finalized, and no error: %s', c.why)
)
from (
  values
    ('00000000-0000-4000-8000-00000000dead'::uuid, 'an unknown message'),
    (null, 'null'),
    (pg_temp.id(101), 'a message of the user'),
    (pg_temp.id(102), 'a message of the system'),
    (pg_temp.id(103), 'a message of a tool')
) as c (id, why);
select is(
  (
    select count(*)
    from citeledger.messages as m
    where m.role <> 'assistant' and m.finalized_at is not null
  ),
  0::bigint,
  'finalize_turn finalizes no message but the assistant''s'
);

-- By the triggers: an update, of one and of many.
update citeledger.messages set finalized_at = now() where id = pg_temp.id(3);
select is(
  (
    select format('%s, %s entries', g.gate_status, (
      select count(*)
      from citeledger.citation_ledger_entry as e
      where e.message_id = g.message_id
    ))
    from citeledger.work_product_fiduciary_gate as g
    where g.message_id = pg_temp.id(3)
  ),
  'fiduciary_grade, 2 entries',
  'setting finalized_at is enough'
);
update citeledger.messages
set finalized_at = now()
where id in (pg_temp.id(4), pg_temp.id(5), pg_temp.id(101));
select is(
  (
    select string_agg(right(g.message_id::text, 3), ' ' order by g.message_id)
    from citeledger.work_product_fiduciary_gate as g
    where g.message_id in (pg_temp.id(4), pg_temp.id(5), pg_temp.id(101))
  ),
  '004 005',
  'of many at once each of the assistant''s gets its verdict, and no other'
);
update citeledger.messages set content = 'x' where id = pg_temp.id(6);
select is_empty(
  $$select from citeledger.work_product_fiduciary_gate as g where g.message_id = pg_temp.id(6)$$,
  'an update of something else finalizes nothing'
);

-- An insert.
insert into citeledger.messages (id, chat_id, role, finalized_at)
values
  (pg_temp.id(201), '00000000-0000-4000-8000-0000000000c1', 'assistant', now()),
  (pg_temp.id(202), '00000000-0000-4000-8000-0000000000c1', 'assistant', null),
  (pg_temp.id(203), '00000000-0000-4000-8000-0000000000c1', 'user', now());
select is(
  (
    select string_agg(format('%s %s', right(g.message_id::text, 3), g.gate_status), ', ')
    from citeledger.work_product_fiduciary_gate as g
    where g.message_id in (pg_temp.id(201), pg_temp.id(202), pg_temp.id(203))
  ),
  '201 fiduciary_grade',
  'a turn that arrives finalized gets its verdict, and no other message does'
);
select is(
  citeledger.current_firm_id()::text,
  current_setting('test.firm'),
  'the triggers leave the context as it was'
);

-- Finalized stays finalized.
select throws_ok(
  $$update citeledger.messages set finalized_at = null where id = pg_temp.id(1)$$,
  '55000',
  'the message is finalized and sealed',
  'a finalized message stays finalized'
);

-- finalize_turns.
select is(
  citeledger.finalize_turns(
    array[
      pg_temp.id(1), pg_temp.id(7), pg_temp.id(8), pg_temp.id(8), null, pg_temp.id(101),
      pg_temp.id(102), '00000000-0000-4000-8000-00000000dead'::uuid
    ]
  ),
  3,
  'finalize_turns counts the turns that have a verdict, and passes over the others'
);
select is(
  (
    select count(*)
    from citeledger.messages as m
    where m.id in (pg_temp.id(7), pg_temp.id(8)) and m.finalized_at is not null
  ),
  2::bigint,
  'it sets finalized_at'
);
select is(
  (
    select count(*)
    from citeledger.citation_ledger_entry as e
    where e.message_id in (pg_temp.id(7), pg_temp.id(8))
  ),
  4::bigint,
  'it assembles'
);
select is(citeledger.finalize_turns('{}'), 0, 'no turns: 0');
select is(citeledger.finalize_turns(null), 0, 'null turns: 0');

-- finalize_pending. Nothing is pending here: whatever finalized a turn gave it its verdict.
select is(citeledger.finalize_pending(), 0, 'nothing is pending');
select is(
  (
    select count(*)
    from citeledger.messages as m
    where m.id between pg_temp.id(9) and pg_temp.id(20) and m.finalized_at is not null
  ),
  0::bigint,
  'what is not finalized is not pending'
);
select throws_ok(
  format('select citeledger.finalize_pending(%s)', c.p_limit),
  '22023',
  'p_limit is not a number of turns',
  format('finalize_pending refuses %s', c.p_limit)
)
from (values ('0'), ('-1'), ('null')) as c (p_limit);

-- A chat that is gone: no exception, nothing written, and a report that says so.
set local role citeledger_admin;
delete from citeledger.chats;
set local role citeledger_app;
select is(
  citeledger.finalize_turn(pg_temp.id(9)),
  '{"message_id": "00000000-0000-4000-8000-000000000009", "finalized": false,
    "entries_written": 0, "gate": null, "failures": []}'::jsonb,
  'a turn whose chat is gone is not finalized, and no error'
);
select is_empty(
  $$select from citeledger.citation_ledger_entry
    union all
    select from citeledger.work_product_fiduciary_gate
    union all
    select from citeledger.finalize_failure$$,
  'nothing is orphaned'
);

-- Without a context there is nothing to finalize.
select citeledger.set_context(null);
select is(
  citeledger.finalize_turn(pg_temp.id(1)) ->> 'finalized',
  'false',
  'without a context no turn is known'
);
select is(citeledger.finalize_pending(), 0, 'without a context nothing is pending');

select * from finish();

rollback;
