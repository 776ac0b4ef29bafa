-- Edges that stayed where a document was withdrawn past the triggers: the walk looks for itself, so
-- what is withdrawn or hidden is neither returned nor walked through, whatever the edges say.
--
-- Needs a login that may SET ROLE to citeledger_owner (the deployer), no superuser and not exempt
-- from row security. All is rolled back.

begin;

select plan(8);

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
select set_config('test.firm', citeledger.create_firm('Alpha LLP')::text, true);
select citeledger.set_context(current_setting('test.firm')::uuid, null, array['matters:read']);
-- A cites W and B; W, which is withdrawn, cites C; B cites D; D cites W. No list says so.
insert into citeledger.documents (id, title, deleted_at)
values
  ('00000000-0000-4000-8000-0000000000da', 'A', null),
  ('00000000-0000-4000-8000-0000000000db', 'B', null),
  ('00000000-0000-4000-8000-0000000000dc', 'C', null),
  ('00000000-0000-4000-8000-0000000000dd', 'D', null),
  ('00000000-0000-4000-8000-0000000000de', 'W', now());
insert into citeledger.document_citations (citing_document_id, cited_document_id, cited_doi, source)
select
  ('00000000-0000-4000-8000-0000000000d' || e.citing)::uuid,
  ('00000000-0000-4000-8000-0000000000d' || e.cited)::uuid,
  '10.1000/' || e.cited, 'crossref'
from (values ('a', 'e'), ('a', 'b'), ('e', 'c'), ('b', 'd'), ('d', 'e')) as e (citing, cited);
create function pg_temp.walk(p_hops integer, p_direction text)
returns text
language sql
stable
as $$
  select string_agg(d.title || w.hop, ' ' order by w.hop, d.title collate "C")
  from citeledger.walk_citations(
    array['00000000-0000-4000-8000-0000000000da']::uuid[], p_hops, p_direction
  ) as w
  left join citeledger.documents as d on d.id = w.document_id
$$;

select is(pg_temp.walk(1, 'cites'), 'A0 B1', 'what is withdrawn is not returned');
select is(pg_temp.walk(9, 'both'), 'A0 B1 D2', 'nor walked through, whichever hop finds it');
update citeledger.documents set deleted_at = null where title = 'W';
select is(pg_temp.walk(9, 'cites'), 'A0 B1 W1 D2', 'what is given back is there again');

-- The same where a wall stands.
insert into citeledger.projects (id, matter_number, name)
values ('00000000-0000-4000-8000-0000000000f1', 'M-1', 'Walled');
insert into citeledger.project_members (project_id, user_id)
values ('00000000-0000-4000-8000-0000000000f1', '00000000-0000-4000-8000-000000000002');
select is(pg_temp.walk(9, 'cites'), 'A0 B1 W1 D2', 'a wall around nothing');
update citeledger.documents set project_id = '00000000-0000-4000-8000-0000000000f1'
where title = 'B';
select is(pg_temp.walk(9, 'cites'), 'A0 W1', 'and around what leads on');

select * from finish();
rollback;
