-- walk_citations: each document once, at its least hop, in every direction, to the graph's depth.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(48);

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
select citeledger.set_context(current_setting('test.a')::uuid, null, array['matters:read']);
set local role citeledger_app;
create function pg_temp.doc(variadic p_titles text[])
returns uuid[]
language sql
stable
as $$
  select array(select d.id from citeledger.documents as d where d.title = any(p_titles))
$$;
-- The walk as "title hop", by hop and title.
create function pg_temp.walk(p_ids uuid[], p_hops integer, p_direction text)
returns text
language sql
stable
as $$
  select coalesce(string_agg(d.title || w.hop, ' ' order by w.hop, d.title collate "C"), '')
  from citeledger.walk_citations(p_ids, p_hops, p_direction) as w
  left join citeledger.documents as d on d.id = w.document_id
$$;
grant execute on function pg_temp.walk(uuid[], integer, text) to public;
-- Whether the rows of a walk come by hop, and within a hop by id.
create function pg_temp.is_in_order(p_ids uuid[], p_hops integer)
returns boolean
language sql
stable
as $$
  select bool_and((w.hop, w.document_id) > (w.hop_before, w.id_before))
  from (
    select w.hop, w.document_id,
      lag(w.hop) over (order by w.place) as hop_before,
      lag(w.document_id) over (order by w.place) as id_before
    from citeledger.walk_citations(p_ids, p_hops)
      with ordinality as w (document_id, hop, place)
  ) as w
$$;
grant execute on function pg_temp.is_in_order(uuid[], integer) to public;

-- A cites B and C; B and C cite D; D cites A (a cycle) and E; F is alone; G cites A.
insert into citeledger.documents (title, doi)
select chr(64 + n), '10.1000/' || chr(64 + n) from generate_series(1, 7) as n;
select citeledger.record_references((pg_temp.doc(l.citing))[1], l.dois)
from (
  values
    ('A', array['10.1000/b', '10.1000/c', '10.1000/a']),
    ('B', array['10.1000/d']),
    ('C', array['10.1000/d']),
    ('D', array['10.1000/a', '10.1000/e']),
    ('G', array['10.1000/a'])
) as l (citing, dois);

select is(pg_temp.walk(pg_temp.doc('A'), 0, 'both'), 'A0', 'hop 0 is the document itself');
select is(pg_temp.walk(pg_temp.doc('A'), 1, 'cites'), 'A0 B1 C1', 'what it cites');
select is(pg_temp.walk(pg_temp.doc('A'), 1, 'cited_by'), 'A0 D1 G1', 'what cites it');
select is(pg_temp.walk(pg_temp.doc('A'), 1, 'both'), 'A0 B1 C1 D1 G1', 'both');
select is(
  pg_temp.walk(pg_temp.doc('A'), 3, 'cites'), 'A0 B1 C1 D2 E3',
  'each once at its least hop, the start not again, though the walk comes back to it'
);
select is(
  pg_temp.walk(pg_temp.doc('A'), 1000000000, 'cites'), 'A0 B1 C1 D2 E3',
  'a limit beyond the depth of the graph ends with the graph'
);
select is(pg_temp.walk(pg_temp.doc('A'), 2147483647, 'both'), 'A0 B1 C1 D1 G1 E2', 'any limit');
select is(pg_temp.walk(pg_temp.doc('E'), 9, 'cited_by'), 'E0 D1 B2 C2 A3 G4', 'against the arrows');
select is(pg_temp.walk(pg_temp.doc('E'), 9, 'cites'), 'E0', 'where nothing leads on');
select is(pg_temp.walk(pg_temp.doc('F'), 9, 'both'), 'F0', 'alone');
select is(
  pg_temp.walk(pg_temp.doc('B', 'E'), 1, 'both'), 'B0 E0 A1 D1',
  'from several: at the least hop from any of them'
);
select is(
  pg_temp.walk(pg_temp.doc('A', 'D') || pg_temp.doc('A'), 1, 'cites'), 'A0 D0 B1 C1 E1',
  'one that is given and found is at 0, and one that is given twice is there once'
);
select is(
  pg_temp.walk(array['00000000-0000-4000-8000-0000000000dd', null]::uuid[], 9, 'both'), '',
  'ids that are not there start nothing'
);
select is(
  pg_temp.walk(pg_temp.doc('F') || '00000000-0000-4000-8000-0000000000dd'::uuid, 9, 'both'), 'F0',
  'nor do they spoil the others'
);
select is(pg_temp.walk('{}', 9, 'both'), '', 'no documents');
select is(pg_temp.walk(null, 9, 'both'), '', 'null');
select results_eq(
  $$select d.title, w.hop
    from citeledger.walk_citations(pg_temp.doc('D'))
      with ordinality as w (document_id, hop, place)
    join citeledger.documents as d on d.id = w.document_id
    order by w.hop, d.title collate "C"$$,
  $$values ('D', 0), ('A', 1), ('B', 1), ('C', 1), ('E', 1), ('G', 2)$$,
  'by default two hops in both directions'
);
select ok(
  (
    select bool_and(w.hop >= w.before)
    from (
      select w.hop, lag(w.hop, 1, 0) over (order by w.place) as before
      from citeledger.walk_citations(pg_temp.doc('A'), 9)
        with ordinality as w (document_id, hop, place)
    ) as w
  ),
  'rows come by hop'
);

-- A hub.
insert into citeledger.documents (title, doi)
select 'H' || n, '10.2000/' || n from generate_series(1, 300) as n;
select citeledger.record_references(
  (pg_temp.doc('F'))[1], array(select '10.2000/' || n from generate_series(1, 300) as n)
);
select results_eq(
  $$select w.hop, count(*), count(distinct w.document_id)
    from citeledger.walk_citations(pg_temp.doc('H7'), 4) as w group by w.hop order by w.hop$$,
  'values (0, 1::bigint, 1::bigint), (1, 1, 1), (2, 299, 299)',
  'over a hub to all its leaves, each once'
);

select ok(
  pg_temp.is_in_order(pg_temp.doc('A', 'H7'), 4),
  'rows come by hop, and within a hop by id'
);
select ok(
  pg_temp.is_in_order(pg_temp.doc('A', 'H7'), 2),
  'the last hop too, which comes by another way'
);

-- What is hidden is neither returned nor walked through.
update citeledger.documents set deleted_at = now() where title = 'D';
select is(pg_temp.walk(pg_temp.doc('A'), 9, 'cites'), 'A0 B1 C1', 'not through what is withdrawn');
select is(pg_temp.walk(pg_temp.doc('D'), 9, 'both'), '', 'nor from it');
update citeledger.documents set deleted_at = null where title = 'D';
insert into citeledger.projects (id, matter_number, name)
values ('00000000-0000-4000-8000-0000000000f1', 'M-1', 'Walled');
update citeledger.documents set project_id = '00000000-0000-4000-8000-0000000000f1'
where title = 'D';
select is(pg_temp.walk(pg_temp.doc('A'), 9, 'cites'), 'A0 B1 C1 D2 E3', 'a matter without a wall');
set local role citeledger_admin;
insert into citeledger.project_members (project_id, user_id)
values ('00000000-0000-4000-8000-0000000000f1', '00000000-0000-4000-8000-000000000002');
set local role citeledger_app;
select is(pg_temp.walk(pg_temp.doc('A'), 9, 'cites'), 'A0 B1 C1', 'not through a wall');
select is(pg_temp.walk(pg_temp.doc('D'), 9, 'both'), '', 'nor from behind it');
select citeledger.set_context(
  current_setting('test.a')::uuid, '00000000-0000-4000-8000-000000000002', array['matters:read']
);
select is(pg_temp.walk(pg_temp.doc('A'), 9, 'cites'), 'A0 B1 C1 D2 E3', 'but for a member');

-- Where a wall stands somewhere, the rest of the firm's documents are there all the same.
select citeledger.set_context(current_setting('test.a')::uuid, null, array['matters:read']);
select is(
  pg_temp.walk(pg_temp.doc('H7'), 1, 'cited_by'), 'H70 F1', 'a walk that meets no matter'
);
insert into citeledger.projects (id, matter_number, name)
values ('00000000-0000-4000-8000-0000000000f2', 'M-2', 'Open');
update citeledger.documents set project_id = '00000000-0000-4000-8000-0000000000f2'
where title in ('B', 'C', 'H8');
select is(
  pg_temp.walk(pg_temp.doc('A'), 9, 'cites'), 'A0 B1 C1', 'an open matter, and a wall behind it'
);
update citeledger.documents set project_id = '00000000-0000-4000-8000-0000000000f1'
where title = 'C';
select is(
  pg_temp.walk(pg_temp.doc('A'), 9, 'both'), 'A0 B1 G1', 'of one hop one in an open matter stays'
);
select results_eq(
  $$select w.hop, count(*)
    from citeledger.walk_citations(pg_temp.doc('F'), 1) as w group by w.hop order by w.hop$$,
  'values (0, 1::bigint), (1, 300)',
  'and among many of no matter'
);
select ok(
  pg_temp.is_in_order(pg_temp.doc('F'), 1),
  'in their order'
);
-- Another firm's wall is nobody's here, nor is what it withdrew.
update citeledger.documents set deleted_at = now() where title = 'H9';
select is(
  pg_temp.walk(pg_temp.doc('B', 'C', 'D', 'E', 'H8', 'H9'), 0, 'both'), 'B0 E0 H80',
  'of the given ones neither the walled nor the withdrawn, but those in an open matter'
);
select citeledger.set_context(current_setting('test.b')::uuid, null, array['matters:read']);
insert into citeledger.documents (title, doi) values ('X', '10.1000/x'), ('Y', '10.1000/y');
select citeledger.record_references((pg_temp.doc('X'))[1], '{10.1000/y}');
select is(pg_temp.walk(pg_temp.doc('X'), 9, 'both'), 'X0 Y1', 'a firm without walls');
select citeledger.set_context(current_setting('test.a')::uuid, null, array['matters:read']);
select results_eq(
  $$select w.hop, count(*)
    from citeledger.walk_citations(pg_temp.doc('F'), 1) as w group by w.hop order by w.hop$$,
  'values (0, 1::bigint), (1, 299)',
  'one of many is withdrawn'
);

-- What is refused.
select throws_ok(
  format('select * from citeledger.walk_citations(%L, %L)', pg_temp.doc('A'), h.hops),
  '22023', 'p_max_hops is not a number of hops', 'hops: ' || coalesce(h.hops::text, 'null')
)
from (values (-1), (-2147483648), (null)) as h (hops);
select throws_ok(
  format('select * from citeledger.walk_citations(%L, 1, %L)', pg_temp.doc('A'), h.direction),
  '22023', 'p_direction is not a direction', 'direction: ' || coalesce(h.direction, 'null')
)
from (values (''), ('Both'), ('cites '), ('references'), (null)) as h (direction);
select set_config('test.ids', pg_temp.doc('A')::text, true);
select citeledger.set_context(current_setting('test.b')::uuid, null, array['matters:read']);
select is(
  pg_temp.walk(current_setting('test.ids')::uuid[], 9, 'both'), '', 'another firm finds nothing'
);
select citeledger.set_context(current_setting('test.a')::uuid);
set local role citeledger_reader;
select throws_ok(
  format('select * from citeledger.walk_citations(%L)', current_setting('test.ids')),
  '42501', null, 'without the permission'
);

select * from finish();

rollback;
