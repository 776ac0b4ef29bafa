-- record_references and record_crossref_work: what of a list is stored, what is counted, what is
-- refused.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(51);

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
select citeledger.set_context(current_setting('test.a')::uuid, null, array['matters:read']);
set local role citeledger_app;
insert into citeledger.documents (id, title, doi)
values
  ('00000000-0000-4000-8000-0000000000d1', 'A', '10.1000/a'),
  ('00000000-0000-4000-8000-0000000000d2', 'B', 'https://doi.org/10.1000/B'),
  ('00000000-0000-4000-8000-0000000000d3', 'C', null);

create temporary view list as
select r.position, r.cited_doi, r.doi_key, r.source
from citeledger.document_references as r
where r.document_id = '00000000-0000-4000-8000-0000000000d1';

-- What is stored.
select is(
  citeledger.record_references(
    '00000000-0000-4000-8000-0000000000d1',
    array[
      '10.1000/z.', null, 'https://doi.org/10.1000/B', '10.1000/b', 'no DOI', '10.1000/A',
      'DOI: 10.1000/Z', ''
    ]
  ),
  '{
    "documents_scanned": 1, "references_found": 3, "matched": 1, "unmatched": 1, "ambiguous": 0,
    "self_citations_skipped": 1, "rows_written": 1, "rows_removed": 0, "dry_run": false,
    "unusable": 3
  }'::jsonb,
  'the report: each reference once, by its fate, and what was no DOI'
);
select results_eq(
  'select * from list order by position',
  $$values
    (1, '10.1000/z.', '10.1000/z', 'crossref'),
    (3, 'https://doi.org/10.1000/B', '10.1000/b', 'crossref'),
    (6, '10.1000/A', '10.1000/a', 'crossref')$$,
  'one row for each DOI, as printed at its first place, and the source is crossref'
);
select results_eq(
  'select e.citing_document_id, e.cited_document_id, e.cited_doi, e.source
   from citeledger.document_citations as e',
  $$values (
    '00000000-0000-4000-8000-0000000000d1'::uuid, '00000000-0000-4000-8000-0000000000d2'::uuid,
    'https://doi.org/10.1000/B', 'crossref'
  )$$,
  'the edge has the DOI as printed, and its source'
);

-- The same list again, another list, another source, an empty list.
select is(
  citeledger.record_references(
    '00000000-0000-4000-8000-0000000000d1', array['10.1000/z', '10.1000/b', '10.1000/b']
  ),
  '{
    "documents_scanned": 1, "references_found": 2, "matched": 1, "unmatched": 1, "ambiguous": 0,
    "self_citations_skipped": 0, "rows_written": 1, "rows_removed": 0, "dry_run": false,
    "unusable": 0
  }'::jsonb,
  'a new list replaces the old one, and the edge follows what is printed in it'
);
select is(
  citeledger.record_references(
    '00000000-0000-4000-8000-0000000000d1', array['10.1000/z', '10.1000/b', '10.1000/b']
  ) -> 'rows_written',
  '0',
  'the same list again writes no edge'
);
select is(
  citeledger.record_references(
    '00000000-0000-4000-8000-0000000000d1', array['doi:10.1000/b', '10.1000/y'], 'manual'
  ),
  '{
    "documents_scanned": 1, "references_found": 2, "matched": 1, "unmatched": 1, "ambiguous": 0,
    "self_citations_skipped": 0, "rows_written": 0, "rows_removed": 0, "dry_run": false,
    "unusable": 0
  }'::jsonb,
  'the list of another source is another list, and is counted by itself'
);
select results_eq(
  'select * from list order by source collate "C", position',
  $$values
    (1, '10.1000/z', '10.1000/z', 'crossref'),
    (2, '10.1000/b', '10.1000/b', 'crossref'),
    (1, 'doi:10.1000/b', '10.1000/b', 'manual'),
    (2, '10.1000/y', '10.1000/y', 'manual')$$,
  'both are there'
);
select is(
  citeledger.record_references('00000000-0000-4000-8000-0000000000d1', '{}'),
  '{
    "documents_scanned": 0, "references_found": 0, "matched": 0, "unmatched": 0, "ambiguous": 0,
    "self_citations_skipped": 0, "rows_written": 1, "rows_removed": 0, "dry_run": false,
    "unusable": 0
  }'::jsonb,
  'an empty list says that nothing is cited; the edge is now by the other list'
);
select results_eq(
  'select e.cited_doi, e.source from citeledger.document_citations as e',
  $$values ('doi:10.1000/b', 'manual')$$,
  'whose DOI and source it has'
);
select is(
  citeledger.record_references('00000000-0000-4000-8000-0000000000d1', '{}', 'manual')
    -> 'rows_removed',
  '1',
  'without any list there is no edge'
);
select is_empty('select from list', 'and no reference');

-- Long ones.
select is(
  citeledger.record_references(
    '00000000-0000-4000-8000-0000000000d1',
    array[
      '10.1000/' || (
        select string_agg(md5(n::text), '') from generate_series(1, 94) as n
      ),
      '10.1000/' || repeat('a', 20000),
      '10.1000/' || (
        select left(string_agg(md5(n::text), ''), 2040) from generate_series(1, 64) as n
      )
    ]
  ) - '{documents_scanned,rows_written,rows_removed,dry_run}'::text[],
  '{
    "references_found": 1, "matched": 0, "unmatched": 1, "ambiguous": 0,
    "self_citations_skipped": 0, "unusable": 2
  }'::jsonb,
  'a DOI that no index could hold is unusable, the longest that counts is stored'
);

-- What is refused.
select throws_ok(
  $$select citeledger.record_references('00000000-0000-4000-8000-0000000000d1', null)$$,
  '22023', 'p_dois is not a list of DOIs', 'a list that is null'
);
select throws_ok(
  format(
    'select citeledger.record_references(%L, %L, %L)',
    '00000000-0000-4000-8000-0000000000d1', '{10.1000/b}', s.source
  ),
  '22023', 'p_source is not a label', 'a source: ' || coalesce(quote_literal(s.source), 'null')
)
from (
  values (null), (''), ('Crossref'), ('1st'), ('a b'), (E'crossref\n'), (repeat('a', 33))
) as s (source);
select throws_ok(
  $$select citeledger.record_references('00000000-0000-4000-8000-0000000000dd', '{10.1000/b}')$$,
  'P0002', 'document not found', 'a document that is not there'
);
select throws_ok(
  $$select citeledger.record_references(null, '{10.1000/b}')$$,
  'P0002', 'document not found', 'no document'
);

-- Crossref's works, in every shape.
select is(
  citeledger.record_crossref_work(
    '00000000-0000-4000-8000-0000000000d1',
    '{"reference": [
      {"key": "1"}, {"DOI": null}, {"DOI": 12345}, {"DOI": ["10.1000/a"]}, {"DOI": {}},
      {"DOI": ""}, {"DOI": "https://hal.science/hal-02312483"}, {"DOI": "10.1000/a10.1000/a"},
      "10.1000/b", null, 7, {"DOI": "10.1000/B", "year": 1999}, {"DOI": "doi:10.1000/b"},
      {"DOI": "https://doi.org/10.1000/b"}, ["10.1000/b"]
    ]}'
  ) - '{documents_scanned,rows_written,rows_removed,dry_run}'::text[],
  '{
    "references_found": 2, "matched": 1, "unmatched": 1, "ambiguous": 0,
    "self_citations_skipped": 0, "unusable": 11
  }'::jsonb,
  'only texts that are DOIs become references; the others are counted'
);
select results_eq(
  'select * from list order by position',
  $$values
    (8, '10.1000/a10.1000/a', '10.1000/a10.1000/a',
      'crossref'),
    (12, '10.1000/B', '10.1000/b', 'crossref')$$,
  'at the place that they have in the work'
);
select is(
  citeledger.record_crossref_work(
    '00000000-0000-4000-8000-0000000000d1',
    '{"status": "ok", "message-type": "work",
      "message": {"DOI": "10.1000/a", "reference": [{"DOI": "10.1000/b"}]}}'
  ) -> 'matched',
  '1',
  'an answer of Crossref has the work in its message'
);
select is(
  citeledger.record_crossref_work('00000000-0000-4000-8000-0000000000d1', w.work) - 'rows_removed',
  '{
    "documents_scanned": 0, "references_found": 0, "matched": 0, "unmatched": 0, "ambiguous": 0,
    "self_citations_skipped": 0, "rows_written": 0, "dry_run": false, "unusable": 0
  }'::jsonb,
  'a work without references has an empty list: ' || w.work::text
)
from (
  values
    ('{}'::jsonb), ('{"reference": null}'), ('{"reference": []}'),
    ('{"message": {"DOI": "10.1000/a"}}')
) as w (work);
select throws_ok(
  format(
    'select citeledger.record_crossref_work(%L, %L)',
    '00000000-0000-4000-8000-0000000000d1', w.work
  ),
  '22023', 'p_work is not a Crossref work', 'refused: ' || coalesce(w.work, 'null')
)
from (
  values
    (null), ('null'), ('[]'), ('"10.1000/b"'), ('7'), ('{"reference": {}}'),
    ('{"reference": "10.1000/b"}'), ('{"reference": 0}'),
    ('{"message": {"reference": {"DOI": "10.1000/b"}}}'),
    ('{"status": "failed", "message": [{"type": "validation-failure"}]}'),
    ('{"status": "ok", "message-type": "work-list", "message": {"items": []}}')
) as w (work);
select throws_ok(
  $$select citeledger.record_crossref_work('00000000-0000-4000-8000-0000000000dd', '{}')$$,
  'P0002', 'document not found', 'a work of a document that is not there'
);

set local role citeledger_app;
-- An edge holds no content: 64 bytes more than its DOI, or the DOI's key alone.
create temporary view edge as
select e.cited_doi from citeledger.document_citations as e;
create function pg_temp.printed(p_more integer)
returns text
language sql
as $$
  select 'https://doi.org/10.1000/B?' || repeat('x', p_more - 17)
$$;
select lives_ok(
  $$select citeledger.record_references(
      '00000000-0000-4000-8000-0000000000d1', array[pg_temp.printed(64)]
    )$$,
  'an address 64 bytes longer than its DOI'
);
select results_eq(
  'select * from edge', 'select pg_temp.printed(64)', 'is in the edge as printed'
);
select is(
  octet_length(pg_temp.printed(64)) - octet_length('10.1000/b'), 64, 'and that is what it is'
);
select lives_ok(
  $$select citeledger.record_references(
      '00000000-0000-4000-8000-0000000000d1', array[pg_temp.printed(65)]
    )$$,
  'one that is 65 bytes longer'
);
select results_eq('select * from edge', $$values ('10.1000/b')$$, 'is there as the key alone');
select results_eq(
  'select cited_doi from list', 'select pg_temp.printed(65)', 'and in the list as printed'
);
set local role citeledger_admin;
select is(
  citeledger.resolve_references() -> 'rows_written', '0', 'which is no difference to reconcile'
);

select * from finish();

rollback;
