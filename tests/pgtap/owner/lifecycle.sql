-- What happens around a turn by hands that no role has: a chat that moves, a document that is
-- deleted, a step that fails, the owner's own repairs. It changes tables for the moment and so
-- locks them until it is rolled back: run it alone, on a quiet database.
--
-- Needs a login that may SET ROLE to citeledger_owner (the deployer), no superuser and not exempt
-- from row security. Row security is forced, so the owner too sees the firm of its context alone.
-- All is rolled back.

begin;

select plan(30);

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

-- The warnings are meant, and would only stand between the lines of the tests.
set local client_min_messages = error;

create function pg_temp.id(p_n integer)
returns uuid
language sql
immutable
as $$
  select ('00000000-0000-4000-8000-' || lpad(p_n::text, 12, '0'))::uuid
$$;
create function pg_temp.verdict(p_n integer)
returns text
language sql
as $$
  select coalesce(
    (
      select format('%s %s/%s/%s', g.gate_status, g.pass_count, g.supported_count, g.fail_count)
      from citeledger.work_product_fiduciary_gate as g
      where g.message_id = pg_temp.id(p_n)
    ),
    'none'
  )
$$;
create function pg_temp.failures()
returns text
language sql
as $$
  select coalesce(
    string_agg(
      format('%s %s %s', right(f.message_id::text, 2), f.stage, f.sqlstate), ', '
      order by f.message_id, f.stage collate "C"
    ),
    'none'
  )
  from citeledger.finalize_failure as f
$$;

select set_config('test.a', citeledger.create_firm('Alpha LLP')::text, true);
select set_config('test.b', citeledger.create_firm('Beta LLP')::text, true);
select citeledger.set_context(current_setting('test.a')::uuid, null, array['matters:read']);
insert into citeledger.projects (id, matter_number, name)
values
  ('00000000-0000-4000-8000-0000000000f1', 'M-1', 'First'),
  ('00000000-0000-4000-8000-0000000000f2', 'M-2', 'Second');
insert into citeledger.documents (id, title)
values ('00000000-0000-4000-8000-0000000000d1', 'Lease');
insert into citeledger.chats (id, project_id)
values ('00000000-0000-4000-8000-0000000000c1', '00000000-0000-4000-8000-0000000000f1');
insert into citeledger.messages (id, chat_id, role)
select pg_temp.id(n), '00000000-0000-4000-8000-0000000000c1', 'assistant'
from generate_series(1, 9) as n;
insert into citeledger.message_citations (
  message_id, source_document_id, source_text, verified, verification_method,
  verification_confidence
)
select pg_temp.id(n), s.document_id::uuid, s.quote, true, 'exact_match', s.confidence
from generate_series(1, 9) as n
cross join (
  values ('00000000-0000-4000-8000-0000000000d1', 'a', 0.9), (null, 'b', 0.13)
) as s (document_id, quote, confidence);

-- The chat moves to another matter: entries keep theirs, the verdict is of the time it is computed.
select citeledger.finalize_turn(pg_temp.id(1));
update citeledger.chats set project_id = '00000000-0000-4000-8000-0000000000f2';
insert into citeledger.message_tool_sources (message_id, source_kind, label)
values (pg_temp.id(1), 'web', 'Page');
update citeledger.message_citations set verified = false where message_id = pg_temp.id(1);
select results_eq(
  $$select e.source_kind, right(e.project_id::text, 2), count(*)
    from citeledger.citation_ledger_entry as e
    group by 1, 2
    order by 1$$,
  $$values ('kb_document', 'f1', 2::bigint), ('web', 'f2', 1)$$,
  'entries keep the matter that their chat had when they were written'
);
select is(
  (select right(g.project_id::text, 2) from citeledger.work_product_fiduciary_gate as g),
  'f2',
  'a verdict has the matter that the chat had when it was computed'
);
select is_empty('select citeledger.check_integrity()', 'a chat that moved is healthy');
delete from citeledger.projects where id = '00000000-0000-4000-8000-0000000000f2';
select is(
  (
    select format('%s, %s', g.gate_status, coalesce(g.project_id::text, 'no matter'))
    from citeledger.work_product_fiduciary_gate as g
  ),
  'flagged, no matter',
  'a verdict stays when its matter goes'
);

-- A document that is deleted: the quote stays with its turn, and no turn is touched.
select citeledger.finalize_turn(pg_temp.id(2));
create temporary table untouched as
select g.ctid as row_version, g.computed_at
from citeledger.work_product_fiduciary_gate as g
where g.message_id = pg_temp.id(2);
delete from citeledger.documents;
select is(
  (
    select format('%s, %s', s.source_text, coalesce(s.source_document_id::text, 'no document'))
    from citeledger.message_citations as s
    where s.message_id = pg_temp.id(2) and s.source_text = 'a'
  ),
  'a, no document',
  'the quote of a deleted document stays with its turn'
);
select results_eq(
  $$select g.ctid, g.computed_at
    from citeledger.work_product_fiduciary_gate as g
    where g.message_id = pg_temp.id(2)$$,
  'select u.row_version, u.computed_at from untouched as u',
  'and its verdict is not computed again'
);

-- finalize_pending: what lost its verdict, and what failed, gets it; up to a limit.
select citeledger.finalize_turns(array[pg_temp.id(3), pg_temp.id(4), pg_temp.id(5)]);
delete from citeledger.work_product_fiduciary_gate
where message_id in (pg_temp.id(3), pg_temp.id(4), pg_temp.id(5));
select is(citeledger.finalize_pending(1), 1, 'finalize_pending takes no more than its limit');
select is(citeledger.finalize_pending(1), 1, 'and goes on with the next');
select is(citeledger.finalize_pending(), 1, 'by default it takes all that is left');
select is(citeledger.finalize_pending(), 0, 'until nothing is pending');
select is(
  array[pg_temp.verdict(3), pg_temp.verdict(4), pg_temp.verdict(5)],
  array['fiduciary_grade 2/0/0', 'fiduciary_grade 2/0/0', 'fiduciary_grade 2/0/0'],
  'each has its verdict again'
);

-- One source whose entry cannot be written: skipped, logged, and counted as failed.
alter table citeledger.citation_ledger_entry
  add constraint planted_fault check (confidence is distinct from 0.13) not valid;
select is(
  citeledger.finalize_turn(pg_temp.id(6)) - 'gate',
  format(
    '{"message_id": "%s", "finalized": true, "entries_written": 1,
      "failures": [{"stage": "assemble_row", "sqlstate": "23514"}]}',
    pg_temp.id(6)
  )::jsonb,
  'the turn is finalized, its other source has an entry, and the report names the failure'
);
select is(pg_temp.verdict(6), 'flagged 1/0/1', 'the skipped citation counts as failed');
select is(pg_temp.failures(), '06 assemble_row 23514', 'the failure is logged, without any text');
alter table citeledger.citation_ledger_entry drop constraint planted_fault;
select is(citeledger.finalize_pending(), 1, 'once the fault is gone, finalize_pending mends it');
select is(
  array[pg_temp.verdict(6), pg_temp.failures()],
  array['fiduciary_grade 2/0/0', 'none'],
  'a success clears the turn''s failures'
);

-- A verdict that cannot be stored: none is there, not even the old one; the turn is not lost.
select citeledger.finalize_turn(pg_temp.id(7));
alter table citeledger.work_product_fiduciary_gate
  add constraint planted_fault check (fail_count = 0) not valid;
select lives_ok(
  $$update citeledger.message_citations
    set verified = false
    where message_id = pg_temp.id(7) and source_text = 'a'$$,
  'a late verification does not fail because its verdict cannot be stored'
);
select is(pg_temp.verdict(7), 'none', 'the old verdict is withdrawn: it would be wrong now');
select is(pg_temp.failures(), '07 gate 23514', 'the failure is logged');
-- In a batch, one bad turn spoils no other.
update citeledger.message_citations
set verified = false
where message_id = pg_temp.id(8) and source_text = 'a';
select is(
  citeledger.finalize_turns(array[pg_temp.id(8), pg_temp.id(9)]),
  1,
  'of two turns the one whose verdict can be stored has it'
);
select is(
  array[pg_temp.verdict(8), pg_temp.verdict(9), pg_temp.failures()],
  array['none', 'fiduciary_grade 2/0/0', '07 gate 23514, 08 gate 23514'],
  'the other has none, and its failure is logged'
);
alter table citeledger.work_product_fiduciary_gate drop constraint planted_fault;
-- A firm can be erased whatever has failed in it.
select citeledger.delete_firm(current_setting('test.a')::uuid);
select is(
  (
    select format('%s %s %s',
      (select count(*) from citeledger.messages),
      (select count(*) from citeledger.finalize_failure),
      (select count(*) from citeledger.citation_ledger_entry_revision)
    )
  ),
  '0 0 0',
  'a firm with logged failures is erased whole'
);

-- The seal: a member of the owner may repair, an application role under the same login may not.
select citeledger.set_context(current_setting('test.b')::uuid);
insert into citeledger.chats (id) values ('00000000-0000-4000-8000-0000000000c1');
insert into citeledger.messages (id, chat_id, role)
values (pg_temp.id(1), '00000000-0000-4000-8000-0000000000c1', 'assistant');
insert into citeledger.message_citations (message_id, source_text) values (pg_temp.id(1), 'a');
select citeledger.finalize_turn(pg_temp.id(1));
select is(pg_temp.verdict(1), 'flagged 0/0/1', 'a finalized turn with a failed citation');
select lives_ok(
  'delete from citeledger.message_citations',
  'a member of the owner may delete a source of a finalized turn'
);
select is(pg_temp.verdict(1), 'fiduciary_grade 0/0/0', 'and the verdict follows');
select is(
  (select r.verification_status from citeledger.citation_ledger_entry_revision as r),
  'unverified',
  'and a revision tells of it'
);

select * from finish();

rollback;
