-- Deleting documents by hand, as the owner may: the graph's lock comes before the locks of rows.
--
-- Needs a login that may SET ROLE to citeledger_owner (the deployer), no superuser and not exempt
-- from row security. All is rolled back.

begin;

select plan(4);

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
select citeledger.set_context(citeledger.create_firm('Alpha LLP'));
delete from citeledger.documents where false;
select is(
  (
    select count(*)
    from pg_locks as l
    where l.locktype = 'advisory' and l.pid = pg_backend_pid() and l.granted
  ),
  1::bigint,
  'a delete takes the graph''s lock before any row''s'
);

select * from finish();
rollback;
