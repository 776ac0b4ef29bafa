-- Row security holds for the owner too, on every tenant table: no function that runs as the owner
-- can reach past the firm of the context. And no row that functions write can reference another
-- firm's row, another chat's turn, or a source of another turn.
--
-- Needs a login that may SET ROLE to citeledger_owner (the deployer), no superuser and not exempt
-- from row security. Row security is forced, so the owner too sees the firm of its context alone.
-- All is rolled back.

begin;

select plan(146);

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

create function pg_temp.fill()
returns void
language plpgsql
as $$
begin
  insert into citeledger.projects (id, matter_number, name)
  values ('00000000-0000-4000-8000-0000000000f1', 'M-1', 'Matter');
  insert into citeledger.project_members (project_id, user_id)
  values ('00000000-0000-4000-8000-0000000000f1', '22222222-2222-4222-8222-222222222222');
  insert into citeledger.documents (id, title)
  values ('00000000-0000-4000-8000-0000000000d1', 'Lease');
  perform citeledger.replace_document_pages(
    '00000000-0000-4000-8000-0000000000d1', '[{"page_number": 1, "blocks": ["text"]}]'
  );
  insert into citeledger.documents (id, title, doi)
  values ('00000000-0000-4000-8000-0000000000d2', 'Cited', '10.1000/cited');
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
  insert into citeledger.chats (id)
  values ('00000000-0000-4000-8000-0000000000c1'), ('00000000-0000-4000-8000-0000000000c2');
  insert into citeledger.messages (id, chat_id, role)
  values
    ('00000000-0000-4000-8000-0000000000e1', '00000000-0000-4000-8000-0000000000c1', 'assistant'),
    ('00000000-0000-4000-8000-0000000000e2', '00000000-0000-4000-8000-0000000000c2', 'assistant');
  insert into citeledger.message_citations (id, message_id, source_text)
  values ('00000000-0000-4000-8000-00000000a001', '00000000-0000-4000-8000-0000000000e1', 'quote');
  insert into citeledger.message_caselaw_citations (
    id, message_id, opinion_id, cluster_id, source_text
  )
  values (
    '00000000-0000-4000-8000-00000000b001', '00000000-0000-4000-8000-0000000000e1', 1, 1, 'holding'
  );
  insert into citeledger.message_tool_sources (id, message_id, source_kind, label)
  values (
    '00000000-0000-4000-8000-00000000d001', '00000000-0000-4000-8000-0000000000e1', 'web', 'x'
  );
  perform citeledger.finalize_turn('00000000-0000-4000-8000-0000000000e1');
  update citeledger.message_citations set verified = true, verification_method = 'exact_match';
  insert into citeledger.finalize_failure (message_id, stage, sqlstate)
  values ('00000000-0000-4000-8000-0000000000e1', 'gate', 'XX000');
end
$$;
select set_config('test.a', citeledger.create_firm('Alpha LLP')::text, true);
select set_config('test.b', citeledger.create_firm('Beta LLP')::text, true);
select citeledger.set_context(
  current_setting('test.a')::uuid, '22222222-2222-4222-8222-222222222222'
);
select pg_temp.fill();
select citeledger.set_context(
  current_setting('test.b')::uuid, '22222222-2222-4222-8222-222222222222'
);
select pg_temp.fill();

create temporary table tenant_table as
select c.relname::text as name
from pg_class as c
where c.relnamespace = 'citeledger'::regnamespace
  and c.relkind in ('r', 'p')
  and c.relname <> 'firms';
select is((select count(*) from tenant_table), 21::bigint,
  'twenty-one tenant tables are looked at');

create function pg_temp.firms_seen(p_table text)
returns text
language plpgsql
as $$
declare
  v_seen text;
begin
  execute format(
    'select coalesce(string_agg(distinct t.firm_id::text, '', ''), ''none'') '
    'from citeledger.%I as t',
    p_table
  )
  into v_seen;
  return v_seen;
end
$$;
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
-- A copy of a row for another firm: what the policy's WITH CHECK must refuse in every table.
create function pg_temp.copy_for(p_table text, p_firm text)
returns void
language plpgsql
as $$
declare
  v_columns text;
begin
  -- A generated column takes no value.
  select string_agg(quote_ident(a.attname), ', ' order by a.attnum)
  into v_columns
  from pg_attribute as a
  where a.attrelid = format('citeledger.%I', p_table)::regclass
    and a.attnum > 0
    and not a.attisdropped
    and a.attgenerated = ''
    and a.attname <> 'firm_id';
  execute format(
    'insert into citeledger.%I (firm_id, %s) select %L, %s from citeledger.%I limit 1',
    p_table, v_columns, p_firm, v_columns, p_table
  );
end
$$;

select citeledger.set_context(
  current_setting('test.a')::uuid, '22222222-2222-4222-8222-222222222222'
);
select is(
  pg_temp.firms_seen(t.name),
  current_setting('test.a'),
  format('the owner sees the context''s firm alone in %s', t.name)
)
from tenant_table as t;
select throws_ok(
  format('select pg_temp.copy_for(%L, %L)', t.name, current_setting('test.b')),
  '42501',
  format('new row violates row-level security policy for table "%s"', t.name),
  format('the owner inserts nothing for another firm into %s', t.name)
)
from tenant_table as t;
select throws_ok(
  format('update citeledger.%I set firm_id = %L', t.name, current_setting('test.b')),
  '42501',
  format('new row violates row-level security policy for table "%s"', t.name),
  format('the owner gives no row of %s to another firm', t.name)
)
from tenant_table as t;
select is(
  pg_temp.touched(
    format(
      'update citeledger.%I set created_at = now() where firm_id = %L',
      t.name, current_setting('test.b')
    )
  ),
  0::bigint,
  format('the owner updates nothing of another firm in %s', t.name)
)
from tenant_table as t;
select is(
  pg_temp.touched(
    format('delete from citeledger.%I where firm_id = %L', t.name, current_setting('test.b'))
  ),
  0::bigint,
  format('the owner deletes nothing of another firm from %s', t.name)
)
from tenant_table as t;
select citeledger.set_context(null);
select is(
  pg_temp.firms_seen(t.name),
  'none',
  format('without a context the owner sees nothing in %s', t.name)
)
from tenant_table as t;
-- firms is not forced, so that the owner's functions can sweep.
select is(
  (
    select count(*)
    from citeledger.firms as f
    where f.id::text in (current_setting('test.a'), current_setting('test.b'))
  ),
  2::bigint,
  'the owner sees every firm'
);
-- Behind a wall the owner stands like everybody.
select citeledger.set_context(current_setting('test.a')::uuid);
select is_empty('select from citeledger.projects', 'the owner does not see a walled matter');

-- References. The other turn is of another chat; the other firm has the same ids and more.
select citeledger.set_context(current_setting('test.b')::uuid);
insert into citeledger.chats (id) values ('00000000-0000-4000-8000-0000000000c9');
insert into citeledger.messages (id, chat_id, role)
values (
  '00000000-0000-4000-8000-0000000000e9', '00000000-0000-4000-8000-0000000000c9', 'assistant'
);
insert into citeledger.projects (id, matter_number, name)
values ('00000000-0000-4000-8000-0000000000f9', 'M-9', 'Matter');
insert into citeledger.message_citations (id, message_id, source_text)
values ('00000000-0000-4000-8000-00000000a009', '00000000-0000-4000-8000-0000000000e9', 'quote');
insert into citeledger.message_caselaw_citations (
  id, message_id, opinion_id, cluster_id, source_text
)
values (
  '00000000-0000-4000-8000-00000000b009', '00000000-0000-4000-8000-0000000000e9', 1, 1, 'holding'
);
insert into citeledger.message_tool_sources (id, message_id, source_kind, label)
values ('00000000-0000-4000-8000-00000000d009', '00000000-0000-4000-8000-0000000000e9', 'web', 'x');

select citeledger.set_context(current_setting('test.a')::uuid);
delete from citeledger.citation_ledger_entry;
create temporary table wrong_reference (table_name text, name text, why text, statement text);
insert into wrong_reference
values
  ('citation_ledger_entry', 'message', 'no entry of another firm''s turn',
    $$insert into citeledger.citation_ledger_entry
      (chat_id, message_id, source_kind, message_tool_source_id, verification_status)
      values ('00000000-0000-4000-8000-0000000000c9', '00000000-0000-4000-8000-0000000000e9',
        'web', '00000000-0000-4000-8000-00000000d001', 'provenance')$$),
  ('citation_ledger_entry', 'message', 'no entry whose chat is not the turn''s',
    $$insert into citeledger.citation_ledger_entry
      (chat_id, message_id, source_kind, message_tool_source_id, verification_status)
      values ('00000000-0000-4000-8000-0000000000c2', '00000000-0000-4000-8000-0000000000e1',
        'web', '00000000-0000-4000-8000-00000000d001', 'provenance')$$),
  ('citation_ledger_entry', 'citation', 'no entry of another firm''s citation',
    $$insert into citeledger.citation_ledger_entry
      (chat_id, message_id, source_kind, message_citation_id, verification_status)
      values ('00000000-0000-4000-8000-0000000000c1', '00000000-0000-4000-8000-0000000000e1',
        'kb_document', '00000000-0000-4000-8000-00000000a009', 'exact_match')$$),
  ('citation_ledger_entry', 'citation', 'no entry of another turn''s citation',
    $$insert into citeledger.citation_ledger_entry
      (chat_id, message_id, source_kind, message_citation_id, verification_status)
      values ('00000000-0000-4000-8000-0000000000c2', '00000000-0000-4000-8000-0000000000e2',
        'kb_document', '00000000-0000-4000-8000-00000000a001', 'exact_match')$$),
  ('citation_ledger_entry', 'caselaw_citation', 'no entry of another firm''s opinion',
    $$insert into citeledger.citation_ledger_entry
      (chat_id, message_id, source_kind, message_caselaw_citation_id, verification_status)
      values ('00000000-0000-4000-8000-0000000000c1', '00000000-0000-4000-8000-0000000000e1',
        'caselaw', '00000000-0000-4000-8000-00000000b009', 'exact_match')$$),
  ('citation_ledger_entry', 'caselaw_citation', 'no entry of another turn''s opinion',
    $$insert into citeledger.citation_ledger_entry
      (chat_id, message_id, source_kind, message_caselaw_citation_id, verification_status)
      values ('00000000-0000-4000-8000-0000000000c2', '00000000-0000-4000-8000-0000000000e2',
        'caselaw', '00000000-0000-4000-8000-00000000b001', 'exact_match')$$),
  ('citation_ledger_entry', 'tool_source', 'no entry of another firm''s tool source',
    $$insert into citeledger.citation_ledger_entry
      (chat_id, message_id, source_kind, message_tool_source_id, verification_status)
      values ('00000000-0000-4000-8000-0000000000c1', '00000000-0000-4000-8000-0000000000e1',
        'web', '00000000-0000-4000-8000-00000000d009', 'provenance')$$),
  ('citation_ledger_entry', 'tool_source', 'no entry of another turn''s tool source',
    $$insert into citeledger.citation_ledger_entry
      (chat_id, message_id, source_kind, message_tool_source_id, verification_status)
      values ('00000000-0000-4000-8000-0000000000c2', '00000000-0000-4000-8000-0000000000e2',
        'web', '00000000-0000-4000-8000-00000000d001', 'provenance')$$),
  ('citation_ledger_entry_revision', 'message', 'no revision in another firm''s turn',
    $$insert into citeledger.citation_ledger_entry_revision
      (message_id, entry_id, source_kind, verification_status)
      values ('00000000-0000-4000-8000-0000000000e9', gen_random_uuid(), 'web', 'provenance')$$),
  ('work_product_fiduciary_gate', 'message', 'no verdict on another firm''s turn',
    $$insert into citeledger.work_product_fiduciary_gate
      (message_id, chat_id, gate_status, pass_count, supported_count, fail_count,
        total_assertions, unrecognized_count)
      values ('00000000-0000-4000-8000-0000000000e9', '00000000-0000-4000-8000-0000000000c9',
        'fiduciary_grade', 0, 0, 0, 0, 0)$$),
  ('work_product_fiduciary_gate', 'message', 'no verdict whose chat is not the turn''s',
    $$insert into citeledger.work_product_fiduciary_gate
      (message_id, chat_id, gate_status, pass_count, supported_count, fail_count,
        total_assertions, unrecognized_count)
      values ('00000000-0000-4000-8000-0000000000e2', '00000000-0000-4000-8000-0000000000c1',
        'fiduciary_grade', 0, 0, 0, 0, 0)$$),
  ('work_product_fiduciary_gate', 'project', 'no verdict in another firm''s matter',
    $$insert into citeledger.work_product_fiduciary_gate
      (message_id, chat_id, project_id, gate_status, pass_count, supported_count, fail_count,
        total_assertions, unrecognized_count)
      values ('00000000-0000-4000-8000-0000000000e2', '00000000-0000-4000-8000-0000000000c2',
        '00000000-0000-4000-8000-0000000000f9', 'fiduciary_grade', 0, 0, 0, 0, 0)$$),
  ('finalize_failure', 'message', 'no failure of another firm''s turn',
    $$insert into citeledger.finalize_failure (message_id, stage, sqlstate)
      values ('00000000-0000-4000-8000-0000000000e9', 'gate', 'XX000')$$);
select throws_ok(
  w.statement,
  '23503',
  format(
    'insert or update on table "%s" violates foreign key constraint "%s_%s_fkey"',
    w.table_name, w.table_name, w.name
  ),
  format('%s_%s_fkey: %s', w.table_name, w.name, w.why)
)
from wrong_reference as w;

select * from finish();

rollback;
