-- The graph's lock comes before the locks of rows: a statement that could change who holds a DOI
-- takes it before it touches a row, so even one that finds none. Two sessions that change the same
-- document would else wait for each other.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(10);

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

insert into citeledger.documents (title) values ('No DOI');
select is(pg_temp.locks(), 0::bigint, 'a document without a DOI does not wait for the graph');
update citeledger.documents set title = 'Renamed';
select is(pg_temp.locks(), 0::bigint, 'a new title does not wait for the graph');

savepoint before_update;
update citeledger.documents set deleted_at = now() where false;
select is(pg_temp.locks(), 1::bigint, 'a withdrawal takes the graph''s lock before any row''s');
rollback to savepoint before_update;
update citeledger.documents set doi = '10.1000/a' where false;
select is(pg_temp.locks(), 1::bigint, 'a change of DOI takes the graph''s lock before any row''s');
rollback to savepoint before_update;

-- No role may delete documents but through corpus_delete, which takes the lock itself; the trigger
-- is there for the owner. What it guards shows in erasing a firm.
insert into citeledger.documents (title, doi) values ('A', '10.1000/a');
select is(pg_temp.locks(), 1::bigint, 'a document with a DOI takes the graph''s lock');
rollback to savepoint before_update;
set local role citeledger_admin;
select lives_ok(
  'select citeledger.corpus_delete(array[gen_random_uuid()])',
  'corpus_delete passes over what is not there'
);
select is(pg_temp.locks(), 1::bigint, 'corpus_delete takes the graph''s lock all the same');

select * from finish();
rollback;
