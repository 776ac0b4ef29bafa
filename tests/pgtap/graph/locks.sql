-- The graph's lock comes before the locks of rows: every statement of an ingest takes it before it
-- touches a row, so even one that finds none. Two ingests that share a document, an entity or a
-- place in the graph would else wait for each other.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(16);

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

create function pg_temp.locks()
returns bigint
language sql
as $$
  select count(*)
  from pg_locks as l
  where l.locktype = 'advisory' and l.pid = pg_backend_pid() and l.granted
$$;

set local role citeledger_admin;
select set_config('test.firm', citeledger.create_firm('Alpha LLP')::text, true);
select citeledger.set_context(
  current_setting('test.firm')::uuid, null, array['matters:read']
);
set local role citeledger_app;

savepoint before_ingest;
insert into citeledger.documents (title)
select 'A' where false;
select is(
  pg_temp.locks(), 1::bigint, 'inserting documents, with a DOI or without, takes the lock first'
);
rollback to savepoint before_ingest;
insert into citeledger.chunks (document_id)
select gen_random_uuid() where false;
select is(pg_temp.locks(), 1::bigint, 'inserting chunks takes the lock first');
rollback to savepoint before_ingest;
insert into citeledger.kg_relation_types (relation_type)
select 'A' where false;
select is(pg_temp.locks(), 1::bigint, 'inserting types of relationship takes the lock first');
rollback to savepoint before_ingest;
insert into citeledger.kg_entities (name)
select 'A' where false;
select is(pg_temp.locks(), 1::bigint, 'inserting entities takes the lock first');
rollback to savepoint before_ingest;
insert into citeledger.kg_entity_mentions (entity_id)
select gen_random_uuid() where false;
select is(pg_temp.locks(), 1::bigint, 'inserting mentions takes the lock first');
rollback to savepoint before_ingest;
insert into citeledger.kg_relationships (evidence)
select 'A' where false;
select is(pg_temp.locks(), 1::bigint, 'inserting relationships takes the lock first');
rollback to savepoint before_ingest;
update citeledger.documents set title = 'Renamed' where false;
select is(pg_temp.locks(), 1::bigint, 'a new title takes the lock first');
rollback to savepoint before_ingest;
update citeledger.documents set deleted_at = now() where false;
select is(pg_temp.locks(), 1::bigint, 'a withdrawal takes the lock first');
rollback to savepoint before_ingest;

-- Without a context the firm is not known before the rows are: they take the lock themselves.
select set_config('citeledger.firm_id', '', true);
insert into citeledger.documents (title)
select 'A' where false;
select is(pg_temp.locks(), 0::bigint, 'a statement without a context takes no lock');
rollback to savepoint before_ingest;

-- No role may delete documents but through corpus_delete, which takes the lock itself; the trigger
-- is there for the owner. What it guards shows in erasing a firm.
insert into citeledger.documents (title, doi) values ('A', '10.1000/a');
select is(pg_temp.locks(), 1::bigint, 'a document with a DOI takes the graph''s lock');
rollback to savepoint before_ingest;
set local role citeledger_admin;
delete from citeledger.projects where false;
select is(pg_temp.locks(), 1::bigint, 'deleting matters takes the lock first');
rollback to savepoint before_ingest;
set local role citeledger_admin;
select lives_ok(
  'select citeledger.corpus_delete(array[gen_random_uuid()])',
  'corpus_delete passes over what is not there'
);
select is(pg_temp.locks(), 1::bigint, 'corpus_delete takes the graph''s lock all the same');

select * from finish();
rollback;
