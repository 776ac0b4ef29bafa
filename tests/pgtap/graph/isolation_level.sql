-- Above read committed a list would be resolved against the documents of an old snapshot: whoever
-- writes the graph is told so, and what does not touch a DOI goes on.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;
set transaction isolation level repeatable read;

select plan(15);

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
select set_config('test.firm', citeledger.create_firm('Alpha LLP')::text, true);
select citeledger.set_context(
  current_setting('test.firm')::uuid, null, array['matters:read']
);
insert into citeledger.documents (id, title)
values ('00000000-0000-4000-8000-0000000000d1', 'A');

select throws_ok(
  c.statement,
  '25000',
  'the citation graph is written under read committed only',
  format('refused under repeatable read: %s', c.statement)
)
from (
  values
    ('select citeledger.record_references(''00000000-0000-4000-8000-0000000000d1'', ''{}'')'),
    ('select citeledger.record_crossref_work(''00000000-0000-4000-8000-0000000000d1'', ''{}'')'),
    ('select citeledger.resolve_references()'),
    ('select citeledger.corpus_delete(''{}'')'),
    ('select citeledger.graph_gc()'),
    ('insert into citeledger.documents (title, doi) values (''B'', ''10.1000/b'')'),
    ('update citeledger.documents set doi = ''10.1000/a''')
) as c (statement);

select lives_ok(
  'update citeledger.documents set title = ''Renamed''',
  'a new title is no matter of the graph'
);
select lives_ok(
  'update citeledger.documents set deleted_at = now()',
  'a document without a DOI can be withdrawn'
);
select lives_ok(
  'update citeledger.documents set deleted_at = null',
  'and come back'
);
select is(
  citeledger.get_citations('00000000-0000-4000-8000-0000000000d1') -> 'references',
  '[]'::jsonb,
  'reading the graph is fine'
);
select lives_ok(
  format('select citeledger.delete_firm(%L)', current_setting('test.firm')),
  'a firm can be erased'
);

select * from finish();
rollback;
