-- Every CHECK and unique key of the tables that functions alone write to, each violated by itself:
-- what no role may try, the owner tries here. A verdict that contradicts its counts, an entry of no
-- source or of two, and content in a metadata column cannot be stored by anybody. It drops a CHECK
-- for the moment and so locks its table until it is rolled back: run it alone, on a quiet database.
--
-- Needs a login that may SET ROLE to citeledger_owner (the deployer), no superuser and not exempt
-- from row security. Row security is forced, so the owner too sees the firm of its context alone.
-- All is rolled back.

begin;

select plan(89);

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

select set_config('test.firm', citeledger.create_firm('Checks LLP')::text, true);
select citeledger.set_context(current_setting('test.firm')::uuid);
insert into citeledger.projects (id, matter_number, name)
values ('00000000-0000-4000-8000-0000000000f1', 'M-1', 'Matter');
insert into citeledger.chats (id) values ('00000000-0000-4000-8000-0000000000c1');
insert into citeledger.messages (id, chat_id, role)
values
  ('00000000-0000-4000-8000-0000000000e1', '00000000-0000-4000-8000-0000000000c1', 'assistant'),
  ('00000000-0000-4000-8000-0000000000e2', '00000000-0000-4000-8000-0000000000c1', 'assistant');
insert into citeledger.message_citations (id, message_id, source_text)
values ('00000000-0000-4000-8000-00000000a001', '00000000-0000-4000-8000-0000000000e1', 'quote');
insert into citeledger.message_caselaw_citations (
  id, message_id, opinion_id, cluster_id, source_text
)
values (
  '00000000-0000-4000-8000-00000000b001', '00000000-0000-4000-8000-0000000000e1', 1, 1, 'holding'
);
insert into citeledger.message_tool_sources (id, message_id, source_kind, label)
values ('00000000-0000-4000-8000-00000000d001', '00000000-0000-4000-8000-0000000000e1', 'web', 'x');

-- Inserts a row that is good but for what p_change says: a JSON object of columns.
create function pg_temp.entry(p_change jsonb)
returns void
language sql
as $$
  insert into citeledger.citation_ledger_entry
  select (jsonb_populate_record(
    null::citeledger.citation_ledger_entry,
    jsonb_build_object(
      'firm_id', current_setting('test.firm'),
      'id', gen_random_uuid(),
      'chat_id', '00000000-0000-4000-8000-0000000000c1',
      'message_id', '00000000-0000-4000-8000-0000000000e1',
      'source_kind', 'kb_document',
      'message_citation_id', '00000000-0000-4000-8000-00000000a001',
      'verification_status', 'exact_match',
      'created_at', now()
    ) || p_change
  )).*
$$;
create function pg_temp.gate(p_change jsonb)
returns void
language sql
as $$
  insert into citeledger.work_product_fiduciary_gate
  select (jsonb_populate_record(
    null::citeledger.work_product_fiduciary_gate,
    jsonb_build_object(
      'firm_id', current_setting('test.firm'),
      'id', gen_random_uuid(),
      'message_id', '00000000-0000-4000-8000-0000000000e2',
      'chat_id', '00000000-0000-4000-8000-0000000000c1',
      'gate_status', 'fiduciary_grade',
      'pass_count', 0,
      'supported_count', 0,
      'fail_count', 0,
      'total_assertions', 0,
      'unrecognized_count', 0,
      'computed_at', now(),
      'created_at', now()
    ) || p_change
  )).*
$$;
create function pg_temp.revision(p_change jsonb)
returns void
language sql
as $$
  insert into citeledger.citation_ledger_entry_revision
  select (jsonb_populate_record(
    null::citeledger.citation_ledger_entry_revision,
    jsonb_build_object(
      'firm_id', current_setting('test.firm'),
      'id', gen_random_uuid(),
      'message_id', '00000000-0000-4000-8000-0000000000e1',
      'entry_id', gen_random_uuid(),
      'source_kind', 'kb_document',
      'verification_status', 'exact_match',
      'superseded_at', now(),
      'created_at', now()
    ) || p_change
  )).*
$$;
create function pg_temp.failure(p_change jsonb)
returns void
language sql
as $$
  insert into citeledger.finalize_failure
  select (jsonb_populate_record(
    null::citeledger.finalize_failure,
    jsonb_build_object(
      'firm_id', current_setting('test.firm'),
      'id', gen_random_uuid(),
      'message_id', '00000000-0000-4000-8000-0000000000e1',
      'stage', 'gate',
      'sqlstate', 'XX000',
      'failed_at', now(),
      'created_at', now()
    ) || p_change
  )).*
$$;

create temporary table violation (kind text, name text, change jsonb);
-- Exactly one source: none, two in each pairing, three.
insert into violation
values
  ('entry', 'has_one_source', '{"message_citation_id": null}'),
  ('entry', 'has_one_source', '{"message_tool_source_id": "00000000-0000-4000-8000-00000000d001",
    "verification_status": "provenance"}'),
  ('entry', 'has_one_source', '{"message_citation_id": null, "source_kind": "caselaw",
    "message_caselaw_citation_id": "00000000-0000-4000-8000-00000000b001",
    "message_tool_source_id": "00000000-0000-4000-8000-00000000d001",
    "verification_status": "provenance"}'),
  -- Two citations, and all three: the CHECKs on the kind come first by their names.
  ('entry', 'caselaw_citation_is_caselaw', '{"message_caselaw_citation_id":
    "00000000-0000-4000-8000-00000000b001"}'),
  ('entry', 'caselaw_citation_is_caselaw', '{"verification_status": "provenance",
    "message_caselaw_citation_id": "00000000-0000-4000-8000-00000000b001",
    "message_tool_source_id": "00000000-0000-4000-8000-00000000d001"}'),
  ('entry', 'provenance_is_a_tool_source', '{"verification_status": "provenance"}'),
  ('entry', 'provenance_is_a_tool_source', '{"message_citation_id": null, "source_kind": "web",
    "message_tool_source_id": "00000000-0000-4000-8000-00000000d001",
    "verification_status": "exact_match"}'),
  ('entry', 'provenance_is_a_tool_source', '{"message_citation_id": null, "source_kind": "caselaw",
    "message_caselaw_citation_id": "00000000-0000-4000-8000-00000000b001",
    "verification_status": "provenance"}'),
  ('entry', 'citation_is_kb_document', '{"source_kind": "caselaw"}'),
  ('entry', 'citation_is_kb_document', '{"source_kind": "web"}'),
  ('entry', 'caselaw_citation_is_caselaw', '{"message_citation_id": null,
    "message_caselaw_citation_id": "00000000-0000-4000-8000-00000000b001"}'),
  ('entry', 'confidence_is_a_share', '{"confidence": -0.001}'),
  ('entry', 'confidence_is_a_share', '{"confidence": 1.001}'),
  ('entry', 'confidence_is_a_share', '{"confidence": "NaN"}'),
  ('entry', 'confidence_is_a_share', '{"confidence": "Infinity"}'),
  ('entry', 'source_kind_is_label', '{"message_citation_id": null, "source_kind": "Web page",
    "message_tool_source_id": "00000000-0000-4000-8000-00000000d001",
    "verification_status": "provenance"}'),
  ('entry', 'verification_status_is_label', '{"verification_status": "PASS"}'),
  ('entry', 'verification_status_is_label', '{"verification_status": " pass"}'),
  ('entry', 'verification_status_is_label', '{"verification_status": ""}'),
  ('entry', 'verification_status_is_label', '{"verification_status": "PARTIALLY_SUPPORTED"}'),
  ('entry', 'verification_status_is_label', '{"verification_status": "not pass"}'),
  ('entry', 'verification_status_is_label', '{"verification_status":
    "a_label_of_thirty_three_character"}'),
  ('entry', 'provider_is_name', '{"provider": "He said: the rent is due"}'),
  ('entry', 'provider_is_name', '{"provider": ""}'),
  ('entry', 'treatment_is_reserved', '{"treatment_id": "00000000-0000-4000-8000-0000000000aa"}'),
  -- The gate: what the counts say, and nothing else.
  ('gate', 'counts_are_not_negative', '{"pass_count": -1, "total_assertions": -1}'),
  ('gate', 'counts_are_not_negative', '{"supported_count": -1, "total_assertions": -1}'),
  ('gate', 'counts_are_not_negative', '{"fail_count": -1, "total_assertions": -1}'),
  ('gate', 'counts_are_not_negative', '{"unrecognized_count": -1}'),
  ('gate', 'total_is_the_sum', '{"total_assertions": 1}'),
  ('gate', 'total_is_the_sum', '{"pass_count": 1}'),
  ('gate', 'total_is_the_sum', '{"pass_count": 2, "total_assertions": 1}'),
  ('gate', 'total_is_the_sum', '{"gate_status": "supported_only", "supported_count": 1}'),
  ('gate', 'total_is_the_sum', '{"gate_status": "flagged", "fail_count": 1}'),
  ('gate', 'total_is_the_sum', '{"gate_status": "flagged", "unrecognized_count": 1,
    "total_assertions": 1}'),
  ('gate', 'status_is_what_counts_say', '{"fail_count": 1, "total_assertions": 1}'),
  ('gate', 'status_is_what_counts_say', '{"pass_count": 9, "fail_count": 1,
    "total_assertions": 10}'),
  ('gate', 'status_is_what_counts_say', '{"unrecognized_count": 1}'),
  ('gate', 'status_is_what_counts_say', '{"supported_count": 1, "total_assertions": 1}'),
  ('gate', 'status_is_what_counts_say', '{"gate_status": "supported_only"}'),
  ('gate', 'status_is_what_counts_say', '{"gate_status": "supported_only", "pass_count": 1,
    "total_assertions": 1}'),
  ('gate', 'status_is_what_counts_say', '{"gate_status": "supported_only", "supported_count": 1,
    "fail_count": 1, "total_assertions": 2}'),
  ('gate', 'status_is_what_counts_say', '{"gate_status": "supported_only", "supported_count": 1,
    "unrecognized_count": 1, "total_assertions": 1}'),
  ('gate', 'status_is_what_counts_say', '{"gate_status": "flagged"}'),
  ('gate', 'status_is_what_counts_say', '{"gate_status": "flagged", "pass_count": 1,
    "total_assertions": 1}'),
  ('gate', 'status_is_what_counts_say', '{"gate_status": "flagged", "supported_count": 1,
    "total_assertions": 1}'),
  ('gate', 'status_is_what_counts_say', '{"gate_status": "pending"}'),
  ('gate', 'confidence_is_a_share', '{"confidence": -0.001}'),
  ('gate', 'confidence_is_a_share', '{"confidence": 1.001}'),
  ('gate', 'confidence_is_a_share', '{"confidence": "NaN"}'),
  ('revision', 'source_kind_is_label', '{"source_kind": "The rent is due"}'),
  ('revision', 'source_kind_is_label', '{"source_kind": ""}'),
  ('revision', 'status_is_label', '{"verification_status": "The rent is due"}'),
  ('revision', 'status_is_label', '{"verification_status": ""}'),
  ('revision', 'provider_is_name', '{"provider": "The rent is due"}'),
  ('failure', 'stage_is_label', '{"stage": "It failed because of X"}'),
  ('failure', 'stage_is_label', '{"stage": ""}'),
  ('failure', 'sqlstate_is_code', '{"sqlstate": "xx000"}'),
  ('failure', 'sqlstate_is_code', '{"sqlstate": "XX00"}'),
  ('failure', 'sqlstate_is_code', '{"sqlstate": "XX0000"}'),
  ('failure', 'sqlstate_is_code', '{"sqlstate": ""}');
create temporary table target (kind text, table_name text);
insert into target
values
  ('entry', 'citation_ledger_entry'),
  ('gate', 'work_product_fiduciary_gate'),
  ('revision', 'citation_ledger_entry_revision'),
  ('failure', 'finalize_failure');

select throws_ok(
  format('select pg_temp.%s(%L)', v.kind, v.change),
  '23514',
  format(
    'new row for relation "%s" violates check constraint "%s_%s"',
    t.table_name, t.table_name, v.name
  ),
  format('%s_%s refuses %s', t.table_name, v.name, regexp_replace(v.change::text, '\s+', ' ', 'g'))
)
from violation as v
join target as t on t.kind = v.kind;

-- The label of the gate's status is implied by what the counts say; alone, it still holds.
alter table citeledger.work_product_fiduciary_gate
  drop constraint work_product_fiduciary_gate_status_is_what_counts_say;
select throws_ok(
  $$select pg_temp.gate('{"gate_status": "The rent is due"}')$$,
  '23514',
  'new row for relation "work_product_fiduciary_gate" violates check constraint '
  '"work_product_fiduciary_gate_status_is_label"',
  'work_product_fiduciary_gate_status_is_label refuses words by itself'
);

-- No CHECK of these tables, or of any other, is left without a violation above or in ledger/.
insert into violation (kind, name)
values ('gate', 'status_is_label'), ('gate', 'status_is_what_counts_say');
select set_eq(
  $$select k.conname::text
    from pg_constraint as k
    join target as t on k.conrelid = ('citeledger.' || t.table_name)::regclass
    where k.contype = 'c'
    union
    select 'work_product_fiduciary_gate_status_is_what_counts_say'$$,
  $$select distinct t.table_name || '_' || v.name
    from violation as v
    join target as t on t.kind = v.kind$$,
  'every CHECK of these tables was violated'
);

-- firms: create_firm looks first, the table holds all the same.
select throws_ok(
  format('insert into citeledger.firms (name) values (%L)', c.name),
  '23514',
  'new row for relation "firms" violates check constraint "firms_name_is_not_blank"',
  format('firms_name_is_not_blank refuses %s', c.why)
)
from (
  values ('', 'an empty name'), (E' \t', 'a blank name'), (repeat('x', 201), 'a long name')
) as c (name, why);
select throws_ok(
  format(
    'insert into citeledger.firms (id, name) values (%L, ''x'')', current_setting('test.firm')
  ),
  '23505',
  'duplicate key value violates unique constraint "firms_pkey"',
  'firms_pkey refuses a repeat'
);

-- What is good is taken, and its keys refuse a repeat.
select lives_ok(
  format('select pg_temp.%s(%L)', c.kind, c.change),
  format('good: %s %s', c.kind, regexp_replace(c.change, '\s+', ' ', 'g'))
)
from (
  values
    ('entry', '{"id": "00000000-0000-4000-8000-000000000001", "confidence": 1}'),
    ('entry', '{"message_citation_id": null, "source_kind": "caselaw", "confidence": 0,
      "message_caselaw_citation_id": "00000000-0000-4000-8000-00000000b001"}'),
    ('entry', '{"message_citation_id": null, "source_kind": "a_kind_1", "provider": "A.b:c-d_1",
      "message_tool_source_id": "00000000-0000-4000-8000-00000000d001",
      "verification_status": "provenance"}'),
    ('gate', '{"id": "00000000-0000-4000-8000-000000000001", "confidence": 0.5}'),
    ('revision', '{"id": "00000000-0000-4000-8000-000000000001"}'),
    ('failure', '{"id": "00000000-0000-4000-8000-000000000001"}')
) as c (kind, change);
select throws_ok(
  format('select pg_temp.%s(%L)', c.kind, c.change),
  '23505',
  format('duplicate key value violates unique constraint "%s"', c.name),
  format('%s refuses a repeat', c.name)
)
from (
  values
    ('entry', 'citation_ledger_entry_pkey', '{"id": "00000000-0000-4000-8000-000000000001"}'),
    ('entry', 'citation_ledger_entry_citation_key', '{}'),
    ('entry', 'citation_ledger_entry_caselaw_citation_key', '{"message_citation_id": null,
      "source_kind": "caselaw",
      "message_caselaw_citation_id": "00000000-0000-4000-8000-00000000b001"}'),
    ('entry', 'citation_ledger_entry_tool_source_key', '{"message_citation_id": null,
      "source_kind": "web", "verification_status": "provenance",
      "message_tool_source_id": "00000000-0000-4000-8000-00000000d001"}'),
    ('gate', 'work_product_fiduciary_gate_pkey', '{"id": "00000000-0000-4000-8000-000000000001",
      "message_id": "00000000-0000-4000-8000-0000000000e1"}'),
    ('gate', 'work_product_fiduciary_gate_message_key', '{}'),
    ('revision', 'citation_ledger_entry_revision_pkey',
      '{"id": "00000000-0000-4000-8000-000000000001"}'),
    ('failure', 'finalize_failure_pkey', '{"id": "00000000-0000-4000-8000-000000000001"}')
) as c (kind, name, change);

-- A source that goes takes its entry along: no key is ever nulled, so no CHECK stands in the way.
select lives_ok(
  'delete from citeledger.message_citations',
  'a citation with an entry can be deleted'
);
select lives_ok(
  'delete from citeledger.message_caselaw_citations',
  'an opinion''s citation with an entry can be deleted'
);
select lives_ok(
  'delete from citeledger.message_tool_sources',
  'a tool source with an entry can be deleted'
);
select is_empty('select from citeledger.citation_ledger_entry', 'the entries went with them');

select * from finish();

rollback;
