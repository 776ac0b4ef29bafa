-- A reference resolves by itself when what it names arrives, leaves, changes its DOI or comes back,
-- whoever writes the document.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(28);

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
select citeledger.set_context(
  current_setting('test.a')::uuid, '00000000-0000-4000-8000-000000000001', array['matters:read']
);
set local role citeledger_app;
create function pg_temp.doc(p_title text)
returns uuid
language sql
stable
as $$
  select d.id from citeledger.documents as d where d.title = p_title
$$;
create function pg_temp.edges()
returns text
language sql
stable
as $$
  select coalesce(string_agg(a.title || '>' || b.title, ' ' order by a.title, b.title), '')
  from citeledger.document_citations as e
  join citeledger.documents as a on a.id = e.citing_document_id
  join citeledger.documents as b on b.id = e.cited_document_id
$$;
insert into citeledger.documents (title, doi)
values ('A', '10.1000/a'), ('B', '10.1000/b'), ('C', null);
select citeledger.record_references(pg_temp.doc('A'), '{10.1000/c,10.1000/d,10.1000/e}');
select citeledger.record_references(pg_temp.doc('B'), '{10.1000/c,10.1000/a}');
select is(pg_temp.edges(), 'B>A', 'what is there is resolved');

-- Arriving.
insert into citeledger.documents (title, doi)
values ('D', 'https://doi.org/10.1000/D'), ('E', '10.1000/e'), ('F', '10.1000/f'), ('G', null);
select is(pg_temp.edges(), 'A>D A>E B>A', 'what arrives is resolved, several at once');

-- Changing.
update citeledger.documents set doi = '10.1000/c' where title = 'C';
select is(pg_temp.edges(), 'A>C A>D A>E B>A B>C', 'a document gets its DOI later');
update citeledger.documents set doi = '10.1000/C.' where title = 'C';
select is(pg_temp.edges(), 'A>C A>D A>E B>A B>C', 'another spelling changes nothing');
update citeledger.documents set doi = 'none' where title = 'C';
select is(pg_temp.edges(), 'A>D A>E B>A', 'what is no DOI takes the edges away');
update citeledger.documents set doi = '10.1000/e' where title = 'C';
select is(pg_temp.edges(), 'A>D B>A', 'another''s DOI makes it ambiguous');
update citeledger.documents set doi = '10.1000/c' where title = 'C';
select is(pg_temp.edges(), 'A>C A>D A>E B>A B>C', 'and back');
update citeledger.documents set title = title, license_class = 'open';
select is((select count(*) from citeledger.document_citations), 5::bigint, 'others: nothing');
-- Leaving, by deleted_at.
select is(pg_temp.edges(), 'A>C A>D A>E B>A B>C', 'before');
update citeledger.documents set deleted_at = now() where title = 'C';
select is(pg_temp.edges(), 'A>D A>E B>A', 'withdrawn: no edge to it');
update citeledger.documents set deleted_at = now() where title = 'A';
select is(pg_temp.edges(), '', 'nor from it');
update citeledger.documents set deleted_at = '2020-01-01' where title = 'A';
select is(pg_temp.edges(), '', 'withdrawn at another time');
update citeledger.documents set deleted_at = null;
select is(pg_temp.edges(), 'A>C A>D A>E B>A B>C', 'all are back, and so are the edges');
update citeledger.documents set deleted_at = now(), doi = '10.1000/a' where title = 'C';
select is(pg_temp.edges(), 'A>D A>E B>A', 'withdrawn with another''s DOI: not ambiguous');
update citeledger.documents set deleted_at = null, doi = '10.1000/c' where title = 'C';
select is(pg_temp.edges(), 'A>C A>D A>E B>A B>C', 'both undone at once');
insert into citeledger.documents (title, doi, deleted_at) values ('H', '10.1000/c', now());
select is(pg_temp.edges(), 'A>C A>D A>E B>A B>C', 'one that arrives withdrawn is not there');

-- An insert that turns into an update.
insert into citeledger.documents (title, doi) values ('I', '10.1000/i');
select citeledger.record_references(pg_temp.doc('I'), '{10.1000/j}');
insert into citeledger.documents (id, title, doi) values (pg_temp.doc('I'), 'J', '10.1000/c')
on conflict (firm_id, id) do update set doi = excluded.doi;
select is(pg_temp.edges(), 'A>D A>E B>A', 'an upsert is seen as the update that it is');
update citeledger.documents set doi = '10.1000/i' where title = 'I';

-- Leaving for good, and coming again under another id.
set local role citeledger_admin;
select citeledger.corpus_delete(array[pg_temp.doc('C'), pg_temp.doc('D')]);
select is(pg_temp.edges(), 'A>E B>A', 'deleted: no edge');
select is(
  (select count(*) from citeledger.document_references as r where r.document_id = pg_temp.doc('A')),
  3::bigint,
  'the references stay'
);
set local role citeledger_app;
insert into citeledger.documents (title, doi) values ('C2', 'https://doi.org/10.1000/C');
select is(pg_temp.edges(), 'A>C2 A>E B>A B>C2', 'and resolve to what comes in its place');

-- The context of whoever wrote it is as it was.
select is(citeledger.current_firm_id(), current_setting('test.a')::uuid, 'the firm is the same');
select is(
  citeledger.current_user_id(), '00000000-0000-4000-8000-000000000001'::uuid, 'so is the user'
);
select ok(citeledger.has_permission('matters:read'), 'so are the permissions');

-- Another firm's references and documents are another's.
select citeledger.set_context(current_setting('test.b')::uuid, null, array['matters:read']);
insert into citeledger.documents (title, doi) values ('A', '10.1000/e'), ('Z', '10.1000/z');
select citeledger.record_references(pg_temp.doc('Z'), '{10.1000/a,10.1000/b,10.1000/e}');
select is(pg_temp.edges(), 'Z>A', 'the other firm''s edges are among its own documents');
select citeledger.set_context(current_setting('test.a')::uuid, null, array['matters:read']);
select is(pg_temp.edges(), 'A>C2 A>E B>A B>C2', 'and change nothing here');

select * from finish();

rollback;
