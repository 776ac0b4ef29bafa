-- The verdict is a pure function of how many assertions pass, are supported and fail: every triple
-- from 0 to 3, through real sources, by each of the two ways to a verdict.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(146);

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

-- What each triple must give, spelled out by the smallest number that decides.
create function pg_temp.expected(p_pass integer, p_supported integer, p_fail integer)
returns text
language sql
as $$
  select format(
    '%s: %s pass, %s supported, %s fail of %s, 0 unrecognized',
    (array['fiduciary_grade', 'supported_only', 'flagged'])[
      1 + greatest(2 * least(p_fail, 1), least(p_supported, 1))
    ],
    p_pass, p_supported, p_fail, p_pass + p_supported + p_fail
  )
$$;
create function pg_temp.recorded(p_message_id uuid)
returns text
language sql
as $$
  select format(
    '%s: %s pass, %s supported, %s fail of %s, %s unrecognized',
    g.gate_status, g.pass_count, g.supported_count, g.fail_count, g.total_assertions,
    g.unrecognized_count
  )
  from citeledger.work_product_fiduciary_gate as g
  where g.message_id = p_message_id
$$;
create function pg_temp.turn(p_way integer, p_pass integer, p_supported integer, p_fail integer)
returns uuid
language sql
as $$
  select format(
    '00000000-0000-4000-800%s-000000000%s%s%s', p_way, p_pass, p_supported, p_fail
  )::uuid
$$;

set local role citeledger_admin;
select set_config('test.firm', citeledger.create_firm('Truth LLP')::text, true);
set local role citeledger_app;
select citeledger.set_context(current_setting('test.firm')::uuid, null, array['matters:read']);
insert into citeledger.chats (id) values ('00000000-0000-4000-8000-0000000000c1');

create temporary table triple as
select w as way, p as pass, s as supported, f as fail
from generate_series(1, 2) as w
cross join generate_series(0, 3) as p
cross join generate_series(0, 3) as s
cross join generate_series(0, 3) as f;
insert into citeledger.messages (id, chat_id, role)
select
  pg_temp.turn(t.way, t.pass, t.supported, t.fail), '00000000-0000-4000-8000-0000000000c1',
  'assistant'
from triple as t;

-- Each tier by all of its statuses in turn; odd ones are own documents, even ones are opinions.
create temporary table assertion as
select
  pg_temp.turn(t.way, t.pass, t.supported, t.fail) as message_id,
  n % 2 = 1 as is_document,
  k.tier <> 'fail' or n = 3 as verified,
  (k.methods)[1 + n % cardinality(k.methods)] as method
from triple as t
cross join lateral (
  values
    ('pass', t.pass, array['exact_match', 'tolerant_match']),
    ('supported', t.supported, array['paraphrase_judge', 'ensemble_strict', 'ensemble_majority']),
    -- Never tried, tried in vain, tried well but not verified, and verified as failed.
    ('fail', t.fail, array['failed', null, 'exact_match'])
) as k (tier, wanted, methods)
cross join generate_series(1, k.wanted) as n;
insert into citeledger.message_citations (message_id, source_text, verified, verification_method)
select a.message_id, 'quote', a.verified, a.method from assertion as a where a.is_document;
insert into citeledger.message_caselaw_citations (
  message_id, opinion_id, cluster_id, source_text, verified, verification_method
)
select a.message_id, 1, 1, 'holding', a.verified, a.method
from assertion as a
where not a.is_document;

-- One way: finalize, many at once.
select is(
  citeledger.finalize_turns(
    array(select pg_temp.turn(1, t.pass, t.supported, t.fail) from triple as t where t.way = 1)
  ),
  64,
  'finalize_turns gives sixty-four verdicts'
);
select is(
  pg_temp.recorded(pg_temp.turn(1, t.pass, t.supported, t.fail)),
  pg_temp.expected(t.pass, t.supported, t.fail),
  format('finalized, %s pass, %s supported, %s fail', t.pass, t.supported, t.fail)
)
from triple as t
where t.way = 1
order by t.pass, t.supported, t.fail;

-- The other: assemble, then compute, one by one.
select is(
  (
    select sum(
      citeledger.assemble_ledger_entries(pg_temp.turn(2, t.pass, t.supported, t.fail))
    )
    from triple as t
    where t.way = 2
  ),
  288::bigint,
  'assemble_ledger_entries writes an entry for each assertion'
);
select is(
  (citeledger.compute_and_record_gate(pg_temp.turn(2, t.pass, t.supported, t.fail))).gate_status,
  split_part(pg_temp.expected(t.pass, t.supported, t.fail), ':', 1),
  format('computed, %s pass, %s supported, %s fail', t.pass, t.supported, t.fail)
)
from triple as t
where t.way = 2
order by t.pass, t.supported, t.fail;
select results_eq(
  $$select pg_temp.recorded(pg_temp.turn(2, t.pass, t.supported, t.fail))
    from triple as t where t.way = 2 order by t.pass, t.supported, t.fail$$,
  $$select pg_temp.expected(t.pass, t.supported, t.fail)
    from triple as t where t.way = 2 order by t.pass, t.supported, t.fail$$,
  'both ways record the same'
);

-- Literally, so that the formula above is not trusted alone.
select is(
  pg_temp.recorded(pg_temp.turn(1, c.pass, c.supported, c.fail)),
  c.said,
  format('to the letter: %s', c.said)
)
from (
  values
    (0, 0, 0, 'fiduciary_grade: 0 pass, 0 supported, 0 fail of 0, 0 unrecognized'),
    (3, 0, 0, 'fiduciary_grade: 3 pass, 0 supported, 0 fail of 3, 0 unrecognized'),
    (3, 1, 0, 'supported_only: 3 pass, 1 supported, 0 fail of 4, 0 unrecognized'),
    (0, 1, 0, 'supported_only: 0 pass, 1 supported, 0 fail of 1, 0 unrecognized'),
    (3, 0, 1, 'flagged: 3 pass, 0 supported, 1 fail of 4, 0 unrecognized'),
    (3, 3, 1, 'flagged: 3 pass, 3 supported, 1 fail of 7, 0 unrecognized'),
    (0, 0, 1, 'flagged: 0 pass, 0 supported, 1 fail of 1, 0 unrecognized')
) as c (pass, supported, fail, said);

-- Provenance is no assertion: added to every turn, it changes no verdict.
insert into citeledger.message_tool_sources (message_id, source_kind, label)
select pg_temp.turn(1, t.pass, t.supported, t.fail), 'web', 'Page'
from triple as t
cross join generate_series(1, 2) as n
where t.way = 1;
select results_eq(
  $$select pg_temp.recorded(pg_temp.turn(1, t.pass, t.supported, t.fail))
    from triple as t where t.way = 1 order by t.pass, t.supported, t.fail$$,
  $$select pg_temp.expected(t.pass, t.supported, t.fail)
    from triple as t where t.way = 1 order by t.pass, t.supported, t.fail$$,
  'what tools brought changes no verdict'
);
select is(
  (
    select count(*)
    from citeledger.citation_ledger_entry as e
    where e.verification_status = 'provenance'
  ),
  128::bigint,
  'though every bit of it is in the ledger'
);
insert into citeledger.messages (id, chat_id, role, finalized_at)
values (
  '00000000-0000-4000-8000-0000000000e1', '00000000-0000-4000-8000-0000000000c1', 'assistant', null
);
insert into citeledger.message_tool_sources (message_id, source_kind, label)
values ('00000000-0000-4000-8000-0000000000e1', 'web', 'Page');
select is(
  citeledger.finalize_turn('00000000-0000-4000-8000-0000000000e1') #>> '{gate,gate_status}',
  'fiduciary_grade',
  'a turn of provenance alone is fiduciary_grade'
);
select is(
  pg_temp.recorded('00000000-0000-4000-8000-0000000000e1'),
  'fiduciary_grade: 0 pass, 0 supported, 0 fail of 0, 0 unrecognized',
  'with a total of 0, by which it is known'
);
select is_empty('select citeledger.check_integrity()', 'a recount agrees with every verdict');

select * from finish();

rollback;
