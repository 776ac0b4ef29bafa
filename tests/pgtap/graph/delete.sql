-- A document that is gone, or withdrawn, cannot be reached through any function or table: one
-- assertion for each way.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(138);

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
select citeledger.set_context(current_setting('test.b')::uuid, null, array['matters:read']);
insert into citeledger.documents (id, title, doi)
values ('00000000-0000-4000-8000-0000000000bb', 'Theirs', '10.1000/gone');
select citeledger.set_context(current_setting('test.a')::uuid, null, array['matters:read']);

set local role citeledger_app;
insert into citeledger.projects (id, matter_number, name)
values ('00000000-0000-4000-8000-0000000000f1', 'M-1', 'Matter');
insert into citeledger.documents (id, project_id, title, doi)
values
  ('00000000-0000-4000-8000-0000000000d1', '00000000-0000-4000-8000-0000000000f1', 'Gone',
    '10.1000/gone'),
  ('00000000-0000-4000-8000-0000000000d2', '00000000-0000-4000-8000-0000000000f1', 'Citing',
    '10.1000/citing'),
  ('00000000-0000-4000-8000-0000000000d3', '00000000-0000-4000-8000-0000000000f1', 'Cited',
    '10.1000/cited');
select citeledger.replace_document_pages(
  d.id, '[{"page_number": 1, "blocks": ["The rent is due.", "On the first."]}]'
)
from citeledger.documents as d;
select citeledger.record_references(
  '00000000-0000-4000-8000-0000000000d1', '{10.1000/cited,10.1000/nowhere}'
);
select citeledger.record_references('00000000-0000-4000-8000-0000000000d2', '{10.1000/gone}');
insert into citeledger.chunks (id, document_id, chunk_index, content)
values
  ('00000000-0000-4000-8000-00000000c001', '00000000-0000-4000-8000-0000000000d1', 0, 'gone'),
  ('00000000-0000-4000-8000-00000000c002', '00000000-0000-4000-8000-0000000000d2', 0, 'citing'),
  ('00000000-0000-4000-8000-00000000c003', '00000000-0000-4000-8000-0000000000d1', 1, 'gone too');
insert into citeledger.kg_relation_types (relation_type) values ('governs');
insert into citeledger.kg_entities (id, name, entity_type)
values
  ('00000000-0000-4000-8000-00000000e001', 'Rent', 'concept'),
  ('00000000-0000-4000-8000-00000000e002', 'Lease', 'concept'),
  ('00000000-0000-4000-8000-00000000e003', 'Notice', 'concept');
insert into citeledger.kg_entity_mentions (entity_id, chunk_id)
values
  ('00000000-0000-4000-8000-00000000e001', '00000000-0000-4000-8000-00000000c001'),
  ('00000000-0000-4000-8000-00000000e001', '00000000-0000-4000-8000-00000000c002'),
  ('00000000-0000-4000-8000-00000000e002', '00000000-0000-4000-8000-00000000c001'),
  ('00000000-0000-4000-8000-00000000e003', '00000000-0000-4000-8000-00000000c002');
insert into citeledger.kg_relationships (
  source_entity_id, target_entity_id, relation_type, chunk_id, evidence
)
values (
  '00000000-0000-4000-8000-00000000e002', '00000000-0000-4000-8000-00000000e003', 'governs',
  '00000000-0000-4000-8000-00000000c001', 'the rent is due'
);
insert into citeledger.chats (id, project_id)
values ('00000000-0000-4000-8000-0000000000c1', '00000000-0000-4000-8000-0000000000f1');
insert into citeledger.messages (id, chat_id, role)
values (
  '00000000-0000-4000-8000-0000000000e1', '00000000-0000-4000-8000-0000000000c1', 'assistant'
);
insert into citeledger.message_citations (
  id, message_id, source_document_id, source_page, source_block, source_text, verified,
  verification_method, verification_confidence
)
values (
  '00000000-0000-4000-8000-00000000a001', '00000000-0000-4000-8000-0000000000e1',
  '00000000-0000-4000-8000-0000000000d1', 1, 0, 'rent is due', true, 'exact_match', 1
);
select citeledger.finalize_turn('00000000-0000-4000-8000-0000000000e1');

-- Every way to a document; what it gives while the document is there, withdrawn, and gone.
create temporary table way (name text, query text, live text, withdrawn text, gone text);
grant select on way to public;
insert into way
values
  ('cite', $$select citeledger.cite('00000000-0000-4000-8000-0000000000f1',
    '{"document_id": "00000000-0000-4000-8000-0000000000d1", "page_number": 1,
      "quote": "rent is due"}') ->> 'verified'$$, 'true', 'P0002', 'P0002'),
  ('cite_many', $$select citeledger.cite_many('00000000-0000-4000-8000-0000000000f1',
    '[{"document_id": "00000000-0000-4000-8000-0000000000d1", "page_number": 1,
      "quote": "rent is due"}]') #>> '{0,error,sqlstate}'$$, null, 'P0002', 'P0002'),
  ('cite_ledger_entry', $$select citeledger.cite_ledger_entry(
    (select e.id from citeledger.citation_ledger_entry as e)) ->> 'verified'$$,
    'true', 'P0002', 'P0002'),
  ('read_pages', $$select count(*)::text from citeledger.read_pages(
    '00000000-0000-4000-8000-0000000000f1', '00000000-0000-4000-8000-0000000000d1')$$,
    '2', 'P0002', 'P0002'),
  ('suggest_spans', $$select count(*)::text from citeledger.suggest_spans(
    '00000000-0000-4000-8000-0000000000f1',
    '{"document_id": "00000000-0000-4000-8000-0000000000d1", "page_number": 1,
      "quote": "rent is due"}')$$, '1', 'P0002', 'P0002'),
  ('ledger_trace', $$select citeledger.ledger_trace('00000000-0000-4000-8000-0000000000c1')
    #>> '{entries,0,source,document_id}'$$,
    '00000000-0000-4000-8000-0000000000d1', '00000000-0000-4000-8000-0000000000d1', null),
  ('ledger_trace, a withdrawn quote', $$select citeledger.ledger_trace(
    '00000000-0000-4000-8000-0000000000c1') #>> '{entries,0,source,withheld}'$$,
    null, 'true', null),
  ('ledger_trace, the quote of the turn', $$select citeledger.ledger_trace(
    '00000000-0000-4000-8000-0000000000c1') #>> '{entries,0,source,passages,0,text}'$$,
    'rent is due', null, 'rent is due'),
  ('get_citations', $$select citeledger.get_citations('00000000-0000-4000-8000-0000000000d1')
    ->> 'title'$$, 'Gone', 'P0002', 'P0002'),
  ('get_citations, as a reference', $$select citeledger.get_citations(
    '00000000-0000-4000-8000-0000000000d2') #>> '{references,0,title}'$$, 'Gone', null, null),
  ('get_citations, resolved', $$select citeledger.get_citations(
    '00000000-0000-4000-8000-0000000000d2') #>> '{references,0,resolved}'$$,
    'true', 'false', 'false'),
  ('get_citations, as printed', $$select citeledger.get_citations(
    '00000000-0000-4000-8000-0000000000d2') #>> '{references,0,doi}'$$,
    '10.1000/gone', '10.1000/gone', '10.1000/gone'),
  ('get_citations, as one that cites', $$select citeledger.get_citations(
    '00000000-0000-4000-8000-0000000000d3') #>> '{cited_by,0,title}'$$, 'Gone', null, null),
  ('walk_citations, from it', $$select count(*)::text from citeledger.walk_citations(
    array['00000000-0000-4000-8000-0000000000d1']::uuid[])$$, '3', '0', '0'),
  ('walk_citations, to it', $$select count(*)::text from citeledger.walk_citations(
    array['00000000-0000-4000-8000-0000000000d2']::uuid[], 1)$$, '2', '1', '1'),
  ('walk_citations, through it', $$select count(*)::text from citeledger.walk_citations(
    array['00000000-0000-4000-8000-0000000000d3']::uuid[], 9)$$, '3', '1', '1'),
  ('graph_stage, by a concept', $$select count(*)::text from citeledger.graph_stage(
    array['Rent'], 0)$$, '2', '1', '1'),
  ('graph_stage, over a relationship', $$select count(*)::text from citeledger.graph_stage(
    array['Lease'], 1)$$, '2', '0', '0'),
  ('graph_stage, by a citation', $$select count(*)::text from citeledger.graph_stage(
    array['Notice'], 1, true)$$, '3', '1', '1'),
  ('resolve_references', $$select citeledger.resolve_references() ->> 'matched'$$, '2', '0', '0'),
  ('recheck_document', $$select count(*)::text from citeledger.recheck_document(
    '00000000-0000-4000-8000-0000000000d1') as r where r.verified$$, '1', null, 'P0002'),
  ('resolve_span', $$select (citeledger.resolve_span(
    '{"document_id": "00000000-0000-4000-8000-0000000000d1", "page_number": 1,
      "quote": "rent is due"}')).verified::text$$, 'true', null, 'false'),
  ('document_citations', $$select count(*)::text from citeledger.document_citations$$,
    '2', '0', '0'),
  ('documents', $$select count(*)::text from citeledger.documents as d
    where d.id = '00000000-0000-4000-8000-0000000000d1'$$, '1', '1', '0'),
  ('document_pages', $$select count(*)::text from citeledger.document_pages as p
    where p.document_id = '00000000-0000-4000-8000-0000000000d1'$$, '1', '1', '0'),
  ('chunks', $$select count(*)::text from citeledger.chunks$$, '3', '3', '1'),
  ('kg_entity_mentions', $$select count(*)::text from citeledger.kg_entity_mentions$$,
    '4', '4', '2'),
  ('kg_relationships', $$select count(*)::text from citeledger.kg_relationships$$, '1', '1', '0'),
  ('document_references, its own', $$select count(*)::text
    from citeledger.document_references as r
    where r.document_id = '00000000-0000-4000-8000-0000000000d1'$$, '2', '2', '0'),
  ('document_references, to it', $$select count(*)::text
    from citeledger.document_references as r where r.doi_key = '10.1000/gone'$$, '1', '1', '1'),
  ('message_citations',
    $$select c.source_document_id::text from citeledger.message_citations as c$$,
    '00000000-0000-4000-8000-0000000000d1', '00000000-0000-4000-8000-0000000000d1', null),
  ('check_integrity', 'select count(*)::text from citeledger.check_integrity()', '0', '0', '0');

-- What a query gives: its one value, or the SQLSTATE that it raises.
create function pg_temp.given(p_query text)
returns text
language plpgsql
as $$
declare
  v_value text;
begin
  execute p_query into v_value;
  return v_value;
exception
  when no_data_found then
    return sqlstate;
end
$$;

set local role citeledger_admin;
select is(pg_temp.given(w.query), w.live, 'there: ' || w.name) from way as w;

update citeledger.documents set deleted_at = now()
where id = '00000000-0000-4000-8000-0000000000d1';
-- Where withdrawn is null and live is not, cite's own tests say what a withdrawn document gives.
select is(pg_temp.given(w.query), w.withdrawn, 'withdrawn: ' || w.name)
from way as w
where w.name not in ('recheck_document', 'resolve_span');
update citeledger.documents set deleted_at = null
where id = '00000000-0000-4000-8000-0000000000d1';
select is(pg_temp.given(w.query), w.live, 'back: ' || w.name) from way as w;

select is(
  citeledger.corpus_delete(
    array[
      '00000000-0000-4000-8000-0000000000d1', '00000000-0000-4000-8000-0000000000d1',
      '00000000-0000-4000-8000-0000000000bb', '00000000-0000-4000-8000-0000000000dd', null
    ]::uuid[]
  ),
  '{
    "documents": 1, "pages": 1, "blocks": 2, "chunks": 2, "mentions": 2, "relationships": 1,
    "references": 2, "citations": 2
  }'::jsonb,
  'deleted, with all that was made of it; ids that are not there are passed over'
);
select is(pg_temp.given(w.query), w.gone, 'gone: ' || w.name) from way as w;
select is(
  citeledger.corpus_delete(d.ids),
  '{
    "documents": 0, "pages": 0, "blocks": 0, "chunks": 0, "mentions": 0, "relationships": 0,
    "references": 0, "citations": 0
  }'::jsonb,
  'nothing to delete: ' || d.why
)
from (
  values
    (array['00000000-0000-4000-8000-0000000000d1']::uuid[], 'again'),
    (array['00000000-0000-4000-8000-0000000000bb']::uuid[], 'another firm''s'),
    ('{}', 'none'),
    (null, 'null')
) as d (ids, why);
select is(
  (select count(*) from citeledger.citation_ledger_entry), 1::bigint, 'the turn keeps its entry'
);
select is(
  (select g.gate_status from citeledger.work_product_fiduciary_gate as g),
  'fiduciary_grade',
  'and its verdict'
);

-- It comes again under another id, its DOI as an address.
insert into citeledger.documents (title, doi) values ('Again', 'https://doi.org/10.1000/GONE');
select results_eq(
  $$select b.title, e.cited_doi
    from citeledger.document_citations as e
    join citeledger.documents as b on b.id = e.cited_document_id$$,
  $$values ('Again', '10.1000/gone')$$,
  'exactly one new edge'
);
select citeledger.set_context(current_setting('test.b')::uuid, null, array['matters:read']);
select is(
  citeledger.get_citations('00000000-0000-4000-8000-0000000000bb') ->> 'title', 'Theirs',
  'the other firm''s document with the same DOI is where it was'
);

select * from finish();

rollback;
