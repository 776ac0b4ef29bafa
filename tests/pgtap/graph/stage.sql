-- graph_stage: the concept walk, citations as its expansion, and the scope before
-- anything is ranked.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(69);

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
select citeledger.set_context(current_setting('test.a')::uuid, null, array['matters:read']);
set local role citeledger_app;
create function pg_temp.doc(p_title text)
returns uuid
language sql
stable
as $$
  select d.id from citeledger.documents as d where d.title = p_title
$$;
-- What the stage returns, as "chunk hop via", in its own order.
create function pg_temp.stage(
  p_names text[],
  p_hops integer default 2,
  p_citations boolean default false,
  p_scope jsonb default '{}',
  p_limit integer default 20
)
returns text
language sql
stable
as $$
  select coalesce(
    string_agg(
      c.content || ' ' || s.hop || case s.via when 'citation' then 'c' else '' end, ', '
      order by s.place
    ),
    ''
  )
  from citeledger.graph_stage(p_names, p_hops, p_citations, p_scope, p_limit)
    with ordinality as s (chunk_id, hop, via, place)
  left join citeledger.chunks as c on c.id = s.chunk_id
$$;

-- Ids in the order of the titles, for the order of documents is that of their ids.
insert into citeledger.documents (id, title, doi, license_class, source, publication_year)
values
  ('00000000-0000-4000-8000-0000000000d1', 'A', '10.1000/a', 'open', 'crossref', 2001),
  ('00000000-0000-4000-8000-0000000000d2', 'B', '10.1000/b', 'open', 'local', 2002),
  ('00000000-0000-4000-8000-0000000000d3', 'C', '10.1000/c', 'closed', 'local', 2003),
  ('00000000-0000-4000-8000-0000000000d4', 'D', '10.1000/d', 'unknown', 'local', null),
  ('00000000-0000-4000-8000-0000000000d5', 'E', '10.1000/e', 'unknown', 'local', null);
insert into citeledger.chunks (document_id, chunk_index, content)
select d.id, n, lower(d.title) || n
from citeledger.documents as d
cross join generate_series(0, 1) as n;
insert into citeledger.kg_relation_types (relation_type) values ('governs');
insert into citeledger.kg_entities (name, entity_type)
values ('Rent', 'concept'), ('Lease', 'concept'), ('Tenant', 'person'), ('Bare', 'concept');
create function pg_temp.entity(p_name text)
returns uuid
language sql
stable
as $$
  select e.id from citeledger.kg_entities as e where e.name = p_name
$$;
create function pg_temp.chunk(p_content text)
returns uuid
language sql
stable
as $$
  select c.id from citeledger.chunks as c where c.content = p_content
$$;
-- Rent - Lease (said in a0) - Tenant (said in b0). A cites D; E cites B.
insert into citeledger.kg_entity_mentions (entity_id, chunk_id)
values
  (pg_temp.entity('Rent'), pg_temp.chunk('a0')),
  (pg_temp.entity('Lease'), pg_temp.chunk('a0')),
  (pg_temp.entity('Lease'), pg_temp.chunk('b0')),
  (pg_temp.entity('Tenant'), pg_temp.chunk('b0')),
  (pg_temp.entity('Tenant'), pg_temp.chunk('c1'));
insert into citeledger.kg_relationships (
  source_entity_id, target_entity_id, relation_type, chunk_id, evidence
)
values
  (pg_temp.entity('Lease'), pg_temp.entity('Rent'), 'governs', pg_temp.chunk('a0'), 'a lease sets'),
  (pg_temp.entity('Lease'), pg_temp.entity('Tenant'), 'governs', pg_temp.chunk('b0'), 'binds');
select citeledger.record_references(pg_temp.doc('A'), '{10.1000/d}');
select citeledger.record_references(pg_temp.doc('E'), '{10.1000/b}');

-- The walk.
select is(pg_temp.stage(array['Rent'], 0), 'a0 0', 'hop 0: what mentions it');
select is(
  pg_temp.stage(array['Rent'], 1), 'a0 0, b0 1', 'one relationship on, in either direction'
);
select is(pg_temp.stage(array['Rent']), 'a0 0, b0 1, c1 2', 'two, which is the default');
select is(pg_temp.stage(array['Rent'], 1000000000), 'a0 0, b0 1, c1 2', 'to the end of the graph');
select is(pg_temp.stage(array['rENT', 'TENANT'], 0), 'a0 0, b0 0, c1 0', 'names in any case');
select is(pg_temp.stage(array['Tenant', 'Lease']), 'a0 0, b0 0, c1 0', 'a chunk once');
select is(pg_temp.stage(array['Bare', 'Nobody', null]), '', 'names without evidence');
select is(pg_temp.stage('{}'), '', 'no names');
select is(pg_temp.stage(null), '', 'null');

-- Citations.
select is(
  pg_temp.stage(array['Rent'], 1, true), 'a0 0, b0 1, d0 1c, d1 1c',
  'what a chunk''s document cites is one hop on, all of it, after the concepts of that hop'
);
select is(
  pg_temp.stage(array['Rent'], 2, true), 'a0 0, b0 1, d0 1c, d1 1c, c1 2, e0 2c, e1 2c',
  'and what cites it, within the hops'
);
select is(pg_temp.stage(array['Rent'], 0, true), 'a0 0', 'with hop 0 there is no way to go');
select is(
  pg_temp.stage(array['Tenant'], 1, true), 'b0 0, c1 0, a0 1, e0 1c, e1 1c',
  'one citation is one step, not a walk: D is two away'
);
select is(
  (select count(*) from citeledger.kg_entities), 4::bigint, 'no document has become an entity'
);
-- C cites A: what both ways lead to is there once.
select citeledger.record_references(pg_temp.doc('C'), '{10.1000/a}');
select is(
  pg_temp.stage(array['Rent'], 2, true), 'a0 0, b0 1, c0 1c, c1 1c, d0 1c, d1 1c, e0 2c, e1 2c',
  'a chunk that both lead to is there once, at its least hop'
);
select citeledger.record_references(pg_temp.doc('C'), '{}');

-- The scope.
select is(pg_temp.stage(array['Rent'], 2, true, s.scope), s.expected, s.scope::text)
from (
  values
    ('{"license_classes": ["open"]}'::jsonb, 'a0 0, b0 1'),
    ('{"license_classes": ["open", "closed"]}', 'a0 0, b0 1, c1 2'),
    ('{"license_classes": []}', ''),
    ('{"sources": ["local"]}', 'b0 1, c1 2, e0 2c, e1 2c'),
    ('{"sources": []}', ''),
    ('{"sources": ["nobody"]}', ''),
    ('{"year_min": 2002}', 'b0 1, c1 2'),
    ('{"year_max": 2002}', 'a0 0, b0 1'),
    ('{"year_min": 2002, "year_max": 2002}', 'b0 1'),
    ('{"year_min": 2003, "year_max": 2002}', ''),
    ('{"exclude_document_ids": []}', 'a0 0, b0 1, d0 1c, d1 1c, c1 2, e0 2c, e1 2c'),
    ('{"exclude_document_ids": ["00000000-0000-4000-8000-0000000000d4"]}',
      'a0 0, b0 1, c1 2, e0 2c, e1 2c'),
    ('{"exclude_document_ids": ["00000000-0000-4000-8000-0000000000D1",
      "00000000-0000-4000-8000-0000000000d5"]}', 'b0 1, c1 2'),
    ('{"sources": ["local"], "license_classes": ["closed"]}', 'c1 2')
) as s (scope, expected);

-- The limit comes last.
select is(pg_temp.stage(array['Rent'], 2, true, '{}', 3), 'a0 0, b0 1, d0 1c', 'the first of them');
select is(
  pg_temp.stage(
    array['Rent'], 2, true, '{"exclude_document_ids": ["00000000-0000-4000-8000-0000000000d1"]}', 2
  ),
  'b0 1, c1 2',
  'of those in the scope'
);

-- What is hidden.
update citeledger.documents set deleted_at = now() where title = 'D';
select is(
  pg_temp.stage(array['Rent'], 1, true), 'a0 0, b0 1', 'a document that is withdrawn is not there'
);
update citeledger.documents set deleted_at = case when title = 'B' then now() end
where title in ('B', 'D');
select is(
  pg_temp.stage(array['Rent'], 2), 'a0 0',
  'nor does a relationship lead on that only a withdrawn document speaks of'
);
update citeledger.documents set deleted_at = null;
insert into citeledger.projects (id, matter_number, name)
values ('00000000-0000-4000-8000-0000000000f1', 'M-1', 'Walled');
update citeledger.documents set project_id = '00000000-0000-4000-8000-0000000000f1'
where title = 'B';
select is(pg_temp.stage(array['Rent'], 2), 'a0 0, b0 1, c1 2', 'a matter without a wall');
set local role citeledger_admin;
insert into citeledger.project_members (project_id, user_id)
values ('00000000-0000-4000-8000-0000000000f1', '00000000-0000-4000-8000-000000000002');
set local role citeledger_app;
select is(pg_temp.stage(array['Rent'], 2), 'a0 0', 'nor one that is said behind a wall');
select is(
  pg_temp.stage(array['Tenant'], 0, true), 'c1 0', 'what is behind the wall is not there itself'
);
select citeledger.set_context(
  current_setting('test.a')::uuid, '00000000-0000-4000-8000-000000000002', array['matters:read']
);
select is(pg_temp.stage(array['Rent'], 2), 'a0 0, b0 1, c1 2', 'but for a member');

-- What is refused.
select throws_ok(
  format('select * from citeledger.graph_stage(array[''Rent''], 2, false, %L)', s.scope),
  '22023', 'the graph stage cannot be asked like this', 'a scope: ' || coalesce(s.scope, 'null')
)
from (
  values
    (null), ('null'), ('[]'), ('"open"'), ('{"license_class": ["open"]}'), ('{"Sources": []}'),
    ('{"sources": "local"}'), ('{"sources": null}'), ('{"sources": [1]}'),
    ('{"sources": [null]}'), ('{"license_classes": {}}'), ('{"license_classes": [["open"]]}'),
    ('{"year_min": "2001"}'), ('{"year_min": 2001.5}'), ('{"year_max": null}'),
    ('{"year_max": true}'), ('{"year_max": 3000000000}'), ('{"exclude_document_ids": "x"}'),
    ('{"exclude_document_ids": ["x"]}'), ('{"exclude_document_ids": [7]}'),
    ('{"exclude_document_ids": ["{00000000-0000-4000-8000-0000000000d1}"]}')
) as s (scope);
select throws_ok(
  format('select * from citeledger.graph_stage(array[''Rent''], %s)', a.arguments),
  '22023', 'the graph stage cannot be asked like this', 'arguments: ' || a.arguments
)
from (
  values
    ('-1'), ('null'), ('2, null'), ('2, false, ''{}'', 0'), ('2, false, ''{}'', -1'),
    ('2, false, ''{}'', null')
) as a (arguments);
select citeledger.set_context(current_setting('test.b')::uuid, null, array['matters:read']);
select is(pg_temp.stage(array['Rent'], 9, true), '', 'another firm finds nothing');
select citeledger.set_context(current_setting('test.a')::uuid);
set local role citeledger_reader;
select throws_ok(
  $$select * from citeledger.graph_stage(array['Rent'])$$, '42501', null, 'without the permission'
);

select * from finish();

rollback;
