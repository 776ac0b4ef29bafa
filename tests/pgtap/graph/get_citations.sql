-- get_citations: the shape of what it returns, its order, and what it does not name.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(19);

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
set local role citeledger_app;
insert into citeledger.documents (id, title, doi)
values ('00000000-0000-4000-8000-0000000000bb', 'Theirs', '10.1000/theirs');
select citeledger.set_context(
  current_setting('test.a')::uuid, '00000000-0000-4000-8000-000000000001', array['matters:read']
);
insert into citeledger.projects (id, matter_number, name)
values
  ('00000000-0000-4000-8000-0000000000f1', 'M-1', 'Open'),
  ('00000000-0000-4000-8000-0000000000f2', 'M-2', 'Walled');
insert into citeledger.documents (id, title, doi, project_id)
values
  ('00000000-0000-4000-8000-0000000000d1', 'Alpha', '10.1000/A', null),
  ('00000000-0000-4000-8000-0000000000d2', 'Beta', '10.1000/b',
    '00000000-0000-4000-8000-0000000000f1'),
  ('00000000-0000-4000-8000-0000000000d3', 'Gamma', 'doi:10.1000/c', null),
  ('00000000-0000-4000-8000-0000000000d4', 'Delta', '10.1000/d', null),
  ('00000000-0000-4000-8000-0000000000d5', 'Walled', '10.1000/w',
    '00000000-0000-4000-8000-0000000000f2'),
  ('00000000-0000-4000-8000-0000000000d6', 'Alone', null, null);
select citeledger.record_references(
  '00000000-0000-4000-8000-0000000000d1',
  '{10.1000/D,10.1000/unknown,https://doi.org/10.1000/B,10.1000/w,10.1000/a,10.1000/theirs}'
);
select citeledger.record_references(
  '00000000-0000-4000-8000-0000000000d1', '{10.1000/b}', 'annotated'
);
select citeledger.record_references('00000000-0000-4000-8000-0000000000d2', '{10.1000/d}');
select citeledger.record_references(
  '00000000-0000-4000-8000-0000000000d3', '{10.1000/d}', 'zotero'
);
select citeledger.record_references('00000000-0000-4000-8000-0000000000d5', '{10.1000/d}');

set local role citeledger_reader;
select is(
  citeledger.get_citations('00000000-0000-4000-8000-0000000000d1'),
  '{
    "document_id": "00000000-0000-4000-8000-0000000000d1",
    "title": "Alpha",
    "doi": "10.1000/A",
    "references": [
      {"document_id": "00000000-0000-4000-8000-0000000000d2", "title": "Beta",
        "doi": "10.1000/b", "source": "annotated", "resolved": true},
      {"document_id": "00000000-0000-4000-8000-0000000000d4", "title": "Delta",
        "doi": "10.1000/D", "source": "crossref", "resolved": true},
      {"document_id": null, "title": null,
        "doi": "10.1000/unknown", "source": "crossref", "resolved": false},
      {"document_id": "00000000-0000-4000-8000-0000000000d2", "title": "Beta",
        "doi": "https://doi.org/10.1000/B", "source": "crossref", "resolved": true},
      {"document_id": "00000000-0000-4000-8000-0000000000d5", "title": "Walled",
        "doi": "10.1000/w", "source": "crossref", "resolved": true},
      {"document_id": null, "title": null,
        "doi": "10.1000/a", "source": "crossref", "resolved": false},
      {"document_id": null, "title": null,
        "doi": "10.1000/theirs", "source": "crossref", "resolved": false}
    ],
    "cited_by": []
  }'::jsonb,
  'the references by source and place, as printed; itself and another firm''s are unresolved'
);
select is(
  citeledger.get_citations('00000000-0000-4000-8000-0000000000d4'),
  '{
    "document_id": "00000000-0000-4000-8000-0000000000d4",
    "title": "Delta",
    "doi": "10.1000/d",
    "references": [],
    "cited_by": [
      {"document_id": "00000000-0000-4000-8000-0000000000d1", "title": "Alpha",
        "doi": "10.1000/A", "source": "crossref"},
      {"document_id": "00000000-0000-4000-8000-0000000000d2", "title": "Beta",
        "doi": "10.1000/b", "source": "crossref"},
      {"document_id": "00000000-0000-4000-8000-0000000000d3", "title": "Gamma",
        "doi": "doi:10.1000/c", "source": "zotero"},
      {"document_id": "00000000-0000-4000-8000-0000000000d5", "title": "Walled",
        "doi": "10.1000/w", "source": "crossref"}
    ]
  }'::jsonb,
  'who cites it, by title, each with its own DOI'
);
select is(
  citeledger.get_citations('00000000-0000-4000-8000-0000000000d6'),
  '{
    "document_id": "00000000-0000-4000-8000-0000000000d6", "title": "Alone", "doi": null,
    "references": [], "cited_by": []
  }'::jsonb,
  'a document without any has empty lists'
);

-- A wall goes up.
set local role citeledger_admin;
insert into citeledger.project_members (project_id, user_id)
values ('00000000-0000-4000-8000-0000000000f2', '00000000-0000-4000-8000-000000000002');
set local role citeledger_reader;
select is(
  citeledger.get_citations('00000000-0000-4000-8000-0000000000d1') -> 'references' -> 4,
  '{"document_id": null, "title": null, "doi": "10.1000/w", "source": "crossref",
    "resolved": false}'::jsonb,
  'behind a wall a document is unresolved, as if it were not there'
);
select is(
  jsonb_path_query_array(
    citeledger.get_citations('00000000-0000-4000-8000-0000000000d4'), '$.cited_by[*].title'
  ),
  '["Alpha", "Beta", "Gamma"]'::jsonb,
  'and is not named as one that cites'
);
select throws_ok(
  $$select citeledger.get_citations('00000000-0000-4000-8000-0000000000d5')$$,
  'P0002', 'document not found', 'nor is it there itself'
);
select citeledger.set_context(
  current_setting('test.a')::uuid, '00000000-0000-4000-8000-000000000002', array['matters:read']
);
select is(
  citeledger.get_citations('00000000-0000-4000-8000-0000000000d5') ->> 'title', 'Walled',
  'to a member of the matter it is'
);
select is(
  citeledger.get_citations('00000000-0000-4000-8000-0000000000d1')
    #>> '{references,4,title}',
  'Walled',
  'with those that cite it'
);

-- What is not there.
select throws_ok(
  $$select citeledger.get_citations('00000000-0000-4000-8000-0000000000dd')$$,
  'P0002', 'document not found', 'a document that is nowhere'
);
select throws_ok(
  $$select citeledger.get_citations('00000000-0000-4000-8000-0000000000bb')$$,
  'P0002', 'document not found', 'another firm''s'
);
select throws_ok(
  'select citeledger.get_citations(null)', 'P0002', 'document not found', 'none'
);
set local role citeledger_app;
update citeledger.documents set deleted_at = now() where title = 'Beta';
set local role citeledger_reader;
select throws_ok(
  $$select citeledger.get_citations('00000000-0000-4000-8000-0000000000d2')$$,
  'P0002', 'document not found', 'one that is withdrawn'
);
select is(
  jsonb_path_query_array(
    citeledger.get_citations('00000000-0000-4000-8000-0000000000d1'), '$.references[*].resolved'
  ),
  '[false, true, false, false, true, false, false]'::jsonb,
  'which is unresolved in every list'
);
select is(
  jsonb_path_query_array(
    citeledger.get_citations('00000000-0000-4000-8000-0000000000d4'), '$.cited_by[*].title'
  ),
  '["Alpha", "Gamma", "Walled"]'::jsonb,
  'and cites nothing'
);

-- Who may ask.
select citeledger.set_context(current_setting('test.a')::uuid);
select throws_ok(
  format('select citeledger.get_citations(%L)', d.id),
  '42501', null, 'without the permission: ' || d.why
)
from (
  values
    ('00000000-0000-4000-8000-0000000000d1', 'a document that is there'),
    ('00000000-0000-4000-8000-0000000000dd', 'one that is not')
) as d (id, why);

select * from finish();

rollback;
