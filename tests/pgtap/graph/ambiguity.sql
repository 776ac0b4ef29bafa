-- Two documents with one DOI: which of them is cited is not known, so there is no edge, until one
-- of them goes.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(21);

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
-- Another firm's document with the same DOI is none of this.
select citeledger.set_context(current_setting('test.b')::uuid);
set local role citeledger_app;
insert into citeledger.documents (title, doi) values ('Theirs', '10.1000/b');
select citeledger.set_context(current_setting('test.a')::uuid, null, array['matters:read']);

create function pg_temp.doc(p_title text)
returns uuid
language sql
stable
as $$
  select d.id from citeledger.documents as d where d.title = p_title
$$;
create function pg_temp.cited()
returns text
language sql
stable
as $$
  select string_agg(b.title, ' ' order by b.title)
  from citeledger.document_citations as e
  join citeledger.documents as b on b.id = e.cited_document_id
$$;
insert into citeledger.documents (title, doi) values ('A', '10.1000/a'), ('B1', '10.1000/B');
select citeledger.record_references(pg_temp.doc('A'), '{10.1000/b}');
select is(pg_temp.cited(), 'B1', 'one document has the DOI');

insert into citeledger.documents (title, doi) values ('B2', 'doi:10.1000/b');
select is(pg_temp.cited(), null, 'a second arrives: ambiguous, no edge');
select is(
  citeledger.record_references(pg_temp.doc('A'), '{10.1000/b}') - '{unusable,dry_run}'::text[],
  '{
    "documents_scanned": 1, "references_found": 1, "matched": 0, "unmatched": 0, "ambiguous": 1,
    "self_citations_skipped": 0, "rows_written": 0, "rows_removed": 0
  }'::jsonb,
  'and it is counted as that'
);
select is(
  citeledger.get_citations(pg_temp.doc('A')) -> 'references' -> 0,
  '{"document_id": null, "title": null, "doi": "10.1000/b", "source": "crossref",
    "resolved": false}'::jsonb,
  'to a reader the reference is unresolved'
);

update citeledger.documents set deleted_at = now() where title = 'B1';
select is(pg_temp.cited(), 'B2', 'one is withdrawn: the other is meant');
update citeledger.documents set deleted_at = null where title = 'B1';
select is(pg_temp.cited(), null, 'it is back: ambiguous again');
update citeledger.documents set doi = '10.1000/c' where title = 'B2';
select is(pg_temp.cited(), 'B1', 'the other gets another DOI');
update citeledger.documents set doi = '10.1000/b' where title = 'B2';
select is(pg_temp.cited(), null, 'and has this one again');
update citeledger.documents set doi = null where title = 'B1';
select is(pg_temp.cited(), 'B2', 'the first loses it');
update citeledger.documents set doi = '10.1000/b' where title = 'B1';
set local role citeledger_admin;
select is(
  citeledger.corpus_delete(array[pg_temp.doc('B1')]) ->> 'documents', '1', 'the first is deleted'
);
select is(pg_temp.cited(), 'B2', 'and the second is meant');
set local role citeledger_app;

-- Several at once, in one statement.
insert into citeledger.documents (title, doi)
select 'B' || n, '10.1000/b' from generate_series(3, 5) as n;
select is(pg_temp.cited(), null, 'four hold it');
update citeledger.documents set deleted_at = now() where title in ('B3', 'B4');
select is(pg_temp.cited(), null, 'two are withdrawn at once: two are left');
update citeledger.documents
set doi = case title when 'B5' then '10.1000/c' when 'B3' then '10.1000/d' else doi end;
select is(pg_temp.cited(), 'B2', 'one statement moves several DOIs');
-- Swapped in one statement.
insert into citeledger.documents (title, doi) values ('C', '10.1000/other');
update citeledger.documents
set doi = case title when 'B2' then '10.1000/other' when 'C' then '10.1000/b' else doi end
where title in ('B2', 'C');
select is(pg_temp.cited(), 'C', 'two documents swap their DOIs in one statement');

-- The citing document's own copy.
insert into citeledger.documents (title, doi) values ('A again', '10.1000/a');
select is(
  citeledger.record_references(pg_temp.doc('A'), '{10.1000/a}')
    - '{unusable,dry_run,rows_removed,documents_scanned,references_found}'::text[],
  '{
    "matched": 0, "unmatched": 0, "ambiguous": 1, "self_citations_skipped": 0, "rows_written": 0
  }'::jsonb,
  'its own DOI, which another has too, is ambiguous'
);
update citeledger.documents set deleted_at = now() where title = 'A';
update citeledger.documents set deleted_at = null where title = 'A';
update citeledger.documents set deleted_at = now() where title = 'A again';
select is(pg_temp.cited(), null, 'and its own when the other is gone');

set local role citeledger_admin;
select is(
  (
    select sum((citeledger.resolve_references() ->> k.key)::integer)
    from unnest(array['rows_written', 'rows_removed']) as k (key)
  ),
  0::bigint,
  'after all this there is nothing to resolve'
);

select * from finish();

rollback;
