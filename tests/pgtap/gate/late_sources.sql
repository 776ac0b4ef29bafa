-- Sources and verifications that come after the verdict: the ledger and the verdict follow at once,
-- whichever table, up and down; what was said before stays as a revision.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(47);

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
create function pg_temp.said(p_n integer)
returns text
language sql
as $$
  select coalesce(
    (
      select format(
        '%s %s/%s/%s, %s entries, %s revisions',
        g.gate_status, g.pass_count, g.supported_count, g.fail_count,
        (select count(*) from citeledger.citation_ledger_entry as e
          where e.message_id = pg_temp.id(p_n)),
        (select count(*) from citeledger.citation_ledger_entry_revision as r
          where r.message_id = pg_temp.id(p_n))
      )
      from citeledger.work_product_fiduciary_gate as g
      where g.message_id = pg_temp.id(p_n)
    ),
    format(
      'no verdict, %s entries',
      (select count(*) from citeledger.citation_ledger_entry as e
        where e.message_id = pg_temp.id(p_n))
    )
  )
$$;

set local role citeledger_admin;
select set_config('test.firm', citeledger.create_firm('Late LLP')::text, true);
set local role citeledger_app;
select citeledger.set_context(current_setting('test.firm')::uuid, null, array['matters:read']);
insert into citeledger.chats (id) values ('00000000-0000-4000-8000-0000000000c1');
insert into citeledger.messages (id, chat_id, role)
select pg_temp.id(n), '00000000-0000-4000-8000-0000000000c1', 'assistant'
from generate_series(1, 5) as n;

-- While a turn is being written, nothing follows.
insert into citeledger.message_citations (message_id, source_text) values (pg_temp.id(1), 'a');
select is(pg_temp.said(1), 'no verdict, 0 entries', 'no verdict, no entry before the turn is done');
update citeledger.message_citations set verified = true, verification_method = 'exact_match';
select is(pg_temp.said(1), 'no verdict, 0 entries', 'nor after a verification');
delete from citeledger.message_citations;
select is(pg_temp.said(1), 'no verdict, 0 entries', 'nor after a delete');

-- Turn 1 is finalized, turn 2 has a verdict only. Both follow alike.
select citeledger.finalize_turn(pg_temp.id(1));
select citeledger.compute_and_record_gate(pg_temp.id(2));
select is(pg_temp.said(t.n), 'fiduciary_grade 0/0/0, 0 entries, 0 revisions',
  format('turn %s has asserted nothing yet', t.n))
from generate_series(1, 2) as t (n);

insert into citeledger.message_citations (message_id, source_text, verified, verification_method)
select pg_temp.id(n), 'a', true, 'exact_match' from generate_series(1, 2) as n;
select is(pg_temp.said(t.n), 'fiduciary_grade 1/0/0, 1 entries, 0 revisions',
  format('turn %s: a late citation that passes', t.n))
from generate_series(1, 2) as t (n);
insert into citeledger.message_tool_sources (message_id, source_kind, label)
select pg_temp.id(n), 'web', 'Page' from generate_series(1, 2) as n;
select is(pg_temp.said(t.n), 'fiduciary_grade 1/0/0, 2 entries, 0 revisions',
  format('turn %s: a late tool source', t.n))
from generate_series(1, 2) as t (n);
insert into citeledger.message_caselaw_citations (
  message_id, opinion_id, cluster_id, source_text, verified, verification_method
)
select pg_temp.id(n), 1, 1, 'holding', true, 'ensemble_strict' from generate_series(1, 2) as n;
select is(pg_temp.said(t.n), 'supported_only 1/1/0, 3 entries, 0 revisions',
  format('turn %s: a late opinion that is supported', t.n))
from generate_series(1, 2) as t (n);
insert into citeledger.message_caselaw_citations (message_id, opinion_id, cluster_id, source_text)
select pg_temp.id(n), 2, 2, 'holding' from generate_series(1, 2) as n;
select is(pg_temp.said(t.n), 'flagged 1/1/1, 4 entries, 0 revisions',
  format('turn %s: a late opinion that nobody verified flags it', t.n))
from generate_series(1, 2) as t (n);

-- Verifications, down and up, in one statement for both turns.
update citeledger.message_citations set verified = false;
select is(pg_temp.said(t.n), 'flagged 0/1/2, 4 entries, 1 revisions',
  format('turn %s: a citation that is withdrawn', t.n))
from generate_series(1, 2) as t (n);
update citeledger.message_citations set verified = true;
select is(pg_temp.said(t.n), 'flagged 1/1/1, 4 entries, 2 revisions',
  format('turn %s: and verified again', t.n))
from generate_series(1, 2) as t (n);
update citeledger.message_caselaw_citations
set verified = true, verification_method = 'tolerant_match', verification_confidence = 0.5
where opinion_id = 2;
select is(pg_temp.said(t.n), 'supported_only 2/1/0, 4 entries, 3 revisions',
  format('turn %s: an opinion that is verified late', t.n))
from generate_series(1, 2) as t (n);
update citeledger.message_caselaw_citations
set verification_method = 'exact_match'
where opinion_id = 1;
select is(pg_temp.said(t.n), 'fiduciary_grade 3/0/0, 4 entries, 4 revisions',
  format('turn %s: a better method', t.n))
from generate_series(1, 2) as t (n);
update citeledger.message_caselaw_citations
set verification_method = 'failed'
where opinion_id = 1;
select is(pg_temp.said(t.n), 'flagged 2/0/1, 4 entries, 5 revisions',
  format('turn %s: a judge that changes its mind', t.n))
from generate_series(1, 2) as t (n);
update citeledger.message_caselaw_citations set verification_confidence = 0.6 where opinion_id = 2;
select is(pg_temp.said(t.n), 'flagged 2/0/1, 4 entries, 6 revisions',
  format('turn %s: a confidence alone leaves a revision too', t.n))
from generate_series(1, 2) as t (n);
update citeledger.message_caselaw_citations set verification_confidence = verification_confidence;
select is(pg_temp.said(t.n), 'flagged 2/0/1, 4 entries, 6 revisions',
  format('turn %s: an update that changes nothing leaves none', t.n))
from generate_series(1, 2) as t (n);

-- Deletes: where the turn is finalized they are refused, elsewhere the verdict follows.
select throws_ok(
  format('delete from citeledger.%s where message_id = pg_temp.id(1)', t.name),
  '55000',
  'the turn is finalized and its sources are sealed',
  format('finalized: no source of %s can go', t.name)
)
from (
  values ('message_citations'), ('message_caselaw_citations'), ('message_tool_sources')
) as t (name);
select is(
  pg_temp.said(1),
  'flagged 2/0/1, 4 entries, 6 revisions',
  'the finalized turn is as it was: a failed source cannot be laundered away'
);
delete from citeledger.message_caselaw_citations
where message_id = pg_temp.id(2) and opinion_id = 1;
select is(
  pg_temp.said(2),
  'fiduciary_grade 2/0/0, 3 entries, 7 revisions',
  'with a verdict only: the verdict follows a deleted opinion, and a revision tells of it'
);
delete from citeledger.message_citations where message_id = pg_temp.id(2);
select is(
  pg_temp.said(2),
  'fiduciary_grade 1/0/0, 2 entries, 8 revisions',
  'with a verdict only: it follows a deleted citation'
);
delete from citeledger.message_tool_sources where message_id = pg_temp.id(2);
select is(
  pg_temp.said(2),
  'fiduciary_grade 1/0/0, 1 entries, 9 revisions',
  'with a verdict only: a deleted tool source takes its entry along'
);
select is(
  (
    select string_agg(r.source_kind || ' ' || r.verification_status, ', ' order by r.superseded_at)
    from citeledger.citation_ledger_entry_revision as r
    where r.message_id = pg_temp.id(2)
      and not exists (
        select from citeledger.citation_ledger_entry as e where e.id = r.entry_id
      )
      -- Of each entry that is gone, the last thing it said.
      and r.superseded_at = (
        select max(l.superseded_at)
        from citeledger.citation_ledger_entry_revision as l
        where l.entry_id = r.entry_id
      )
  ),
  'caselaw failed, kb_document exact_match, web provenance',
  'what the deleted entries said last is kept'
);

-- Many sources of many turns in one statement.
select citeledger.finalize_turns(array[pg_temp.id(3), pg_temp.id(4)]);
insert into citeledger.message_citations (message_id, source_text, verified, verification_method)
select pg_temp.id(3 + n % 3), 'many', true, 'exact_match' from generate_series(1, 30) as n;
select is(pg_temp.said(t.n), t.said, format('turn %s of three in one insert', t.n))
from (
  values
    (3, 'fiduciary_grade 10/0/0, 10 entries, 0 revisions'),
    (4, 'fiduciary_grade 10/0/0, 10 entries, 0 revisions'),
    (5, 'no verdict, 0 entries')
) as t (n, said);
update citeledger.message_citations
set verified = false
where id in (
  select distinct on (s.message_id) s.id
  from citeledger.message_citations as s
  where s.source_text = 'many'
  order by s.message_id, s.id
);
select is(pg_temp.said(t.n), t.said, format('turn %s of three in one update', t.n))
from (
  values
    (3, 'flagged 9/0/1, 10 entries, 1 revisions'),
    (4, 'flagged 9/0/1, 10 entries, 1 revisions'),
    (5, 'no verdict, 0 entries')
) as t (n, said);

-- A message that is not the assistant's never gets a verdict, finalized or not.
insert into citeledger.messages (id, chat_id, role, finalized_at)
values (pg_temp.id(6), '00000000-0000-4000-8000-0000000000c1', 'user', now());
insert into citeledger.message_citations (message_id, source_text) values (pg_temp.id(6), 'a');
insert into citeledger.message_tool_sources (message_id, source_kind, label)
values (pg_temp.id(6), 'web', 'Page');
update citeledger.message_citations
set verified = true, verification_method = 'exact_match'
where message_id = pg_temp.id(6);
select is(
  pg_temp.said(6),
  'no verdict, 0 entries',
  'sources of a user''s finalized message give no entry and no verdict'
);

select is(
  citeledger.current_firm_id()::text,
  current_setting('test.firm'),
  'the triggers leave the context as it was'
);
select is_empty('select citeledger.check_integrity()', 'a recount agrees with every verdict');

select * from finish();

rollback;
