-- A firm sees, writes and references its own rows alone. Two firms are filled alike; each is looked
-- at from the other, from no context, and from a context that is malformed.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(153);

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

-- Fills the firm of the context with a row in every table. The suffix makes the ids of two firms
-- differ where they must, for an id is unique within its firm only.
create function pg_temp.fill(p_suffix text)
returns void
language plpgsql
as $$
declare
  v_base text := '00000000-0000-4000-8000-0000000000';
begin
  insert into citeledger.projects (id, matter_number, name)
  values ((v_base || '1' || p_suffix)::uuid, 'M-1', 'Matter');
  insert into citeledger.project_members (project_id, user_id)
  values ((v_base || '1' || p_suffix)::uuid, '22222222-2222-4222-8222-222222222222');
  insert into citeledger.documents (id, project_id, title)
  values ((v_base || '2' || p_suffix)::uuid, (v_base || '1' || p_suffix)::uuid, 'Lease');
  perform citeledger.replace_document_pages(
    (v_base || '2' || p_suffix)::uuid, '[{"page_number": 1, "blocks": ["text"]}]'
  );
  insert into citeledger.documents (id, title, doi)
  values ((v_base || '8' || p_suffix)::uuid, 'Cited', '10.1000/cited');
  perform citeledger.record_references((v_base || '2' || p_suffix)::uuid, array['10.1000/cited']);
  insert into citeledger.chunks (id, document_id, chunk_index, content)
  values ((v_base || '9' || p_suffix)::uuid, (v_base || '2' || p_suffix)::uuid, 0, 'text');
  insert into citeledger.kg_relation_types (relation_type) values ('governs');
  insert into citeledger.kg_entities (id, name, entity_type)
  values ((v_base || 'a' || p_suffix)::uuid, 'Lease', 'concept'),
    ((v_base || 'b' || p_suffix)::uuid, 'Tenant', 'party');
  insert into citeledger.kg_entity_mentions (entity_id,
    chunk_id) values ((v_base || 'a' || p_suffix)::uuid, (v_base || '9' || p_suffix)::uuid);
  insert into citeledger.kg_relationships (
    source_entity_id, target_entity_id, relation_type, chunk_id, evidence
  )
  values ((v_base || 'a' || p_suffix)::uuid, (v_base || 'b' || p_suffix)::uuid, 'governs',
    (v_base || '9' || p_suffix)::uuid, 'text');
  insert into citeledger.chats (id, project_id, title)
  values ((v_base || '3' || p_suffix)::uuid, (v_base || '1' || p_suffix)::uuid, 'Chat');
  insert into citeledger.messages (id, chat_id, role, content)
  values (
    (v_base || '4' || p_suffix)::uuid, (v_base || '3' || p_suffix)::uuid, 'assistant', 'Answer'
  );
  insert into citeledger.message_citations (
    id, message_id, source_document_id, source_text, verified, verification_method
  )
  values (
    (v_base || '5' || p_suffix)::uuid, (v_base || '4' || p_suffix)::uuid,
    (v_base || '2' || p_suffix)::uuid, 'quote', true, 'exact_match'
  );
  insert into citeledger.message_caselaw_citations (
    id, message_id, opinion_id, cluster_id, source_text
  )
  values ((v_base || '6' || p_suffix)::uuid, (v_base || '4' || p_suffix)::uuid, 1, 2, 'holding');
  insert into citeledger.message_tool_sources (id, message_id, source_kind, label)
  values ((v_base || '7' || p_suffix)::uuid, (v_base || '4' || p_suffix)::uuid, 'web', 'Page');
  perform citeledger.finalize_turn((v_base || '4' || p_suffix)::uuid);
  -- A later verification leaves a revision.
  update citeledger.message_caselaw_citations
  set verified = true, verification_method = 'tolerant_match'
  where id = (v_base || '6' || p_suffix)::uuid;
end
$$;

-- How many rows of a table there are for the current role and context, and of how many firms other
-- than p_firm.
create function pg_temp.seen(p_table text, p_firm text)
returns text
language plpgsql
as $$
declare
  v_seen text;
begin
  execute format(
    'select format(''%%s own, %%s foreign'', count(*) filter (where firm_id::text = %L), '
    'count(*) filter (where firm_id::text is distinct from %L)) from citeledger.%I',
    p_firm, p_firm, p_table
  )
  into v_seen;
  return v_seen;
end
$$;

set local role citeledger_admin;
select set_config('test.a', citeledger.create_firm('Alpha LLP')::text, true);
select set_config('test.b', citeledger.create_firm('Beta LLP')::text, true);
select citeledger.set_context(
  current_setting('test.a')::uuid, '22222222-2222-4222-8222-222222222222'
);
select pg_temp.fill('a');
select citeledger.set_context(
  current_setting('test.b')::uuid, '22222222-2222-4222-8222-222222222222'
);
select pg_temp.fill('b');

-- The list is compared with the catalogs, so that no new table is forgotten here.
create temporary table expected_rows (table_name text, rows integer);
insert into expected_rows (table_name, rows)
values
  ('projects', 1),
  ('project_members', 1),
  ('documents', 2),
  ('document_references', 1),
  ('document_citations', 1),
  ('chunks', 1),
  ('kg_relation_types', 1),
  ('kg_entities', 2),
  ('kg_entity_mentions', 1),
  ('kg_relationships', 1),
  ('document_pages', 1),
  ('chats', 1),
  ('messages', 1),
  ('message_citations', 1),
  ('message_caselaw_citations', 1),
  ('message_tool_sources', 1),
  ('citation_ledger_entry', 3),
  ('citation_ledger_entry_revision', 1),
  ('work_product_fiduciary_gate', 1),
  ('finalize_failure', 0);
select set_eq(
  'select table_name from expected_rows',
  $$select c.relname::text
    from pg_class as c
    where c.relnamespace = 'citeledger'::regnamespace
      and c.relkind in ('r', 'p')
      -- Page text is readable by nobody; owner/isolation.sql looks at it.
      and c.relname not in ('firms', 'document_page_blocks')$$,
  'every tenant table is looked at here'
);

-- Reading, both ways.
select citeledger.set_context(
  current_setting('test.a')::uuid, '22222222-2222-4222-8222-222222222222'
);
select is(
  pg_temp.seen(t.table_name, current_setting('test.a')),
  t.rows || ' own, 0 foreign',
  format('the first firm sees its own rows alone in %s', t.table_name)
)
from expected_rows as t;
select results_eq(
  'select id::text from citeledger.firms',
  array[current_setting('test.a')],
  'the first firm sees itself alone in firms'
);
select citeledger.set_context(
  current_setting('test.b')::uuid, '22222222-2222-4222-8222-222222222222'
);
select is(
  pg_temp.seen(t.table_name, current_setting('test.b')),
  t.rows || ' own, 0 foreign',
  format('the second firm sees its own rows alone in %s', t.table_name)
)
from expected_rows as t;
select results_eq(
  'select id::text from citeledger.firms',
  array[current_setting('test.b')],
  'the second firm sees itself alone in firms'
);

-- No context and a malformed one.
select citeledger.set_context(null);
select is(
  pg_temp.seen(t.table_name, current_setting('test.a')),
  '0 own, 0 foreign',
  format('without a context there is no row in %s', t.table_name)
)
from expected_rows as t;
select is_empty('select from citeledger.firms', 'without a context there is no row in firms');
set local citeledger.firm_id = '%';
select is(
  pg_temp.seen(t.table_name, current_setting('test.a')),
  '0 own, 0 foreign',
  format('with a malformed context there is no row in %s', t.table_name)
)
from expected_rows as t;

-- Writing for another firm. The ids are new, so that nothing but row security refuses.
set local role citeledger_app;
select citeledger.set_context(
  current_setting('test.a')::uuid, '22222222-2222-4222-8222-222222222222'
);
select throws_ok(
  format('insert into citeledger.%s values (%L, ''%s'')',
    c.columns, current_setting('test.b'), array_to_string(c.rest, ''', ''')),
  '42501',
  format('new row violates row-level security policy for table "%s"', c.table_name),
  format('no row for another firm can be inserted into %s', c.table_name)
)
from (
  values
    ('projects', 'projects (firm_id, matter_number, name)', array['M-9', 'Forged']),
    ('documents', 'documents (firm_id, title)', array['Forged']),
    ('chats', 'chats (firm_id, title)', array['Forged']),
    ('messages', 'messages (firm_id, chat_id, role)',
      array['00000000-0000-4000-8000-00000000003b', 'assistant']),
    ('message_citations', 'message_citations (firm_id, message_id, source_text)',
      array['00000000-0000-4000-8000-00000000004b', 'forged']),
    ('message_caselaw_citations',
      'message_caselaw_citations (firm_id, message_id, opinion_id, cluster_id, source_text)',
      array['00000000-0000-4000-8000-00000000004b', '1', '1', 'forged']),
    ('message_tool_sources', 'message_tool_sources (firm_id, message_id, source_kind, label)',
      array['00000000-0000-4000-8000-00000000004b', 'web', 'forged'])
) as c (table_name, columns, rest);
set local role citeledger_admin;
select throws_ok(
  format(
    'insert into citeledger.project_members (firm_id, project_id, user_id) values (%L, %L, %L)',
    current_setting('test.b'),
    '00000000-0000-4000-8000-00000000001b',
    '33333333-3333-4333-8333-333333333333'
  ),
  '42501',
  'new row violates row-level security policy for table "project_members"',
  'no row for another firm can be inserted into project_members'
);
select throws_ok(
  format(
    'update citeledger.project_members set firm_id = %L',
    current_setting('test.b')
  ),
  '42501',
  'new row violates row-level security policy for table "project_members"',
  'no row can be given to another firm in project_members'
);
select citeledger.set_context(null);
select throws_ok(
  format(
    'insert into citeledger.chats (firm_id, title) values (%L, ''Forged'')',
    current_setting('test.a')
  ),
  '42501',
  'new row violates row-level security policy for table "chats"',
  'without a context nothing can be inserted for a firm that is named'
);
select throws_ok(
  'insert into citeledger.chats (title) values (''Forged'')',
  '42501',
  'new row violates row-level security policy for table "chats"',
  'without a context nothing can be inserted for the default firm'
);

-- Updating and deleting another firm's rows: they are not there. Tried by id, and by everything.
select citeledger.set_context(
  current_setting('test.a')::uuid, '22222222-2222-4222-8222-222222222222'
);
create function pg_temp.touched(p_statement text)
returns bigint
language plpgsql
as $$
declare
  v_touched bigint;
begin
  execute p_statement;
  get diagnostics v_touched = row_count;
  return v_touched;
end
$$;
select is(
  pg_temp.touched(format('%s where firm_id = %L', c.statement, current_setting('test.b'))),
  0::bigint,
  format('another firm''s rows are out of reach of: %s', c.statement)
)
from (
  values
    ('update citeledger.documents set title = ''Forged'''),
    ('update citeledger.messages set content = ''Forged'''),
    ('update citeledger.message_citations set verified = false'),
    ('update citeledger.message_caselaw_citations set verified = false'),
    ('update citeledger.project_members set user_id = gen_random_uuid()'),
    ('delete from citeledger.message_citations'),
    ('delete from citeledger.message_caselaw_citations'),
    ('delete from citeledger.message_tool_sources'),
    ('delete from citeledger.project_members'),
    ('delete from citeledger.messages'),
    ('delete from citeledger.chats'),
    ('delete from citeledger.projects')
) as c (statement);
select is(
  pg_temp.touched(c.statement),
  1::bigint,
  format('reaches the own row alone: %s', c.statement)
)
from (
  values
    ('update citeledger.documents set title = ''Renamed'' where doi is null'),
    ('delete from citeledger.project_members'),
    ('delete from citeledger.chats'),
    ('delete from citeledger.projects')
) as c (statement);
select citeledger.set_context(
  current_setting('test.b')::uuid, '22222222-2222-4222-8222-222222222222'
);
select is(
  pg_temp.seen(t.table_name, current_setting('test.b')),
  t.rows || ' own, 0 foreign',
  format('the second firm still has every row in %s', t.table_name)
)
from expected_rows as t;
select is(
  (select title from citeledger.documents where doi is null),
  'Lease',
  'the second firm''s document kept its title'
);

-- The functions know the context's firm alone.
select citeledger.set_context(
  current_setting('test.a')::uuid,
  '22222222-2222-4222-8222-222222222222',
  array['matters:read']
);
set local role citeledger_app;
select is(
  citeledger.assemble_ledger_entries('00000000-0000-4000-8000-00000000004b'),
  0,
  'assemble_ledger_entries does not know another firm''s turn'
);
select is(
  citeledger.compute_and_record_gate('00000000-0000-4000-8000-00000000004b') is null,
  true,
  'compute_and_record_gate does not know another firm''s turn'
);
select is(
  citeledger.finalize_turn('00000000-0000-4000-8000-00000000004b'),
  '{"message_id": "00000000-0000-4000-8000-00000000004b", "finalized": false,
    "entries_written": 0, "gate": null, "failures": []}'::jsonb,
  'finalize_turn does not know another firm''s turn'
);
select is(
  citeledger.finalize_turns(array['00000000-0000-4000-8000-00000000004b'::uuid]),
  0,
  'finalize_turns does not know another firm''s turn'
);
select throws_ok(
  $$select citeledger.ledger_trace('00000000-0000-4000-8000-00000000003b')$$,
  'P0002',
  'chat not found',
  'ledger_trace does not know another firm''s chat'
);

-- A reference to another firm's row, in each foreign key that a role may write.
select citeledger.set_context(
  current_setting('test.a')::uuid, '22222222-2222-4222-8222-222222222222'
);
insert into citeledger.chats (id) values ('00000000-0000-4000-8000-00000000008a');
insert into citeledger.messages (id, chat_id, role)
values (
  '00000000-0000-4000-8000-00000000009a', '00000000-0000-4000-8000-00000000008a', 'assistant'
);
set local role citeledger_admin;
select throws_ok(
  c.statement,
  '23503',
  format(
    'insert or update on table "%s" violates foreign key constraint "%s"', c.table_name, c.name
  ),
  format('%s: %s', c.name, c.why)
)
from (
  values
    ('documents', 'documents_project_fkey', 'no document in another firm''s matter',
      $$insert into citeledger.documents (project_id, title)
        values ('00000000-0000-4000-8000-00000000001b', 'x')$$),
    ('documents', 'documents_project_fkey', 'no document can be moved to another firm''s matter',
      $$update citeledger.documents set project_id = '00000000-0000-4000-8000-00000000001b'$$),
    ('chats', 'chats_project_fkey', 'no chat in another firm''s matter',
      $$insert into citeledger.chats (project_id)
        values ('00000000-0000-4000-8000-00000000001b')$$),
    ('project_members', 'project_members_project_fkey', 'no wall around another firm''s matter',
      $$insert into citeledger.project_members (project_id, user_id)
        values ('00000000-0000-4000-8000-00000000001b', '22222222-2222-4222-8222-222222222222')$$),
    ('messages', 'messages_chat_fkey', 'no message in another firm''s chat',
      $$insert into citeledger.messages (chat_id, role)
        values ('00000000-0000-4000-8000-00000000003b', 'assistant')$$),
    ('message_citations', 'message_citations_message_fkey', 'no citation in another firm''s turn',
      $$insert into citeledger.message_citations (message_id, source_text)
        values ('00000000-0000-4000-8000-00000000004b', 'x')$$),
    ('message_citations', 'message_citations_document_fkey',
      'no citation of another firm''s document',
      $$insert into citeledger.message_citations (message_id, source_document_id, source_text)
        values ('00000000-0000-4000-8000-00000000009a', '00000000-0000-4000-8000-00000000002b',
          'x')$$),
    ('message_caselaw_citations', 'message_caselaw_citations_message_fkey',
      'no caselaw citation in another firm''s turn',
      $$insert into citeledger.message_caselaw_citations
          (message_id, opinion_id, cluster_id, source_text)
        values ('00000000-0000-4000-8000-00000000004b', 1, 1, 'x')$$),
    ('message_tool_sources', 'message_tool_sources_message_fkey',
      'no tool source in another firm''s turn',
      $$insert into citeledger.message_tool_sources (message_id, source_kind, label)
        values ('00000000-0000-4000-8000-00000000004b', 'web', 'x')$$)
) as c (table_name, name, why, statement);

-- A firm that does not exist has no rows either.
select citeledger.set_context('99999999-9999-4999-8999-999999999999');
select throws_ok(
  c.statement,
  '23503',
  format(
    'insert or update on table "%s" violates foreign key constraint "%s_firm_fkey"',
    c.table_name, c.table_name
  ),
  format('%s_firm_fkey: no row for a firm that does not exist', c.table_name)
)
from (
  values
    ('projects', 'insert into citeledger.projects (matter_number, name) values (''M'', ''x'')'),
    ('documents', 'insert into citeledger.documents (title) values (''x'')'),
    ('chats', 'insert into citeledger.chats (title) values (''x'')')
) as c (table_name, statement);
select is_empty('select from citeledger.firms', 'a firm that does not exist is not visible');

select * from finish();

rollback;
