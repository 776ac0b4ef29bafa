-- Pages and blocks that no function writes: the constraints refuse them, whoever comes, and what no
-- constraint can see, check_integrity finds.
--
-- Needs a login that may SET ROLE to citeledger_owner (the deployer), no superuser and not exempt
-- from row security. Row security is forced, so the owner too sees the firm of its context alone.
-- All is rolled back.

begin;

select plan(33);

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

select is(
  (
    select array[r.rolsuper, r.rolbypassrls]
    from pg_roles as r
    where r.rolname = current_user
  ),
  array[false, false],
  'citeledger_owner is no superuser and not exempt from row security'
);

create function pg_temp.id(p_n text)
returns uuid
language sql
immutable
as $$
  select ('00000000-0000-4000-8000-' || lpad(p_n, 12, '0'))::uuid
$$;
create function pg_temp.found()
returns text
language sql
as $$
  select coalesce(
    string_agg(
      format('%s in %s: %s', c.problem, c.table_name, c.row_key), ', ' order by c.row_key
    ),
    'healthy'
  )
  from citeledger.check_integrity() as c
$$;
-- Inserts a row that is good but for what p_change says: a JSON object of columns.
create function pg_temp.page(p_change jsonb default '{}')
returns void
language sql
as $$
  insert into citeledger.document_pages
  select (jsonb_populate_record(
    null::citeledger.document_pages,
    jsonb_build_object(
      'firm_id', current_setting('test.a'),
      'document_id', pg_temp.id('d1'),
      'page_number', 5,
      'created_at', now()
    ) || p_change
  )).*
$$;
create function pg_temp.block(p_change jsonb default '{}')
returns void
language sql
as $$
  insert into citeledger.document_page_blocks
  select (jsonb_populate_record(
    null::citeledger.document_page_blocks,
    jsonb_build_object(
      'firm_id', current_setting('test.a'),
      'document_id', pg_temp.id('d1'),
      'page_number', 1,
      'block_index', 3,
      'content', 'text',
      'created_at', now()
    ) || p_change
  )).*
$$;

select set_config('test.a', citeledger.create_firm('Alpha LLP')::text, true);
select set_config('test.b', citeledger.create_firm('Beta LLP')::text, true);
select citeledger.set_context(current_setting('test.b')::uuid, null, array['matters:read']);
insert into citeledger.documents (id, title) values (pg_temp.id('bd'), 'Theirs');
select citeledger.replace_document_pages(
  pg_temp.id('bd'), '[{"page_number": 1, "blocks": ["a"]}, {"page_number": 9, "blocks": []}]'
);
select citeledger.set_context(current_setting('test.a')::uuid, null, array['matters:read']);
insert into citeledger.documents (id, title)
values (pg_temp.id('d1'), 'Lease'), (pg_temp.id('d2'), 'Letter');
select citeledger.replace_document_pages(
  pg_temp.id(d.id),
  '[{"page_number": 1, "blocks": ["a", "b", "c"]}, {"page_number": 2, "blocks": []}]'
)
from (values ('d1'), ('d2')) as d (id);

-- The constraints.
select lives_ok('select pg_temp.page()', 'a page that is good');
select lives_ok('select pg_temp.block()', 'a block that is good');
select throws_ok(
  format('select pg_temp.page(%L)', c.change),
  c.sqlstate,
  null,
  format('no page: %s', c.why)
)
from (
  values
    ('{"page_number": 0}', '23514', 'page 0'),
    ('{"page_number": -1}', '23514', 'page -1'),
    ('{"page_number": null}', '23502', 'no number'),
    ('{"page_number": 1}', '23505', 'a page twice'),
    ('{"created_at": null}', '23502', 'no time'),
    ('{"document_id": null}', '23502', 'no document'),
    ('{"document_id": "00000000-0000-4000-8000-00000000dead"}', '23503', 'no such document'),
    ('{"document_id": "00000000-0000-4000-8000-0000000000bd"}', '23503', 'another firm''s document')
) as c (change, sqlstate, why);
select throws_ok(
  format('select pg_temp.page(%L)', jsonb_build_object('firm_id', current_setting('test.b'))),
  '42501',
  null,
  'no page: for another firm'
);
select throws_ok(
  format('select pg_temp.block(%L)', c.change),
  c.sqlstate,
  null,
  format('no block: %s', c.why)
)
from (
  values
    ('{"block_index": -1}', '23514', 'block -1'),
    ('{"block_index": null}', '23502', 'no index'),
    ('{"block_index": 0}', '23505', 'a block twice'),
    ('{"content": null}', '23502', 'no text'),
    ('{"created_at": null}', '23502', 'no time'),
    ('{"page_number": 7}', '23503', 'no such page'),
    ('{"page_number": 9}', '23503', 'a page of another document'),
    ('{"document_id": "00000000-0000-4000-8000-00000000dead"}', '23503', 'no such document'),
    ('{"document_id": "00000000-0000-4000-8000-0000000000bd"}', '23503', 'another firm''s page')
) as c (change, sqlstate, why);
select throws_ok(
  format('select pg_temp.block(%L)', jsonb_build_object('firm_id', current_setting('test.b'))),
  '42501',
  null,
  'no block: for another firm'
);
select throws_ok(
  'update citeledger.document_pages set page_number = 0', '23514', null, 'nor by a change'
);
select throws_ok(
  'update citeledger.document_page_blocks set block_index = -1', '23514', null, 'nor of a block'
);

-- A gap is no row, so no constraint sees it.
select is(pg_temp.found(), 'healthy', 'there is nothing to find to begin with');
delete from citeledger.document_page_blocks
where document_id = pg_temp.id('d1') and page_number = 1 and block_index = 1;
select is(
  pg_temp.found(),
  'page_block_gap in document_page_blocks: 00000000-0000-4000-8000-0000000000d1/1',
  'a block is lost in the middle'
);
delete from citeledger.document_page_blocks
where document_id = pg_temp.id('d2') and page_number = 1 and block_index = 0;
select is(
  pg_temp.found(),
  'page_block_gap in document_page_blocks: 00000000-0000-4000-8000-0000000000d1/1, '
    || 'page_block_gap in document_page_blocks: 00000000-0000-4000-8000-0000000000d2/1',
  'a block is lost at the beginning, in another document'
);
select citeledger.replace_document_pages(
  pg_temp.id(d.id), '[{"page_number": 1, "blocks": ["a"]}]'
)
from (values ('d1'), ('d2')) as d (id);
select is(pg_temp.found(), 'healthy', 'replacing the pages mends it');

-- A document takes its pages with it, and a page its blocks.
delete from citeledger.documents where id = pg_temp.id('d1');
select results_eq(
  $$select p.document_id from citeledger.document_pages as p$$,
  array[pg_temp.id('d2')],
  'the pages of a document that is deleted are gone'
);
delete from citeledger.document_pages where document_id = pg_temp.id('d2');
select is_empty(
  'select from citeledger.document_page_blocks', 'the blocks of a page that is deleted are gone'
);

select * from finish();

rollback;
