-- graph_gc: entities without evidence are swept, those with evidence stay, a dry run changes
-- nothing. What vanished with the triggers off is in the tests that may turn them off.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(16);

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
select citeledger.set_context(current_setting('test.b')::uuid);
insert into citeledger.kg_entities (name, entity_type) values ('Theirs', 'concept');
select citeledger.set_context(current_setting('test.a')::uuid, null, array['matters:read']);
insert into citeledger.documents (id, title, doi)
values
  ('00000000-0000-4000-8000-0000000000d1', 'A', '10.1000/a'),
  ('00000000-0000-4000-8000-0000000000d2', 'B', '10.1000/b');
select citeledger.record_references('00000000-0000-4000-8000-0000000000d1', '{10.1000/b}');
insert into citeledger.chunks (id, document_id, chunk_index, content)
values
  ('00000000-0000-4000-8000-00000000c001', '00000000-0000-4000-8000-0000000000d1', 0, 'a'),
  ('00000000-0000-4000-8000-00000000c002', '00000000-0000-4000-8000-0000000000d2', 0, 'b');
insert into citeledger.kg_relation_types (relation_type) values ('governs');
insert into citeledger.kg_entities (id, name, entity_type)
values
  ('00000000-0000-4000-8000-00000000e001', 'Rent', 'concept'),
  ('00000000-0000-4000-8000-00000000e002', 'Lease', 'concept'),
  ('00000000-0000-4000-8000-00000000e003', 'Bare', 'concept'),
  ('00000000-0000-4000-8000-00000000e004', 'Related only', 'concept');
insert into citeledger.kg_entity_mentions (entity_id, chunk_id)
values
  ('00000000-0000-4000-8000-00000000e001', '00000000-0000-4000-8000-00000000c001'),
  ('00000000-0000-4000-8000-00000000e001', '00000000-0000-4000-8000-00000000c002'),
  ('00000000-0000-4000-8000-00000000e002', '00000000-0000-4000-8000-00000000c002');
insert into citeledger.kg_relationships (
  source_entity_id, target_entity_id, relation_type, chunk_id, evidence
)
values
  ('00000000-0000-4000-8000-00000000e001', '00000000-0000-4000-8000-00000000e002', 'governs',
    '00000000-0000-4000-8000-00000000c001', 'q'),
  ('00000000-0000-4000-8000-00000000e001', '00000000-0000-4000-8000-00000000e004', 'governs',
    '00000000-0000-4000-8000-00000000c001', 'q');
create temporary view names as
select string_agg(e.name, ', ' order by e.name) as names from citeledger.kg_entities as e;

select is(
  citeledger.graph_gc() - '{entities}'::text[],
  '{"citations": 0, "mentions": 0, "relationships": 0, "dry_run": true}'::jsonb,
  'by default a dry run; nothing hangs in the air'
);
select is((citeledger.graph_gc() ->> 'entities')::integer, 2, 'two entities have no evidence');
select is(citeledger.graph_gc(null), citeledger.graph_gc(true), 'null is a dry run too');
select is((select names from names), 'Bare, Lease, Related only, Rent', 'a dry run sweeps nothing');
select is(
  citeledger.graph_gc(false),
  citeledger.graph_gc(true) || '{"entities": 2, "dry_run": false}',
  'what a dry run counts is what is swept'
);
select is((select names from names), 'Lease, Rent', 'those with evidence stay');
select is(
  (select count(*) from citeledger.kg_relationships), 1::bigint,
  'a relationship of a swept entity goes with it'
);
select is((select count(*) from citeledger.document_citations), 1::bigint, 'edges stay');
select is((citeledger.graph_gc(false) ->> 'entities')::integer, 0, 'again there is nothing');

-- A document goes: its entities lose this evidence, and some of them all.
select citeledger.corpus_delete(array['00000000-0000-4000-8000-0000000000d2']::uuid[]);
select is((select names from names), 'Lease, Rent', 'a delete leaves the entities');
select is((citeledger.graph_gc(false) ->> 'entities')::integer, 1, 'the collector takes one');
select is((select names from names), 'Rent', 'which has no evidence left');
select citeledger.set_context(current_setting('test.b')::uuid);
select is((select names from names), 'Theirs', 'another firm''s are not looked at');

select * from finish();

rollback;
