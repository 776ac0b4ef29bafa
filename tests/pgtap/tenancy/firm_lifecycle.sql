-- A firm's life: create_firm, firm_ids, delete_firm. Erasure leaves no row in any table, whatever
-- stands around the rows (seals, walls, verdicts of this very transaction), and touches no other.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(33);

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

-- The number of rows of the context's firm in every table that has a firm_id, as one text.
create function pg_temp.inventory()
returns text
language plpgsql
as $$
declare
  v_table text;
  v_rows bigint;
  v_inventory text := '';
begin
  for v_table in
    select c.relname
    from pg_class as c
    where c.relnamespace = 'citeledger'::regnamespace
      and c.relkind in ('r', 'p')
      -- Page text is readable by nobody; owner/isolation.sql looks at it.
      and has_table_privilege(c.oid, 'select')
    order by c.relname collate "C"
  loop
    execute format('select count(*) from citeledger.%I', v_table) into v_rows;
    v_inventory := v_inventory || format('%s %s; ', v_table, v_rows);
  end loop;
  return v_inventory;
end
$$;

-- One firm with something in every table: an open matter and a walled one, a finalized turn whose
-- sources are sealed, one with a verdict that is not finalized, and one with neither.
create function pg_temp.fill()
returns void
language plpgsql
as $$
begin
  insert into citeledger.projects (id, matter_number, name)
  values
    ('00000000-0000-4000-8000-000000000001', 'M-1', 'Open'),
    ('00000000-0000-4000-8000-000000000002', 'M-2', 'Walled');
  insert into citeledger.project_members (project_id, user_id)
  values ('00000000-0000-4000-8000-000000000002', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
  insert into citeledger.documents (id, project_id, title, deleted_at)
  values
    ('00000000-0000-4000-8000-0000000000d1', '00000000-0000-4000-8000-000000000001', 'A', null),
    ('00000000-0000-4000-8000-0000000000d2', '00000000-0000-4000-8000-000000000002', 'B', now()),
    ('00000000-0000-4000-8000-0000000000d3', null, 'C', null);
  perform citeledger.replace_document_pages(
    '00000000-0000-4000-8000-0000000000d1', '[{"page_number": 1, "blocks": ["text"]}]'
  );
  insert into citeledger.documents (id, title, doi)
  values ('00000000-0000-4000-8000-0000000000d9', 'Cited', '10.1000/cited');
  perform citeledger.record_references('00000000-0000-4000-8000-0000000000d1',
    array['10.1000/cited']);
  insert into citeledger.chunks (id, document_id, chunk_index, content)
  values ('00000000-0000-4000-8000-000000000071', '00000000-0000-4000-8000-0000000000d1', 0,
    'text');
  insert into citeledger.kg_relation_types (relation_type) values ('governs');
  insert into citeledger.kg_entities (id, name, entity_type)
  values ('00000000-0000-4000-8000-000000000081', 'Lease', 'concept'),
    ('00000000-0000-4000-8000-000000000082', 'Tenant', 'party');
  insert into citeledger.kg_entity_mentions (entity_id,
    chunk_id) values ('00000000-0000-4000-8000-000000000081',
    '00000000-0000-4000-8000-000000000071');
  insert into citeledger.kg_relationships (
    source_entity_id, target_entity_id, relation_type, chunk_id, evidence
  )
  values ('00000000-0000-4000-8000-000000000081', '00000000-0000-4000-8000-000000000082',
    'governs', '00000000-0000-4000-8000-000000000071', 'text');
  insert into citeledger.chats (id, project_id)
  values
    ('00000000-0000-4000-8000-0000000000c1', '00000000-0000-4000-8000-000000000001'),
    ('00000000-0000-4000-8000-0000000000c2', '00000000-0000-4000-8000-000000000002'),
    ('00000000-0000-4000-8000-0000000000c3', null);
  insert into citeledger.messages (id, chat_id, role)
  values
    ('00000000-0000-4000-8000-0000000000e0', '00000000-0000-4000-8000-0000000000c1', 'user'),
    ('00000000-0000-4000-8000-0000000000e1', '00000000-0000-4000-8000-0000000000c1', 'assistant'),
    ('00000000-0000-4000-8000-0000000000e2', '00000000-0000-4000-8000-0000000000c2', 'assistant'),
    ('00000000-0000-4000-8000-0000000000e3', '00000000-0000-4000-8000-0000000000c3', 'assistant');
  insert into citeledger.message_citations (message_id, source_document_id, source_text)
  select m.id, d.id, 'quote'
  from citeledger.messages as m
  cross join citeledger.documents as d
  where m.role = 'assistant';
  insert into citeledger.message_caselaw_citations (message_id, opinion_id, cluster_id, source_text)
  select m.id, 1, 1, 'holding' from citeledger.messages as m;
  insert into citeledger.message_tool_sources (message_id, source_kind, label)
  select m.id, 'web', 'Page' from citeledger.messages as m;
  perform citeledger.finalize_turns(
    array[
      '00000000-0000-4000-8000-0000000000e1', '00000000-0000-4000-8000-0000000000e2'
    ]::uuid[]
  );
  perform citeledger.assemble_ledger_entries('00000000-0000-4000-8000-0000000000e3');
  perform citeledger.compute_and_record_gate('00000000-0000-4000-8000-0000000000e3');
  update citeledger.message_citations
  set verified = true, verification_method = 'exact_match';
end
$$;

set local role citeledger_admin;

-- create_firm.
select throws_ok(
  format('select citeledger.create_firm(%L)', c.name),
  '22023',
  'p_name is not a name for a firm',
  format('create_firm refuses %s', c.why)
)
from (
  values
    (null, 'null'),
    ('', 'an empty name'),
    ('   ', 'a name of blanks'),
    (E'\t\n\r', 'a name of tabs and line ends'),
    (repeat('x', 201), 'a name of 201 characters')
) as c (name, why);
select set_config('test.a', citeledger.create_firm(repeat('é', 200))::text, true);
select citeledger.set_context(current_setting('test.a')::uuid);
select is(
  (select f.name from citeledger.firms as f),
  repeat('é', 200),
  'create_firm takes 200 characters, however many bytes they are'
);
select set_config('test.b', citeledger.create_firm('Beta LLP')::text, true);
select set_config('test.c', citeledger.create_firm('Beta LLP')::text, true);
select isnt(
  current_setting('test.b'),
  current_setting('test.c'),
  'two firms may have the same name'
);

-- firm_ids.
select is(
  (
    select count(*)
    from citeledger.firm_ids() as f (id)
    where f.id::text in (
      current_setting('test.a'), current_setting('test.b'), current_setting('test.c')
    )
  ),
  3::bigint,
  'firm_ids names every firm, whatever the context'
);
select results_eq(
  'select f.id from citeledger.firm_ids() as f (id)',
  'select f.id from citeledger.firm_ids() as f (id) order by f.id',
  'firm_ids names them in order'
);

-- delete_firm: errors.
select throws_ok(
  format('select citeledger.delete_firm(%L)', c.firm_id),
  'P0002',
  'firm not found',
  format('delete_firm does not find %s', c.why)
)
from (
  values
    (null, 'null'),
    ('99999999-9999-4999-8999-999999999999', 'a firm that does not exist')
) as c (firm_id, why);

-- Two firms alike; one goes.
select citeledger.set_context(
  current_setting('test.a')::uuid, 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'
);
select pg_temp.fill();
select citeledger.set_context(
  current_setting('test.b')::uuid, 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'
);
select pg_temp.fill();
select is(
  pg_temp.inventory(),
  'chats 3; chunks 1; citation_ledger_entry 18; citation_ledger_entry_revision 12; '
  'document_citations 1; document_pages 1; document_references 1; documents 4; '
  'finalize_failure 0; firms 1; kg_entities 2; kg_entity_mentions 1; kg_relation_types 1; '
  'kg_relationships 1; message_caselaw_citations 4; message_citations 12; '
  'message_tool_sources 4; messages 4; project_members 1; projects 2; '
  'work_product_fiduciary_gate 3; ',
  'the firm has rows in every table'
);

-- By an admin who acts for another firm, and is no member of the walled matter.
select citeledger.set_context(
  current_setting('test.c')::uuid, null, array['matters:read']
);
select lives_ok(
  format('select citeledger.delete_firm(%L)', current_setting('test.a')),
  'delete_firm erases a firm with sealed turns, walled matters and verdicts of this transaction'
);
select is(
  array[
    citeledger.current_firm_id()::text,
    citeledger.current_user_id()::text,
    citeledger.has_permission('matters:read')::text
  ],
  array[current_setting('test.c'), null, 'true'],
  'delete_firm leaves the caller''s context as it was'
);
select citeledger.set_context(
  current_setting('test.a')::uuid, 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', array['matters:read']
);
select is(
  pg_temp.inventory(),
  'chats 0; chunks 0; citation_ledger_entry 0; citation_ledger_entry_revision 0; '
  'document_citations 0; document_pages 0; document_references 0; documents 0; '
  'finalize_failure 0; firms 0; kg_entities 0; kg_entity_mentions 0; kg_relation_types 0; '
  'kg_relationships 0; message_caselaw_citations 0; message_citations 0; '
  'message_tool_sources 0; messages 0; project_members 0; projects 0; '
  'work_product_fiduciary_gate 0; ',
  'no row of the firm is left in any table'
);
select is_empty('select citeledger.check_integrity()', 'and nothing of it to complain about');
select is(
  (
    select count(*)
    from citeledger.firm_ids() as f (id)
    where f.id::text = current_setting('test.a')
  ),
  0::bigint,
  'firm_ids names it no longer'
);
select throws_ok(
  format('select citeledger.delete_firm(%L)', current_setting('test.a')),
  'P0002',
  'firm not found',
  'it cannot be erased twice'
);
select throws_ok(
  'insert into citeledger.chats (title) values (''late'')',
  '23503',
  null,
  'nothing can be written for it any more'
);

select citeledger.set_context(
  current_setting('test.b')::uuid, 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', array['matters:read']
);
select is(
  pg_temp.inventory(),
  'chats 3; chunks 1; citation_ledger_entry 18; citation_ledger_entry_revision 12; '
  'document_citations 1; document_pages 1; document_references 1; documents 4; '
  'finalize_failure 0; firms 1; kg_entities 2; kg_entity_mentions 1; kg_relation_types 1; '
  'kg_relationships 1; message_caselaw_citations 4; message_citations 12; '
  'message_tool_sources 4; messages 4; project_members 1; projects 2; '
  'work_product_fiduciary_gate 3; ',
  'the other firm has every row that it had, with the same ids'
);
select is_empty('select citeledger.check_integrity()', 'the other firm is healthy');

-- By an admin who acts for the firm itself, and by one without any context.
select lives_ok(
  format('select citeledger.delete_firm(%L)', current_setting('test.b')),
  'delete_firm erases the firm of the context'
);
select is(
  citeledger.current_firm_id()::text,
  current_setting('test.b'),
  'the context is still what it was'
);
select citeledger.set_context(null);
select lives_ok(
  format('select citeledger.delete_firm(%L)', current_setting('test.c')),
  'delete_firm needs no context'
);
select is(citeledger.current_firm_id(), null, 'and leaves none behind');
select is(
  (
    select count(*)
    from citeledger.firm_ids() as f (id)
    where f.id::text in (
      current_setting('test.a'), current_setting('test.b'), current_setting('test.c')
    )
  ),
  0::bigint,
  'all three are gone'
);

set local role citeledger_app;
select throws_ok(
  format('select citeledger.delete_firm(%L)', current_setting('test.a')),
  '42501',
  null,
  'the app may not erase a firm'
);
select throws_ok(
  'delete from citeledger.firms',
  '42501',
  null,
  'the app may not delete from firms'
);
select throws_ok(
  'insert into citeledger.firms (name) values (''Forged'')',
  '42501',
  null,
  'the app may not insert into firms'
);
set local role citeledger_admin;
select throws_ok(
  'insert into citeledger.firms (name) values (''Forged'')',
  '42501',
  null,
  'the admin makes firms through create_firm alone'
);

select * from finish();

rollback;
