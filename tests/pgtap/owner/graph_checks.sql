-- Every CHECK, unique key and foreign key of the graph's tables, each violated by itself: what no
-- role may try, the owner tries here.
--
-- Needs a login that may SET ROLE to citeledger_owner (the deployer), no superuser and not exempt
-- from row security. Row security is forced, so the owner too sees the firm of its context alone.
-- All is rolled back.

begin;

select plan(69);

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

select set_config('test.other', citeledger.create_firm('Other LLP')::text, true);
select set_config('test.firm', citeledger.create_firm('Checks LLP')::text, true);

-- A row of each table that is good, but for what a change says: a JSON object of columns.
create temporary table good (table_name text primary key, place integer, values jsonb);
insert into good
values
  ('documents', 1, '{"id": "00000000-0000-4000-8000-0000000000d1", "title": "A",
    "doi": "10.1000/a", "document_kind": "record", "is_privileged": false,
    "license_class": "unknown", "source": "local"}'),
  ('document_references', 2, '{"id": "00000000-0000-4000-8000-00000000f001",
    "document_id": "00000000-0000-4000-8000-0000000000d1", "position": 1,
    "cited_doi": "10.1000/b", "source": "crossref"}'),
  ('document_citations', 3, '{"citing_document_id": "00000000-0000-4000-8000-0000000000d1",
    "cited_document_id": "00000000-0000-4000-8000-0000000000d2", "cited_doi": "10.1000/b",
    "source": "crossref"}'),
  ('chunks', 4, '{"id": "00000000-0000-4000-8000-00000000c001",
    "document_id": "00000000-0000-4000-8000-0000000000d1", "chunk_index": 0, "content": "x"}'),
  ('kg_relation_types', 5, '{"relation_type": "governs"}'),
  ('kg_entities', 6, '{"id": "00000000-0000-4000-8000-00000000e001", "name": "Rent",
    "entity_type": "concept"}'),
  ('kg_entity_mentions', 7, '{"entity_id": "00000000-0000-4000-8000-00000000e001",
    "chunk_id": "00000000-0000-4000-8000-00000000c001"}'),
  ('kg_relationships', 8, '{"id": "00000000-0000-4000-8000-00000000a001",
    "source_entity_id": "00000000-0000-4000-8000-00000000e001",
    "target_entity_id": "00000000-0000-4000-8000-00000000e002", "relation_type": "governs",
    "chunk_id": "00000000-0000-4000-8000-00000000c001", "evidence": "q"}');
create function pg_temp.put(p_table text, p_change jsonb default '{}')
returns void
language plpgsql
as $$
declare
  v_columns text := (
    select string_agg(quote_ident(a.attname), ', ' order by a.attnum)
    from pg_attribute as a
    where a.attrelid = ('citeledger.' || p_table)::regclass
      and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
  );
begin
  execute format(
    'insert into citeledger.%I (%s) select %s from jsonb_populate_record(null::citeledger.%I, $1)',
    p_table, v_columns, v_columns, p_table
  )
  using jsonb_build_object('firm_id', current_setting('test.firm'), 'created_at', now())
    || (select g.values from good as g where g.table_name = p_table)
    || p_change;
end
$$;

select citeledger.set_context(current_setting('test.other')::uuid);
insert into citeledger.documents (id, title)
values ('00000000-0000-4000-8000-0000000000db', 'Theirs');
insert into citeledger.chunks (id, document_id, chunk_index, content)
values
  ('00000000-0000-4000-8000-00000000c0bb', '00000000-0000-4000-8000-0000000000db', 0, 'theirs');
insert into citeledger.kg_entities (id, name, entity_type)
values ('00000000-0000-4000-8000-00000000e0bb', 'Rent', 'concept');
insert into citeledger.kg_relation_types (relation_type) values ('theirs');
select citeledger.set_context(current_setting('test.firm')::uuid, null, array['matters:read']);
insert into citeledger.documents (id, title, doi)
values ('00000000-0000-4000-8000-0000000000d2', 'B', '10.1000/b');
insert into citeledger.kg_entities (id, name, entity_type)
values
  ('00000000-0000-4000-8000-00000000e002', 'Lease', 'concept'),
  ('00000000-0000-4000-8000-00000000e003', repeat('é', 500), 'concept');

select lives_ok(
  format('select pg_temp.put(%L)', g.table_name), 'good: ' || g.table_name
)
from (select g.* from good as g order by g.place) as g;

create temporary table violation (sqlstate text, name text, table_name text, change jsonb);
insert into violation
values
  -- CHECKs.
  ('23514', 'document_references_position_from_one', 'document_references', '{"position": 0}'),
  ('23514', 'document_references_position_from_one', 'document_references', '{"position": -1}'),
  ('23514', 'document_references_source_is_label', 'document_references', '{"source": ""}'),
  ('23514', 'document_references_source_is_label', 'document_references', '{"source": "Cross"}'),
  ('23514', 'document_references_source_is_label', 'document_references',
    '{"source": "said in the lease"}'),
  ('23514', 'document_citations_no_self_citation', 'document_citations',
    '{"cited_document_id": "00000000-0000-4000-8000-0000000000d1"}'),
  ('23514', 'document_citations_cited_doi_is_doi', 'document_citations',
    '{"cited_doi": "The rent is due"}'),
  ('23514', 'document_citations_cited_doi_is_doi', 'document_citations', '{"cited_doi": ""}'),
  ('23514', 'document_citations_cited_doi_is_short', 'document_citations',
    '{"cited_doi": "https://doi.org/10.1000/b?the-rent-is-due-on-the-1st-of-each-month-at-noon"}'
  ),
  ('23514', 'document_citations_source_is_label', 'document_citations', '{"source": ""}'),
  ('23514', 'document_citations_source_is_label', 'document_citations',
    '{"source": "The rent is due"}'),
  ('23514', 'chunks_chunk_index_from_zero', 'chunks', '{"chunk_index": -1}'),
  ('23514', 'kg_relation_types_relation_type_is_label', 'kg_relation_types',
    '{"relation_type": "Governs"}'),
  ('23514', 'kg_relation_types_relation_type_is_label', 'kg_relation_types',
    '{"relation_type": ""}'),
  ('23514', 'kg_entities_name_is_short', 'kg_entities', '{"name": ""}'),
  ('23514', 'kg_entities_name_is_short', 'kg_entities', '{"name": " \t"}'),
  ('23514', 'kg_entities_name_is_short', 'kg_entities',
    jsonb_build_object('name', repeat('x', 501))),
  ('23514', 'kg_entities_entity_type_is_label', 'kg_entities',
    '{"name": "New", "entity_type": "A concept"}'),
  ('23514', 'kg_relationships_confidence_is_a_share', 'kg_relationships', '{"confidence": -0.01}'),
  ('23514', 'kg_relationships_confidence_is_a_share', 'kg_relationships', '{"confidence": 1.01}'),
  ('23514', 'kg_relationships_confidence_is_a_share', 'kg_relationships', '{"confidence": "NaN"}'),
  -- Unique keys.
  ('23505', 'document_references_pkey', 'document_references', '{"cited_doi": "10.1000/new"}'),
  ('23505', 'document_references_list_key', 'document_references',
    '{"id": "00000000-0000-4000-8000-00000000f002", "position": 2,
      "cited_doi": "https://doi.org/10.1000/B"}'),
  ('23505', 'document_citations_pkey', 'document_citations',
    '{"cited_doi": "doi:10.1000/B", "source": "manual"}'),
  ('23505', 'chunks_pkey', 'chunks', '{"chunk_index": 1}'),
  ('23505', 'chunks_document_place_key', 'chunks',
    '{"id": "00000000-0000-4000-8000-00000000c002"}'),
  ('23505', 'kg_relation_types_pkey', 'kg_relation_types', '{}'),
  ('23505', 'kg_entities_pkey', 'kg_entities', '{"name": "New"}'),
  ('23505', 'kg_entities_name_key', 'kg_entities',
    '{"id": "00000000-0000-4000-8000-00000000e009", "name": "RENT", "entity_type": "other"}'),
  ('23505', 'kg_entity_mentions_pkey', 'kg_entity_mentions', '{}'),
  ('23505', 'kg_relationships_pkey', 'kg_relationships', '{}'),
  -- Foreign keys, each to what is not there, or is another firm's.
  ('23503', 'document_references_document_fkey', 'document_references',
    '{"id": "00000000-0000-4000-8000-00000000f002",
      "document_id": "00000000-0000-4000-8000-0000000000db"}'),
  ('23503', 'document_citations_citing_fkey', 'document_citations',
    '{"citing_document_id": "00000000-0000-4000-8000-0000000000db"}'),
  ('23503', 'document_citations_cited_fkey', 'document_citations',
    '{"cited_document_id": "00000000-0000-4000-8000-0000000000db"}'),
  ('23503', 'chunks_document_fkey', 'chunks',
    '{"id": "00000000-0000-4000-8000-00000000c002",
      "document_id": "00000000-0000-4000-8000-0000000000db"}'),
  ('23503', 'kg_entity_mentions_entity_fkey', 'kg_entity_mentions',
    '{"entity_id": "00000000-0000-4000-8000-00000000e0bb"}'),
  ('23503', 'kg_entity_mentions_chunk_fkey', 'kg_entity_mentions',
    '{"chunk_id": "00000000-0000-4000-8000-00000000c0bb"}'),
  ('23503', 'kg_relationships_source_entity_fkey', 'kg_relationships',
    '{"id": "00000000-0000-4000-8000-00000000a002",
      "source_entity_id": "00000000-0000-4000-8000-00000000e0bb"}'),
  ('23503', 'kg_relationships_target_entity_fkey', 'kg_relationships',
    '{"id": "00000000-0000-4000-8000-00000000a002",
      "target_entity_id": "00000000-0000-4000-8000-00000000e0bb"}'),
  ('23503', 'kg_relationships_relation_type_fkey', 'kg_relationships',
    '{"id": "00000000-0000-4000-8000-00000000a002", "relation_type": "theirs"}'),
  ('23503', 'kg_relationships_chunk_fkey', 'kg_relationships',
    '{"id": "00000000-0000-4000-8000-00000000a002",
      "chunk_id": "00000000-0000-4000-8000-00000000c0bb"}');

select throws_ok(
  format('select pg_temp.put(%L, %L)', v.table_name, v.change),
  v.sqlstate,
  format(
    case v.sqlstate
      when '23514' then 'new row for relation "%2$s" violates check constraint "%1$s"'
      when '23505' then 'duplicate key value violates unique constraint "%1$s"'
      else 'insert or update on table "%2$s" violates foreign key constraint "%1$s"'
    end,
    v.name, v.table_name
  ),
  format('%s refuses %s', v.name, left(regexp_replace(v.change::text, '\s+', ' ', 'g'), 80))
)
from violation as v;

-- A firm that is not there cannot be written to at all: row security comes before these keys.
select throws_ok(
  format(
    'select pg_temp.put(%L, %L)', t.name, '{"firm_id": "00000000-0000-4000-8000-0000000000ff"}'
  ),
  '42501', null, t.name || ' takes no row of another firm'
)
from (values ('kg_entities'), ('kg_relation_types')) as t (name);
insert into violation (name) values ('kg_entities_firm_fkey'), ('kg_relation_types_firm_fkey');

select set_eq(
  $$select k.conname::text
    from pg_constraint as k
    join good as g on k.conrelid = ('citeledger.' || g.table_name)::regclass
    where g.table_name <> 'documents' and k.contype in ('c', 'u', 'p', 'f')
    union
    select 'kg_entities_name_key'$$,
  'select distinct v.name from violation as v',
  'every CHECK, unique key and foreign key of these tables was violated'
);

-- No text is too long for an index: the longest key and the longest name fit beside the others.
select lives_ok(
  format(
    'select pg_temp.put(%L, %L)', 'document_references',
    jsonb_build_object(
      'id', '00000000-0000-4000-8000-00000000f003', 'source', repeat('s', 32),
      'cited_doi', (
        select '10.1000/' || left(string_agg(md5(n::text), ''), 2040)
        from generate_series(1, 64) as n
      )
    )
  ),
  'the longest key of a DOI, which does not compress, is indexed'
);
select throws_ok(
  format(
    'select pg_temp.put(%L, %L)', 'document_references',
    jsonb_build_object(
      'id', '00000000-0000-4000-8000-00000000f004',
      'cited_doi', (
        select '10.1000/' || string_agg(md5(n::text), '') from generate_series(1, 94) as n
      )
    )
  ),
  '23502', null, 'a longer one has no key and is no reference: 23502, not 54000'
);
select lives_ok(
  format(
    'select pg_temp.put(%L, %L)', 'documents',
    jsonb_build_object(
      'id', '00000000-0000-4000-8000-0000000000d3',
      'doi', (select '10.1000/' || string_agg(md5(n::text), '') from generate_series(1, 94) as n)
    )
  ),
  'a document may have what is no DOI'
);
select is(
  (select d.doi_key from citeledger.documents as d
    where d.id = '00000000-0000-4000-8000-0000000000d3'),
  null,
  'and then has no key'
);

-- A type that is in use stays declared.
select throws_ok(
  'delete from citeledger.kg_relation_types',
  '23503', null, 'a type of relationship that is in use stays declared'
);
-- Everything goes with its firm, relationships and their types too.
select lives_ok(
  format('select citeledger.delete_firm(%L)', current_setting('test.firm')),
  'a firm with relationships can be deleted'
);
select is_empty(
  format('select from citeledger.%I', g.table_name), 'nothing is left in ' || g.table_name
)
from good as g;

select * from finish();

rollback;
