-- A status that verification_tier does not know: only the owner can store one. It is counted, in no
-- tier and in no total; it flags its turn; and it disappears from nowhere. That there is one
-- warning for each call is not for SQL to see: it goes to the client.
--
-- Needs a login that may SET ROLE to citeledger_owner (the deployer), no superuser and not exempt
-- from row security. Row security is forced, so the owner too sees the firm of its context alone.
-- All is rolled back.

begin;

select plan(26);

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
create function pg_temp.said(p_n integer)
returns text
language sql
as $$
  select format(
    '%s %s/%s/%s of %s, %s unrecognized, confidence %s',
    g.gate_status, g.pass_count, g.supported_count, g.fail_count, g.total_assertions,
    g.unrecognized_count, coalesce(g.confidence::text, 'none')
  )
  from citeledger.work_product_fiduciary_gate as g
  where g.message_id = pg_temp.id(p_n)
$$;

select set_config('test.firm', citeledger.create_firm('Unrecognized LLP')::text, true);
select citeledger.set_context(current_setting('test.firm')::uuid, null, array['matters:read']);
insert into citeledger.chats (id) values ('00000000-0000-4000-8000-0000000000c1');

-- Each status beside one citation that passes.
create temporary table odd (n integer, status text);
insert into odd
values
  (1, 'pass'), (2, 'partially_supported'), (3, 'error'), (4, 'exact_matched'), (5, 'supported'),
  (6, 'verified'), (7, 'null');
insert into citeledger.messages (id, chat_id, role)
select pg_temp.id(n), '00000000-0000-4000-8000-0000000000c1', 'assistant'
from generate_series(1, 9) as n;
insert into citeledger.message_citations (
  message_id, source_text, verified, verification_method, verification_confidence
)
select pg_temp.id(n), 'good', true, 'exact_match', 0.8 from generate_series(1, 9) as n
union all
select pg_temp.id(n), 'odd', true, 'exact_match', 0.4 from generate_series(1, 9) as n;
select citeledger.assemble_ledger_entries(pg_temp.id(n)) from generate_series(1, 9) as n;
update citeledger.citation_ledger_entry as e
set verification_status = o.status
from odd as o
join citeledger.message_citations as s
  on s.message_id = pg_temp.id(o.n) and s.source_text = 'odd'
where e.message_citation_id = s.id;

select is(
  (citeledger.compute_and_record_gate(pg_temp.id(o.n))).gate_status,
  'flagged',
  format('one that passes beside %s: flagged', o.status)
)
from odd as o
order by o.n;
select is(
  pg_temp.said(o.n),
  'flagged 1/0/0 of 1, 1 unrecognized, confidence 0.8',
  format('%s counts in no tier, in no total and in no mean, but is counted', o.status)
)
from odd as o
order by o.n;

-- Alone: not a vacuous pass.
delete from citeledger.message_citations
where message_id = pg_temp.id(1) and source_text = 'good';
select is(
  pg_temp.said(1),
  'flagged 0/0/0 of 0, 1 unrecognized, confidence none',
  'alone it flags the turn too'
);

-- Several, of all sorts, and one that is merely supported.
update citeledger.citation_ledger_entry
set verification_status = case when confidence = 0.8 then 'ensemble_strict' else 'maybe' end
where message_id = pg_temp.id(8);
select citeledger.compute_and_record_gate(pg_temp.id(8));
select is(
  pg_temp.said(8),
  'flagged 0/1/0 of 1, 1 unrecognized, confidence 0.8',
  'it flags a turn that would be supported_only'
);
update citeledger.citation_ledger_entry
set verification_status = case when confidence = 0.8 then 'error' else 'maybe' end
where message_id = pg_temp.id(9);
select citeledger.compute_and_record_gate(pg_temp.id(9));
select is(
  pg_temp.said(9),
  'flagged 0/0/0 of 0, 2 unrecognized, confidence none',
  'two of them are two'
);
select is(
  (
    select g.pass_count + g.supported_count + g.fail_count + g.unrecognized_count
    from citeledger.work_product_fiduciary_gate as g
    where g.message_id = pg_temp.id(9)
  ),
  (
    select count(*)::integer
    from citeledger.citation_ledger_entry as e
    where e.message_id = pg_temp.id(9)
  ),
  'no citation disappears: the counts are as many as the citations'
);

-- A trace shows it, with no tier.
select is(
  jsonb_path_query_array(
    citeledger.ledger_trace('00000000-0000-4000-8000-0000000000c1', pg_temp.id(9)),
    '$.entries[*].tier'
  ),
  '[null, null]'::jsonb,
  'a trace shows such entries without a tier'
);

-- The sources are still good, so finalizing mends the ledger, and the verdict.
select is(
  citeledger.finalize_turn(pg_temp.id(9)) #>> '{gate,gate_status}',
  'fiduciary_grade',
  'finalizing refreshes the entries from their sources'
);
select is(
  (
    select string_agg(r.verification_status, ', ' order by r.verification_status collate "C")
    from citeledger.citation_ledger_entry_revision as r
    where r.message_id = pg_temp.id(9)
      and r.verification_status in ('error', 'maybe')
  ),
  'error, maybe',
  'the odd statuses stay as revisions'
);
select throws_ok(
  $$update citeledger.citation_ledger_entry set verification_status = null$$,
  '23502',
  null,
  'a status cannot be null, and so cannot vanish from a count'
);

select * from finish();

rollback;
