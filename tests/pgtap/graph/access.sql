-- Who may do what with the graph: roles, permissions, other firms, and no way to write past the
-- functions.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(115);

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
insert into citeledger.documents (id, title, doi)
values
  ('00000000-0000-4000-8000-0000000000d1', 'A', '10.1000/a'),
  ('00000000-0000-4000-8000-0000000000d2', 'B', '10.1000/b');
select citeledger.record_references('00000000-0000-4000-8000-0000000000d1', '{10.1000/b}');
insert into citeledger.chunks (id, document_id, chunk_index, content)
values ('00000000-0000-4000-8000-00000000c001', '00000000-0000-4000-8000-0000000000d1', 0, 'a');
insert into citeledger.kg_relation_types (relation_type) values ('governs');
insert into citeledger.kg_entities (id, name, entity_type)
values ('00000000-0000-4000-8000-00000000e001', 'Rent', 'concept');
insert into citeledger.kg_entity_mentions (entity_id, chunk_id)
values ('00000000-0000-4000-8000-00000000e001', '00000000-0000-4000-8000-00000000c001');

-- The functions, each with the least of the roles that may call it.
create temporary table called (call text, least text);
grant select on called to public;
insert into called
values
  ('citeledger.normalize_doi(''https://doi.org/10.1000/%41'')', 'reader'),
  ('citeledger.get_citations(''00000000-0000-4000-8000-0000000000d1'')', 'reader'),
  ('citeledger.walk_citations(''{00000000-0000-4000-8000-0000000000d1}'')', 'reader'),
  ('citeledger.graph_stage(''{Rent}'', 1, true)', 'reader'),
  ('citeledger.record_references(''00000000-0000-4000-8000-0000000000d1'',
    ''{10.1000/b}'')', 'app'),
  ('citeledger.record_crossref_work(''00000000-0000-4000-8000-0000000000d1'',
    ''{"reference": [{"DOI": "10.1000/b"}]}'')', 'app'),
  ('citeledger.resolve_references()', 'admin'),
  ('citeledger.resolve_references(false)', 'admin'),
  ('citeledger.graph_gc()', 'admin'),
  ('citeledger.graph_gc(false)', 'admin'),
  ('citeledger.corpus_delete(''{}'')', 'admin');

set local role citeledger_reader;
select lives_ok('select ' || c.call, 'the reader: ' || split_part(c.call, '(', 1))
from called as c
where c.least = 'reader';
select throws_ok(
  'select ' || c.call, '42501', null, 'not the reader: ' || split_part(c.call, '(', 1)
)
from called as c
where c.least <> 'reader';
set local role citeledger_app;
select lives_ok('select ' || c.call, 'the app: ' || split_part(c.call, '(', 1))
from called as c
where c.least <> 'admin';
select throws_ok('select ' || c.call, '42501', null, 'not the app: ' || split_part(c.call, '(', 1))
from called as c
where c.least = 'admin';
set local role citeledger_admin;
select lives_ok('select ' || c.call, 'the admin: ' || split_part(c.call, '(', 1))
from called as c;
set local role citeledger_app;
select lives_ok(
  $$insert into citeledger.documents (title, doi)
    values ('C', 'https://doi.org/10.1000/%43'), ('D', 'DOI: 10.1000/d&lt;1&gt;2.')$$,
  'the app stores DOIs in every spelling'
);
select lives_ok(
  $$update citeledger.documents set doi = 'https://doi.org/10.1000/%43%43' where title = 'C'$$,
  'and changes them'
);

-- Nobody writes lists and edges but through the functions.
create temporary table forbidden (statement text);
grant select on forbidden to public;
insert into forbidden
select s.statement
from (
  values
    ('insert into citeledger.document_references (document_id, position, cited_doi, source)
      values (''00000000-0000-4000-8000-0000000000d1'', 9, ''10.1000/x'', ''crossref'')'),
    ('update citeledger.document_references set position = 2'),
    ('delete from citeledger.document_references'),
    ('truncate citeledger.document_references'),
    ('insert into citeledger.document_citations (
        citing_document_id, cited_document_id, cited_doi, source)
      values (''00000000-0000-4000-8000-0000000000d2'', ''00000000-0000-4000-8000-0000000000d1'',
        ''10.1000/x'', ''crossref'')'),
    ('update citeledger.document_citations set source = ''x'''),
    ('delete from citeledger.document_citations'),
    ('truncate citeledger.document_citations'),
    ('delete from citeledger.documents'),
    ('truncate citeledger.documents cascade'),
    ('update citeledger.chunks set content = ''x'''),
    ('delete from citeledger.chunks'),
    ('update citeledger.kg_entities set name = ''x'''),
    ('delete from citeledger.kg_entities'),
    ('delete from citeledger.kg_entity_mentions'),
    ('delete from citeledger.kg_relationships'),
    ('delete from citeledger.kg_relation_types'),
    ('select citeledger_private.lock_graph(current_setting(''test.a'')::uuid)'),
    ('select citeledger_private.reconcile_edges(current_setting(''test.a'')::uuid, null, null)'),
    ('select citeledger_private.visible_documents(current_setting(''test.a'')::uuid, ''{}'')'),
    ('select citeledger_private.percent_decode(''%41'')')
) as s (statement);
select throws_ok(f.statement, '42501', null, 'not the app: ' || left(f.statement, 60))
from forbidden as f;
set local role citeledger_admin;
select throws_ok(f.statement, '42501', null, 'not the admin: ' || left(f.statement, 60))
from forbidden as f;
set local role citeledger_reader;
select throws_ok(
  format('select from citeledger.%I', t.name), '42501', null, 'the reader sees no row of ' || t.name
)
from (
  values
    ('document_references'), ('document_citations'), ('chunks'), ('kg_relation_types'),
    ('kg_entities'), ('kg_entity_mentions'), ('kg_relationships')
) as t (name);

-- Permission.
select citeledger.set_context(current_setting('test.a')::uuid, null, array['matters:write']);
select throws_ok('select ' || c.call, '42501', null, 'without matters:read: ' || c.call)
from called as c
where c.least = 'reader' and c.call !~ 'normalize_doi';

-- Without a context there is nothing.
set local citeledger.firm_id = '';
set local role citeledger_admin;
select throws_ok('select ' || c.call, '42501', null, 'without a context: ' || c.call)
from called as c
where c.least = 'reader' and c.call !~ 'normalize_doi';
select throws_ok('select ' || c.call, 'P0002', null, 'without a context: ' || left(c.call, 40))
from called as c
where c.least = 'app';
select is(
  (
    select sum(v.value::integer)
    from jsonb_each_text(
      (citeledger.resolve_references(false) || citeledger.graph_gc(false)
        || citeledger.corpus_delete('{00000000-0000-4000-8000-0000000000d1}')) - 'dry_run'
    ) as v
  ),
  0::bigint,
  'without a context nothing is resolved, swept or deleted'
);

-- Another firm.
select citeledger.set_context(current_setting('test.b')::uuid, null, array['matters:read']);
select throws_ok('select ' || c.call, 'P0002', null, 'another firm: ' || left(c.call, 40))
from called as c
where c.call ~ 'get_citations|record_';
select is_empty('select ' || c.call, 'another firm: ' || left(c.call, 40))
from called as c
where c.call ~ 'walk_citations|graph_stage';
select is_empty(
  format('select from citeledger.%I', t.name), 'another firm sees no row of ' || t.name
)
from (
  values
    ('document_references'), ('document_citations'), ('chunks'), ('kg_relation_types'),
    ('kg_entities'), ('kg_entity_mentions'), ('kg_relationships')
) as t (name);
select is(
  citeledger.corpus_delete('{00000000-0000-4000-8000-0000000000d1}') ->> 'documents', '0',
  'nor deletes what is not its own'
);
insert into citeledger.documents (id, title)
values ('00000000-0000-4000-8000-0000000000b1', 'Theirs');
select throws_ok(
  $$insert into citeledger.chunks (document_id, chunk_index, content)
    values ('00000000-0000-4000-8000-0000000000d1', 1, 'x')$$,
  '23503', null, 'nor adds a chunk to it'
);
insert into citeledger.kg_entities (id, name, entity_type)
values ('00000000-0000-4000-8000-00000000e0b1', 'rent', 'concept');
select throws_ok(
  $$insert into citeledger.kg_entity_mentions (entity_id, chunk_id)
    values ('00000000-0000-4000-8000-00000000e0b1', '00000000-0000-4000-8000-00000000c001')$$,
  '23503', null, 'nor names its chunk as evidence'
);
select throws_ok(
  $$insert into citeledger.kg_entities (firm_id, name, entity_type)
    values (current_setting('test.a')::uuid, 'x', 'concept')$$,
  '42501', null, 'nor writes in its name'
);
select citeledger.set_context(current_setting('test.a')::uuid, null, array['matters:read']);
select is(
  (select count(*) from citeledger.document_citations), 1::bigint, 'the firm has what it had'
);

-- How the functions are made.
select is_empty(
  $$select p.oid::regprocedure
    from pg_proc as p
    where p.proname in (
        'normalize_doi', 'get_citations', 'walk_citations', 'graph_stage', 'record_references',
        'record_crossref_work', 'resolve_references', 'corpus_delete', 'graph_gc'
      )
      and p.pronamespace = 'citeledger'::regnamespace
      and (
        not p.prosecdef
        or 'search_path=pg_catalog, pg_temp' = any(p.proconfig) is not true
      )$$,
  'each runs as the owner, with a search path of its own'
);
select set_eq(
  $$select p.proname::text
    from pg_proc as p
    where p.pronamespace = 'citeledger'::regnamespace
      and p.provolatile = 's'
      and p.proname in ('get_citations', 'walk_citations', 'graph_stage')$$,
  array['get_citations', 'walk_citations', 'graph_stage'],
  'what only reads is stable: one call, one snapshot'
);

select * from finish();

rollback;
