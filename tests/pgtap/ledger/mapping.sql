-- What the ledger says of a source: the mapping, whole. Every method, verified and not, in both
-- tables of citations, and tool sources of several kinds.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(41);

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
select set_config('test.firm', citeledger.create_firm('Mapping LLP')::text, true);
select citeledger.set_context(current_setting('test.firm')::uuid);
insert into citeledger.projects (id, matter_number, name)
values ('00000000-0000-4000-8000-0000000000f1', 'M-1', 'Matter');

set local role citeledger_app;
insert into citeledger.chats (id, project_id)
values
  ('00000000-0000-4000-8000-0000000000c1', '00000000-0000-4000-8000-0000000000f1'),
  ('00000000-0000-4000-8000-0000000000c2', null);
insert into citeledger.messages (id, chat_id, role)
values
  ('00000000-0000-4000-8000-0000000000e1', '00000000-0000-4000-8000-0000000000c1', 'assistant'),
  ('00000000-0000-4000-8000-0000000000e2', '00000000-0000-4000-8000-0000000000c2', 'assistant');

-- One row for each combination: what is given, and what the ledger must say of it.
create temporary table given (
  n integer,
  verified boolean,
  method text,
  confidence numeric(3,2),
  status text,
  ledger_confidence double precision
);
insert into given
values
  (1, true, 'exact_match', 1.00, 'exact_match', 1),
  (2, true, 'tolerant_match', 0.87, 'tolerant_match', 0.87),
  (3, true, 'paraphrase_judge', 0.50, 'paraphrase_judge', 0.5),
  (4, true, 'ensemble_strict', 0.01, 'ensemble_strict', 0.01),
  (5, true, 'ensemble_majority', 0.00, 'ensemble_majority', 0),
  (6, true, 'failed', 0.90, 'failed', 0.9),
  (7, true, 'exact_match', null, 'exact_match', null),
  (8, false, 'exact_match', 1.00, 'unverified', null),
  (9, false, 'tolerant_match', 0.87, 'unverified', null),
  (10, false, 'paraphrase_judge', 0.50, 'unverified', null),
  (11, false, 'ensemble_strict', 0.01, 'unverified', null),
  (12, false, 'ensemble_majority', 0.00, 'unverified', null),
  (13, false, 'failed', 0.90, 'unverified', null),
  (14, false, null, 0.40, 'unverified', null),
  (15, false, null, null, 'unverified', null);

insert into citeledger.message_citations (
  id, message_id, source_text, verified, verification_method, verification_confidence, created_at
)
select
  ('00000000-0000-4000-8000-00000000a0' || lpad(g.n::text, 2, '0'))::uuid,
  '00000000-0000-4000-8000-0000000000e1', 'quote', g.verified, g.method, g.confidence,
  timestamptz '2024-05-01 12:00:00+00' + g.n * interval '1 minute'
from given as g;
insert into citeledger.message_caselaw_citations (
  id, message_id, opinion_id, cluster_id, source_text, partial,
  verified, verification_method, verification_confidence, created_at
)
select
  ('00000000-0000-4000-8000-00000000b0' || lpad(g.n::text, 2, '0'))::uuid,
  '00000000-0000-4000-8000-0000000000e1', g.n, 9000000000 + g.n, 'holding', g.n % 2 = 0,
  g.verified, g.method, g.confidence,
  timestamptz '2024-06-01 12:00:00+00' + g.n * interval '1 minute'
from given as g;
insert into citeledger.message_tool_sources (
  id, message_id, source_kind, label, provider, created_at
)
values
  ('00000000-0000-4000-8000-00000000d001', '00000000-0000-4000-8000-0000000000e1',
    'web_search', 'A page', 'a-search.example', '2024-07-01 12:01:00+00'),
  ('00000000-0000-4000-8000-00000000d002', '00000000-0000-4000-8000-0000000000e1',
    'publication', 'A paper', null, '2024-07-01 12:02:00+00'),
  -- A tool may bring what has the name of another kind: it is provenance all the same.
  ('00000000-0000-4000-8000-00000000d003', '00000000-0000-4000-8000-0000000000e1',
    'caselaw', 'An opinion', 'courtlistener', '2024-07-01 12:03:00+00'),
  ('00000000-0000-4000-8000-00000000d004', '00000000-0000-4000-8000-0000000000e1',
    'kb_document', 'A document', 'local', '2024-07-01 12:04:00+00');
-- The other turn, in a chat without a matter.
insert into citeledger.message_tool_sources (id, message_id, source_kind, label)
values ('00000000-0000-4000-8000-00000000d005', '00000000-0000-4000-8000-0000000000e2',
  'web_search', 'A page');

select is(
  citeledger.assemble_ledger_entries('00000000-0000-4000-8000-0000000000e1'),
  34,
  'every source gets an entry'
);
select is(
  citeledger.assemble_ledger_entries('00000000-0000-4000-8000-0000000000e2'),
  1,
  'the source of the other turn gets an entry'
);

select results_eq(
  $$select e.source_kind, e.verification_status, e.confidence, e.provider, e.retrieved_at,
      e.message_caselaw_citation_id, e.message_tool_source_id
    from citeledger.citation_ledger_entry as e
    where e.message_citation_id
      = ('00000000-0000-4000-8000-00000000a0' || lpad($$ || g.n || $$::text, 2, '0'))::uuid$$,
  format(
    'select %L::text, %L::text, %L::double precision, null::text, null::timestamptz, null::uuid, '
    'null::uuid',
    'kb_document', g.status, g.ledger_confidence
  ),
  format(
    'own document, verified %s by %s with %s: %s',
    g.verified, coalesce(g.method, 'nobody'), coalesce(g.confidence::text, 'no confidence'),
    g.status
  )
)
from given as g
order by g.n;
select results_eq(
  $$select e.source_kind, e.verification_status, e.confidence, e.provider, e.retrieved_at,
      e.message_citation_id, e.message_tool_source_id
    from citeledger.citation_ledger_entry as e
    where e.message_caselaw_citation_id
      = ('00000000-0000-4000-8000-00000000b0' || lpad($$ || g.n || $$::text, 2, '0'))::uuid$$,
  format(
    'select %L::text, %L::text, %L::double precision, %L::text, %L::timestamptz, null::uuid, '
    'null::uuid',
    'caselaw', g.status, g.ledger_confidence, 'courtlistener',
    timestamptz '2024-06-01 12:00:00+00' + g.n * interval '1 minute'
  ),
  format(
    'opinion, verified %s by %s with %s: %s',
    g.verified, coalesce(g.method, 'nobody'), coalesce(g.confidence::text, 'no confidence'),
    g.status
  )
)
from given as g
order by g.n;
select results_eq(
  $$select right(e.message_tool_source_id::text, 4), e.source_kind, e.verification_status,
      e.confidence, e.provider, e.retrieved_at, e.message_citation_id,
      e.message_caselaw_citation_id
    from citeledger.citation_ledger_entry as e
    where e.message_tool_source_id is not null
      and e.message_id = '00000000-0000-4000-8000-0000000000e1'
    order by 1$$,
  $$values
    ('d001', 'web_search', 'provenance', null::double precision, 'a-search.example',
      timestamptz '2024-07-01 12:01:00+00', null::uuid, null::uuid),
    ('d002', 'publication', 'provenance', null, null, '2024-07-01 12:02:00+00', null, null),
    ('d003', 'caselaw', 'provenance', null, 'courtlistener', '2024-07-01 12:03:00+00', null, null),
    ('d004', 'kb_document', 'provenance', null, 'local', '2024-07-01 12:04:00+00', null, null)$$,
  'tool sources are provenance, with their own kind, provider and time'
);

-- What does not come from the source.
select results_eq(
  $$select distinct e.firm_id::text, e.chat_id::text, e.message_id::text, e.project_id::text,
      e.treatment_id::text
    from citeledger.citation_ledger_entry as e
    order by 3$$,
  format(
    $$values
      (%L, '00000000-0000-4000-8000-0000000000c1', '00000000-0000-4000-8000-0000000000e1',
        '00000000-0000-4000-8000-0000000000f1', null),
      (%L, '00000000-0000-4000-8000-0000000000c2', '00000000-0000-4000-8000-0000000000e2',
        null, null)$$,
    current_setting('test.firm'), current_setting('test.firm')
  ),
  'chat and matter are the turn''s; the treatment is reserved'
);
select is(
  (select count(distinct e.id) from citeledger.citation_ledger_entry as e),
  35::bigint,
  'every entry has an id of its own'
);
select is_empty(
  'select from citeledger.citation_ledger_entry_revision',
  'what was written new has no revision'
);

-- The triggers of a finalized turn map alike.
insert into citeledger.messages (id, chat_id, role, finalized_at)
values (
  '00000000-0000-4000-8000-0000000000e3', '00000000-0000-4000-8000-0000000000c2', 'assistant', now()
);
insert into citeledger.message_citations (
  message_id, source_text, verified, verification_method, verification_confidence
)
select
  '00000000-0000-4000-8000-0000000000e3', g.n::text, g.verified, g.method, g.confidence
from given as g;
insert into citeledger.message_caselaw_citations (
  message_id, opinion_id, cluster_id, source_text, verified, verification_method,
  verification_confidence
)
select
  '00000000-0000-4000-8000-0000000000e3', g.n, g.n, 'holding', g.verified, g.method, g.confidence
from given as g;
select results_eq(
  $$select s.source_text::integer, e.source_kind, e.verification_status, e.confidence
    from citeledger.citation_ledger_entry as e
    join citeledger.message_citations as s on s.id = e.message_citation_id
    where e.message_id = '00000000-0000-4000-8000-0000000000e3'
    order by 1$$,
  $$select g.n, 'kb_document', g.status, g.ledger_confidence from given as g order by 1$$,
  'late citations of own documents are mapped alike'
);
select results_eq(
  $$select s.opinion_id::integer, e.source_kind, e.verification_status, e.confidence, e.provider,
      e.retrieved_at = s.created_at
    from citeledger.citation_ledger_entry as e
    join citeledger.message_caselaw_citations as s on s.id = e.message_caselaw_citation_id
    where e.message_id = '00000000-0000-4000-8000-0000000000e3'
    order by 1$$,
  $$select g.n, 'caselaw', g.status, g.ledger_confidence, 'courtlistener', true
    from given as g
    order by 1$$,
  'late citations of opinions are mapped alike'
);

select * from finish();

rollback;
