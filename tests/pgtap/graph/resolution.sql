-- An edge is where a live document's list names the DOI of exactly one other live document: never
-- to the document of a shorter DOI, never to itself, once for a pair.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(20);

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

create function pg_temp.doc(p_title text)
returns uuid
language sql
stable
as $$
  select d.id from citeledger.documents as d where d.title = p_title
$$;
create temporary view edge as
select a.title as citing, b.title as cited, e.cited_doi, e.source
from citeledger.document_citations as e
join citeledger.documents as a on a.id = e.citing_document_id
join citeledger.documents as b on b.id = e.cited_document_id;

insert into citeledger.documents (title, doi)
values
  ('Citing', '10.1000/citing'),
  ('Short SICI', '10.1002/(sici)1096-9861(19960129)365:1'),
  ('Dash', '10.1007/s10711'),
  ('Dash, hyphens', '10.1007/s10711-0018-0327-4'),
  ('Cut', '10.1146/annurev-financial-010421-'),
  ('Once', '10.1000/a'),
  ('No DOI', 'see the shelf');

-- Decoys: a document that owns the shorter DOI is not the one.
select is(
  citeledger.record_references(
    pg_temp.doc('Citing'),
    array[
      '10.1002/(SICI)1096-9861(19960129)365:1<113::AID-CNE9>3.0.CO;2-6',
      E'10.1007/s10711\u20130018\u20130327\u20134',
      E'10.1146/annurev-financial-010421-\n085556',
      '10.1000/a10.1000/a',
      'see the shelf'
    ]
  ) - '{documents_scanned,dry_run}'::text[],
  '{
    "references_found": 3, "matched": 0, "unmatched": 3, "ambiguous": 0,
    "self_citations_skipped": 0, "rows_written": 0, "rows_removed": 0, "unusable": 2
  }'::jsonb,
  'no edge to the document of a part of the DOI'
);
select is_empty('select from edge', 'none at all');

-- The whole one arrives.
insert into citeledger.documents (title, doi)
values
  (
    'SICI',
    'https://doi.org/10.1002/(SICI)1096-9861(19960129)365:1%3C113::AID-CNE9%3E3.0.CO;2-6'
  );
select results_eq(
  'select * from edge',
  $$values (
    'Citing', 'SICI',
    '10.1002/(SICI)1096-9861(19960129)365:1<113::AID-CNE9>3.0.CO;2-6',
    'crossref'
  )$$,
  'an edge to the document that has it whole, however either is spelled'
);

-- Least (source, position).
select citeledger.record_references(pg_temp.doc('Citing'), '{10.1000/q,10.1000/A}', 'zotero');
select citeledger.record_references(pg_temp.doc('Citing'), '{10.1000/A.}', 'crossref');
select citeledger.record_references(pg_temp.doc('Citing'), '{doi:10.1000/a}', 'manual');
select results_eq(
  'select * from edge order by cited',
  $$values (
    'Citing', 'Once', '10.1000/A.', 'crossref'
  )$$,
  'of three lists with the same edge the least source gives its DOI'
);
select citeledger.record_references(pg_temp.doc('Citing'), '{}', 'crossref');
select results_eq(
  'select * from edge',
  $$values (
    'Citing', 'Once', 'doi:10.1000/a', 'manual'
  )$$,
  'then the next'
);
select citeledger.record_references(pg_temp.doc('Citing'), '{}', 'manual');
select results_eq(
  'select * from edge',
  $$values (
    'Citing', 'Once', '10.1000/A', 'zotero'
  )$$,
  'then the last'
);

-- Itself, and both ways.
insert into citeledger.documents (title, doi) values ('Other', '10.1000/other');
select is(
  citeledger.record_references(
    pg_temp.doc('Citing'), '{https://doi.org/10.1000/CITING,10.1000/other}', 'zotero'
  ) - '{documents_scanned,dry_run,unusable,references_found}'::text[],
  '{
    "matched": 1, "unmatched": 0, "ambiguous": 0, "self_citations_skipped": 1,
    "rows_written": 1, "rows_removed": 1
  }'::jsonb,
  'no edge to itself'
);
select citeledger.record_references(pg_temp.doc('Other'), '{10.1000/citing}');
select results_eq(
  'select citing, cited from edge order by citing',
  $$values
    ('Citing', 'Other'),
    ('Other', 'Citing')$$,
  'two documents may cite each other'
);

-- resolve_references.
set local role citeledger_admin;
select is(
  citeledger.resolve_references(),
  '{
    "documents_scanned": 2, "references_found": 3, "matched": 2, "unmatched": 0, "ambiguous": 0,
    "self_citations_skipped": 1, "rows_written": 0, "rows_removed": 0, "dry_run": true
  }'::jsonb,
  'after all this a dry run, which is the default, has nothing to do'
);
select is(
  citeledger.resolve_references(d.dry_run) - '{dry_run}'::text[],
  citeledger.resolve_references() - '{dry_run}'::text[],
  'whatever dry_run is'
)
from (values (true), (false), (null)) as d (dry_run);
select is(
  (citeledger.resolve_references(null) ->> 'dry_run')::boolean, true, 'null is a dry run'
);
select is(
  (citeledger.resolve_references(false) ->> 'dry_run')::boolean, false, 'false is none'
);
select is_empty('select * from citeledger.check_integrity()', 'nothing is amiss');

-- A list of a document that is withdrawn is kept and gives no edge.
set local role citeledger_app;
update citeledger.documents set deleted_at = now() where title = 'Citing';
select citeledger.record_references(pg_temp.doc('Citing'), '{10.1000/other,10.1000/a}');
select is_empty('select from edge', 'a list of a document that is withdrawn gives no edge');
update citeledger.documents set deleted_at = null where title = 'Citing';
select results_eq(
  'select citing, cited from edge order by citing, cited',
  $$values
    ('Citing', 'Once'), ('Citing', 'Other'), ('Other', 'Citing')$$,
  'and all of them once it is back'
);

select * from finish();

rollback;
