-- compute_and_record_gate: whom it judges, what it counts as failed, the mean of the confidences,
-- and that a verdict that did not change is not written again.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(32);

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
select set_config('test.firm', citeledger.create_firm('Verdict LLP')::text, true);
set local role citeledger_app;
select citeledger.set_context(current_setting('test.firm')::uuid, null, array['matters:read']);
insert into citeledger.projects (id, matter_number, name)
values ('00000000-0000-4000-8000-0000000000f1', 'M-1', 'Matter');
insert into citeledger.chats (id, project_id)
values ('00000000-0000-4000-8000-0000000000c1', '00000000-0000-4000-8000-0000000000f1');

create function pg_temp.id(p_n integer)
returns uuid
language sql
immutable
as $$
  select ('00000000-0000-4000-8000-' || lpad(p_n::text, 12, '0'))::uuid
$$;
create function pg_temp.new_turn(p_n integer)
returns void
language sql
as $$
  insert into citeledger.messages (id, chat_id, role)
  values (pg_temp.id(p_n), '00000000-0000-4000-8000-0000000000c1', 'assistant')
$$;
create function pg_temp.cite(
  p_n integer,
  p_method text,
  p_confidence double precision,
  p_verified boolean default true
)
returns void
language sql
as $$
  insert into citeledger.message_caselaw_citations (
    message_id, opinion_id, cluster_id, source_text, verified, verification_method,
    verification_confidence
  )
  values (pg_temp.id(p_n), 1, 1, 'holding', p_verified, p_method, p_confidence)
$$;
create function pg_temp.said(p_n integer)
returns text
language sql
as $$
  select format(
    '%s %s/%s/%s of %s, confidence %s',
    g.gate_status, g.pass_count, g.supported_count, g.fail_count, g.total_assertions,
    coalesce(g.confidence::text, 'none')
  )
  from citeledger.work_product_fiduciary_gate as g
  where g.message_id = pg_temp.id(p_n)
$$;

-- Whom it judges.
insert into citeledger.messages (id, chat_id, role)
select pg_temp.id(900 + r.n::integer), '00000000-0000-4000-8000-0000000000c1', r.role
from unnest(array['user', 'system', 'tool']) with ordinality as r (role, n);
insert into citeledger.message_citations (message_id, source_text)
select m.id, 'quote' from citeledger.messages as m;
select is(
  citeledger.compute_and_record_gate(m.id) is null,
  true,
  format('a message of the %s: null', m.role)
)
from citeledger.messages as m
order by m.id;
select is(
  citeledger.compute_and_record_gate('00000000-0000-4000-8000-00000000dead') is null,
  true,
  'an unknown message: null'
);
select is(citeledger.compute_and_record_gate(null) is null, true, 'a null message: null');
select is_empty(
  'select from citeledger.work_product_fiduciary_gate',
  'and no verdict was recorded for any of them'
);

-- What it returns is what it stored.
select pg_temp.new_turn(1);
select set_config(
  'test.returned', to_jsonb(citeledger.compute_and_record_gate(pg_temp.id(1)))::text, true
);
select is(
  current_setting('test.returned')::jsonb,
  (
    select to_jsonb(g)
    from citeledger.work_product_fiduciary_gate as g
    where g.message_id = pg_temp.id(1)
  ),
  'it returns the row that it stored'
);
select is(
  (
    select format('%s %s %s', g.firm_id, g.chat_id, g.project_id)
    from citeledger.work_product_fiduciary_gate as g
  ),
  current_setting('test.firm')
    || ' 00000000-0000-4000-8000-0000000000c1 00000000-0000-4000-8000-0000000000f1',
  'firm, chat and matter are the turn''s'
);
select is(pg_temp.said(1), 'fiduciary_grade 0/0/0 of 0, confidence none', 'nothing asserted');

-- A citation without an entry is an assertion that resolves to nothing.
select pg_temp.new_turn(2);
select pg_temp.cite(2, 'exact_match', 1);
select is(
  (citeledger.compute_and_record_gate(pg_temp.id(2))).gate_status,
  'flagged',
  'a verified citation without an entry flags the turn'
);
select is(pg_temp.said(2), 'flagged 0/0/1 of 1, confidence none', 'it counts as failed');
insert into citeledger.message_citations (message_id, source_text)
values (pg_temp.id(2), 'quote');
select is(
  pg_temp.said(2),
  'flagged 0/0/2 of 2, confidence none',
  'a source that comes after the verdict is counted at once, and the missing one is not forgotten'
);
insert into citeledger.message_tool_sources (message_id, source_kind, label)
values (pg_temp.id(2), 'web', 'Page');
select is(
  pg_temp.said(2),
  'flagged 0/0/2 of 2, confidence none',
  'a tool''s source is no assertion'
);
select citeledger.assemble_ledger_entries(pg_temp.id(2));
select is(
  pg_temp.said(2),
  'flagged 1/0/1 of 2, confidence 1',
  'once it has its entry it counts as what it is'
);

-- A tool source without an entry is none.
select pg_temp.new_turn(3);
insert into citeledger.message_tool_sources (message_id, source_kind, label)
values (pg_temp.id(3), 'web', 'Page');
select citeledger.compute_and_record_gate(pg_temp.id(3));
select is(
  pg_temp.said(3),
  'fiduciary_grade 0/0/0 of 0, confidence none',
  'a tool''s source without an entry fails nothing'
);

-- The mean.
select pg_temp.new_turn(n) from generate_series(10, 15) as n;
select pg_temp.cite(10, 'exact_match', 0.9);
select pg_temp.cite(10, 'paraphrase_judge', 0.5);
select pg_temp.cite(10, 'tolerant_match', null);
select pg_temp.cite(11, 'exact_match', 0.9);
select pg_temp.cite(11, 'exact_match', 0.9, false);
select pg_temp.cite(12, 'exact_match', null);
select pg_temp.cite(13, 'failed', 0.4);
select pg_temp.cite(13, 'exact_match', 0.8);
select pg_temp.cite(14, 'exact_match', 0.1) from generate_series(1, 10);
select pg_temp.cite(15, 'exact_match', 0);
select pg_temp.cite(15, 'exact_match', 1);
insert into citeledger.message_tool_sources (message_id, source_kind, label)
select pg_temp.id(n), 'web', 'Page' from generate_series(10, 15) as n;
select citeledger.finalize_turns(array(select pg_temp.id(n) from generate_series(10, 15) as n));
select is(pg_temp.said(c.n), c.said, format('confidence: %s', c.why))
from (
  values
    (10, 'supported_only 2/1/0 of 3, confidence 0.7', 'the mean of those that have one'),
    (11, 'flagged 1/0/1 of 2, confidence 0.9', 'one that is not verified has none'),
    (12, 'fiduciary_grade 1/0/0 of 1, confidence none', 'none where nobody has one'),
    (13, 'flagged 1/0/1 of 2, confidence 0.6', 'a failed one counts with its confidence'),
    (14, 'fiduciary_grade 10/0/0 of 10, confidence 0.1', 'ten tenths are exactly a tenth'),
    (15, 'fiduciary_grade 2/0/0 of 2, confidence 0.5', 'zero is a confidence')
) as c (n, said, why);

-- The order of the rows is nothing to the mean: forwards and backwards give the same bits.
select pg_temp.new_turn(n) from generate_series(20, 21) as n;
select pg_temp.cite(20, 'exact_match', c.confidence)
from (
  select 1 / (1 + sqrt(n)) as confidence from generate_series(1, 40) as n order by n
) as c;
select pg_temp.cite(21, 'exact_match', c.confidence)
from (
  select 1 / (1 + sqrt(n)) as confidence from generate_series(1, 40) as n order by n desc
) as c;
select citeledger.finalize_turns(array[pg_temp.id(20), pg_temp.id(21)]);
select is(
  (
    select count(distinct g.confidence)
    from citeledger.work_product_fiduciary_gate as g
    where g.message_id in (pg_temp.id(20), pg_temp.id(21))
  ),
  1::bigint,
  'the mean does not depend on the order of the rows'
);
select isnt(
  (
    select g.confidence
    from citeledger.work_product_fiduciary_gate as g
    where g.message_id = pg_temp.id(20)
  ),
  null,
  'and there is one'
);

-- An unchanged verdict is not rewritten.
create temporary table first_verdict as
select g.ctid as row_version, g.xmin::text as written_by, g.*
from citeledger.work_product_fiduciary_gate as g
where g.message_id = pg_temp.id(10);
select citeledger.compute_and_record_gate(pg_temp.id(10));
select citeledger.finalize_turn(pg_temp.id(10));
select citeledger.finalize_turns(array[pg_temp.id(10), pg_temp.id(10)]);
select citeledger.assemble_ledger_entries(pg_temp.id(10));
insert into citeledger.message_tool_sources (message_id, source_kind, label)
values (pg_temp.id(10), 'web', 'Another page');
update citeledger.message_caselaw_citations
set verification_method = 'exact_match'
where message_id = pg_temp.id(10) and verification_method = 'tolerant_match';
select results_eq(
  $$select g.ctid, g.xmin::text, g.id, g.computed_at
    from citeledger.work_product_fiduciary_gate as g
    where g.message_id = pg_temp.id(10)$$,
  'select f.row_version, f.written_by, f.id, f.computed_at from first_verdict as f',
  'whatever computes it again, an unchanged verdict is the very same row'
);
update citeledger.message_caselaw_citations
set verification_confidence = 0.6
where message_id = pg_temp.id(10) and verification_confidence = 0.5;
select results_eq(
  $$select g.id = f.id, g.created_at = f.created_at, g.computed_at > f.computed_at, g.confidence
    from citeledger.work_product_fiduciary_gate as g
    cross join first_verdict as f
    where g.message_id = pg_temp.id(10)$$,
  'values (true, true, true, 0.75::double precision)',
  'a changed verdict keeps its id and its first time, and has a new time of its own'
);
select is(
  (
    select count(*)
    from citeledger.work_product_fiduciary_gate as g
    where g.message_id = pg_temp.id(10)
  ),
  1::bigint,
  'there is one verdict a turn'
);

-- The history of one citation is one citation.
select pg_temp.new_turn(30);
select pg_temp.cite(30, 'failed', null);
select pg_temp.cite(30, 'ensemble_strict', null);
select citeledger.finalize_turn(pg_temp.id(30));
select is(pg_temp.said(30), 'flagged 0/1/1 of 2, confidence none', 'one failed, one supported');
update citeledger.message_caselaw_citations
set verification_method = 'exact_match'
where message_id = pg_temp.id(30) and verification_method = 'failed';
update citeledger.message_caselaw_citations
set verification_confidence = 0.5
where message_id = pg_temp.id(30) and verification_method = 'exact_match';
select is(
  pg_temp.said(30),
  'supported_only 1/1/0 of 2, confidence 0.5',
  'judged three times, it counts once, by the last judgement'
);
select results_eq(
  'select problem, table_name from citeledger.check_integrity()',
  $$values ('source_without_entry', 'message_tool_sources')$$,
  'a recount agrees with every verdict; the one source that was never assembled is told'
);

select * from finish();

rollback;
