-- Every CHECK and unique key of the tables that the application writes, each violated by itself, as
-- the role that may write there. Those of the tables that functions alone write to are tried in
-- owner/checks.sql.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(165);

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
select set_config('test.firm', citeledger.create_firm('Checks LLP')::text, true);

set local role citeledger_app;
select citeledger.set_context(current_setting('test.firm')::uuid);
insert into citeledger.projects (id, matter_number, name)
values ('00000000-0000-4000-8000-0000000000f1', 'M-1', 'Matter');
insert into citeledger.documents (id, title)
values ('00000000-0000-4000-8000-0000000000d1', 'Lease');
insert into citeledger.chats (id) values ('00000000-0000-4000-8000-0000000000c1');
insert into citeledger.messages (id, chat_id, role)
values (
  '00000000-0000-4000-8000-0000000000e1', '00000000-0000-4000-8000-0000000000c1', 'assistant'
);
insert into citeledger.message_citations (id, message_id, source_text)
values ('00000000-0000-4000-8000-00000000a001', '00000000-0000-4000-8000-0000000000e1', 'quote');
insert into citeledger.message_caselaw_citations (
  id, message_id, opinion_id, cluster_id, source_text
)
values (
  '00000000-0000-4000-8000-00000000b001', '00000000-0000-4000-8000-0000000000e1', 1, 1, 'holding'
);
insert into citeledger.message_tool_sources (id, message_id, source_kind, label)
values ('00000000-0000-4000-8000-00000000d001', '00000000-0000-4000-8000-0000000000e1', 'web', 'x');

-- The statement that a case completes: its columns and values.
create function pg_temp.insert_into(p_table text, p_columns text, p_values text)
returns text
language sql
as $$
  select case p_table
    when 'projects' then
      format('insert into citeledger.projects (name, %s) values (''x'', %s)', p_columns, p_values)
    when 'documents' then
      format('insert into citeledger.documents (title, %s) values (''x'', %s)', p_columns, p_values)
    when 'messages' then
      format(
        'insert into citeledger.messages (chat_id, %s) values (%L, %s)',
        p_columns, '00000000-0000-4000-8000-0000000000c1', p_values
      )
    when 'message_citations' then
      format(
        'insert into citeledger.message_citations (message_id, source_text, %s) '
        'values (%L, ''x'', %s)',
        p_columns, '00000000-0000-4000-8000-0000000000e1', p_values
      )
    when 'message_caselaw_citations' then
      format(
        'insert into citeledger.message_caselaw_citations '
        '(message_id, opinion_id, cluster_id, source_text, %s) values (%L, 1, 1, ''x'', %s)',
        p_columns, '00000000-0000-4000-8000-0000000000e1', p_values
      )
    when 'message_tool_sources' then
      format(
        'insert into citeledger.message_tool_sources (message_id, label, %s) '
        'values (%L, ''x'', %s)',
        p_columns, '00000000-0000-4000-8000-0000000000e1', p_values
      )
  end
$$;

select throws_ok(
  pg_temp.insert_into(c.table_name, c.columns, c.given),
  '23514',
  format(
    'new row for relation "%s" violates check constraint "%s_%s"',
    c.table_name, c.table_name, c.name
  ),
  format('%s_%s refuses %s = %s', c.table_name, c.name, c.columns, left(c.given, 60))
)
from (
  values
    ('projects', 'matter_number_is_short', 'matter_number', ''''''),
    ('projects', 'matter_number_is_short', 'matter_number', '''  '''),
    ('projects', 'matter_number_is_short', 'matter_number', 'E''\t\n'''),
    ('projects', 'matter_number_is_short', 'matter_number', 'repeat(''x'', 201)'),
    ('documents', 'document_kind_is_known', 'document_kind', '''email'''),
    ('documents', 'document_kind_is_known', 'document_kind', '''Record'''),
    ('documents', 'document_kind_is_known', 'document_kind', ''''''),
    ('documents', 'source_is_label', 'source', ''''''),
    ('documents', 'source_is_label', 'source', '''Local'''),
    ('documents', 'source_is_label', 'source', '''1st'''),
    ('documents', 'source_is_label', 'source', '''two words'''),
    ('documents', 'source_is_label', 'source', 'E''local\n'''),
    ('documents', 'source_is_label', 'source', 'repeat(''x'', 33)'),
    ('messages', 'role_is_known', 'role', '''Assistant'''),
    ('messages', 'role_is_known', 'role', '''assistant '''),
    ('messages', 'role_is_known', 'role', '''developer'''),
    ('messages', 'role_is_known', 'role', ''''''),
    ('message_tool_sources', 'source_kind_is_label', 'source_kind', ''''''),
    ('message_tool_sources', 'source_kind_is_label', 'source_kind', '''Web'''),
    ('message_tool_sources', 'source_kind_is_label', 'source_kind', '''web-search'''),
    ('message_tool_sources', 'source_kind_is_label', 'source_kind', '''_web'''),
    ('message_tool_sources', 'source_kind_is_label', 'source_kind', 'E''web\n'''),
    ('message_tool_sources', 'source_kind_is_label', 'source_kind', 'repeat(''x'', 33)'),
    ('message_tool_sources', 'provider_is_name', 'source_kind, provider', '''web'', '''''),
    ('message_tool_sources', 'provider_is_name', 'source_kind, provider', '''web'', ''two words'''),
    ('message_tool_sources', 'provider_is_name', 'source_kind, provider', '''web'', ''.x'''),
    ('message_tool_sources', 'provider_is_name', 'source_kind, provider', '''web'', ''a/b'''),
    ('message_tool_sources', 'provider_is_name', 'source_kind, provider', '''web'', E''x\n'''),
    ('message_tool_sources', 'provider_is_name', 'source_kind, provider',
      '''web'', repeat(''x'', 65)')
) as c (table_name, name, columns, given)
union all
-- Both tables of citations keep the same rules.
select throws_ok(
  pg_temp.insert_into(t.table_name, c.columns, c.given),
  '23514',
  format(
    'new row for relation "%s" violates check constraint "%s_%s"',
    t.table_name, t.table_name, c.name
  ),
  format('%s_%s refuses %s = %s', t.table_name, c.name, c.columns, c.given)
)
from (values ('message_citations'), ('message_caselaw_citations')) as t (table_name)
cross join (
  values
    ('offsets_are_a_range', 'source_offset_start', '0'),
    ('offsets_are_a_range', 'source_offset_end', '10'),
    ('offsets_are_a_range', 'source_offset_start, source_offset_end', '-1, 10'),
    ('offsets_are_a_range', 'source_offset_start, source_offset_end', '10, 10'),
    ('offsets_are_a_range', 'source_offset_start, source_offset_end', '11, 10'),
    ('offsets_are_a_range', 'source_offset_start, source_offset_end', '0, 0'),
    ('method_is_known', 'verification_method', '''unverified'''),
    ('method_is_known', 'verification_method', '''provenance'''),
    ('method_is_known', 'verification_method', '''EXACT_MATCH'''),
    ('method_is_known', 'verification_method', '''exact_match '''),
    ('method_is_known', 'verification_method', '''pass'''),
    ('method_is_known', 'verification_method', '''partially_supported'''),
    ('method_is_known', 'verification_method', '''not exact_match'''),
    ('method_is_known', 'verification_method', ''''''),
    ('confidence_is_a_share', 'verification_confidence', '-0.01'),
    ('confidence_is_a_share', 'verification_confidence', '1.01'),
    ('confidence_is_a_share', 'verification_confidence', '''NaN'''),
    ('verified_names_method', 'verified', 'true'),
    ('verified_names_method', 'verified, verification_confidence', 'true, 1')
) as c (name, columns, given);
select throws_ok(
  pg_temp.insert_into('message_caselaw_citations', 'verification_confidence', c.given),
  '23514',
  'new row for relation "message_caselaw_citations" violates check constraint '
  '"message_caselaw_citations_confidence_is_a_share"',
  format('a confidence of %s is refused', c.given)
)
from (values ('''Infinity'''), ('''-Infinity'''), ('1.0000001')) as c (given);
select throws_ok(
  pg_temp.insert_into('message_citations', 'verification_confidence', '''Infinity'''),
  '22003',
  null,
  'a decimal confidence cannot be infinite either'
);

select throws_ok(
  pg_temp.insert_into(t.table_name, t.more || 'created_at', t.given || c.given),
  '23514',
  format(
    'new row for relation "%s" violates check constraint "%s_created_at_is_in_the_calendar"',
    t.table_name, t.table_name
  ),
  format('%s cannot have been recorded at %s', t.table_name, c.given)
)
from (
  values
    ('message_citations', '', ''), ('message_caselaw_citations', '', ''),
    ('message_tool_sources', 'source_kind, ', '''web'', ')
) as t (table_name, more, given)
cross join (
  values
    ('''infinity'''), ('''-infinity'''), ('''9999-01-01 00:00Z'''), ('''0001-12-31 00:00Z'''),
    ('''0001-01-01 00:00Z BC''')
) as c (given);
select lives_ok(
  pg_temp.insert_into(t.table_name, t.more || 'created_at', t.given || c.given),
  format('%s may have been recorded at %s', t.table_name, c.given)
)
from (
  values
    ('message_citations', '', ''), ('message_caselaw_citations', '', ''),
    ('message_tool_sources', 'source_kind, ', '''web'', ')
) as t (table_name, more, given)
cross join (values ('''0002-01-01 00:00Z'''), ('''9998-12-31 23:59Z''')) as c (given);

-- The same rules hold for an update of what the app may update.
select throws_ok(
  format('update citeledger.%s set %s', t.table_name, c.change),
  '23514',
  format(
    'new row for relation "%s" violates check constraint "%s_%s"',
    t.table_name, t.table_name, c.name
  ),
  format('%s_%s refuses an update to %s', t.table_name, c.name, c.change)
)
from (values ('message_citations'), ('message_caselaw_citations')) as t (table_name)
cross join (
  values
    ('method_is_known', 'verification_method = ''PASS'''),
    ('confidence_is_a_share', 'verification_confidence = ''NaN'''),
    ('confidence_is_a_share', 'verification_confidence = 2'),
    ('verified_names_method', 'verified = true')
) as c (name, change);
select throws_ok(
  'update citeledger.documents set document_kind = ''x''',
  '23514',
  'new row for relation "documents" violates check constraint '
  '"documents_document_kind_is_known"',
  'documents_document_kind_is_known refuses an update'
);
select throws_ok(
  'update citeledger.documents set source = ''X''',
  '23514',
  'new row for relation "documents" violates check constraint "documents_source_is_label"',
  'documents_source_is_label refuses an update'
);

-- What must pass, at the edges.
select lives_ok(
  pg_temp.insert_into(c.table_name, c.columns, c.given),
  format('%s takes %s = %s', c.table_name, c.columns, left(c.given, 60))
)
from (
  values
    ('projects', 'matter_number', 'repeat(''é'', 200)'),
    ('documents', 'document_kind', '''work_product'''),
    ('documents', 'document_kind', '''authority'''),
    ('documents', 'document_kind', '''publication'''),
    ('documents', 'source', 'repeat(''x'', 32)'),
    ('messages', 'role', '''user'''),
    ('messages', 'role', '''system'''),
    ('messages', 'role', '''tool'''),
    ('message_tool_sources', 'source_kind', '''a'''),
    ('message_tool_sources', 'source_kind', '''a_1'''),
    ('message_tool_sources', 'source_kind', 'repeat(''x'', 32)'),
    ('message_tool_sources', 'source_kind, provider', '''web'', null'),
    ('message_tool_sources', 'source_kind, provider', '''web'', ''A.b:c-d_1'''),
    ('message_tool_sources', 'source_kind, provider', '''web'', repeat(''9'', 64)')
) as c (table_name, columns, given)
union all
select lives_ok(
  pg_temp.insert_into(t.table_name, c.columns, c.given),
  format('%s takes %s = %s', t.table_name, c.columns, c.given)
)
from (values ('message_citations'), ('message_caselaw_citations')) as t (table_name)
cross join (
  values
    ('source_offset_start, source_offset_end', 'null, null'),
    ('source_offset_start, source_offset_end', '0, 1'),
    ('source_offset_start, source_offset_end', '2147483646, 2147483647'),
    ('verified, verification_method, verification_confidence', 'true, ''failed'', 0'),
    ('verified, verification_method, verification_confidence', 'true, ''exact_match'', 1'),
    ('verified, verification_method, verification_confidence', 'true, ''tolerant_match'', null'),
    ('verified, verification_method', 'false, ''paraphrase_judge'''),
    ('verified, verification_method', 'false, ''ensemble_strict'''),
    ('verified, verification_method', 'false, ''ensemble_majority'''),
    ('verified, verification_confidence', 'false, 0.5')
) as c (columns, given);

-- Nothing that must be there may be absent.
select throws_ok(
  c.statement,
  '23502',
  format(
    'null value in column "%s" of relation "%s" violates not-null constraint',
    c.column_name, c.table_name
  ),
  format('%s.%s cannot be null', c.table_name, c.column_name)
)
from (
  values
    ('projects', 'matter_number', 'insert into citeledger.projects (name) values (''x'')'),
    ('projects', 'name', 'insert into citeledger.projects (matter_number) values (''x'')'),
    ('documents', 'title', 'insert into citeledger.documents (title) values (null)'),
    ('documents', 'document_kind', pg_temp.insert_into('documents', 'document_kind', 'null')),
    ('documents', 'is_privileged', pg_temp.insert_into('documents', 'is_privileged', 'null')),
    ('documents', 'source', pg_temp.insert_into('documents', 'source', 'null')),
    ('documents', 'license_class', pg_temp.insert_into('documents', 'license_class', 'null')),
    ('messages', 'chat_id', 'insert into citeledger.messages (role) values (''user'')'),
    ('messages', 'role', pg_temp.insert_into('messages', 'role', 'null')),
    ('message_citations', 'verified', pg_temp.insert_into('message_citations', 'verified', 'null')),
    ('message_citations', 'message_id',
      'insert into citeledger.message_citations (source_text) values (''x'')'),
    ('message_citations', 'source_text',
      'insert into citeledger.message_citations (message_id) '
      'values (''00000000-0000-4000-8000-0000000000e1'')'),
    ('message_caselaw_citations', 'verified',
      pg_temp.insert_into('message_caselaw_citations', 'verified', 'null')),
    ('message_caselaw_citations', 'partial',
      pg_temp.insert_into('message_caselaw_citations', 'partial', 'null')),
    ('message_caselaw_citations', 'opinion_id',
      'insert into citeledger.message_caselaw_citations (message_id, cluster_id, source_text) '
      'values (''00000000-0000-4000-8000-0000000000e1'', 1, ''x'')'),
    ('message_tool_sources', 'source_kind',
      pg_temp.insert_into('message_tool_sources', 'source_kind', 'null')),
    ('message_tool_sources', 'label',
      'insert into citeledger.message_tool_sources (message_id, source_kind) '
      'values (''00000000-0000-4000-8000-0000000000e1'', ''web'')')
) as c (table_name, column_name, statement);

-- Keys.
select throws_ok(
  c.statement,
  '23505',
  format('duplicate key value violates unique constraint "%s"', c.name),
  format('%s refuses a repeat', c.name)
)
from (
  values
    ('projects_pkey',
      'insert into citeledger.projects (id, matter_number, name) '
      'values (''00000000-0000-4000-8000-0000000000f1'', ''M-9'', ''x'')'),
    ('projects_matter_number_key',
      'insert into citeledger.projects (matter_number, name) values (''M-1'', ''x'')'),
    ('documents_pkey',
      'insert into citeledger.documents (id, title) '
      'values (''00000000-0000-4000-8000-0000000000d1'', ''x'')'),
    ('chats_pkey',
      'insert into citeledger.chats (id) values (''00000000-0000-4000-8000-0000000000c1'')'),
    ('messages_pkey',
      pg_temp.insert_into(
        'messages', 'role, id', '''user'', ''00000000-0000-4000-8000-0000000000e1'''
      )),
    ('message_citations_pkey',
      pg_temp.insert_into('message_citations', 'id', '''00000000-0000-4000-8000-00000000a001''')),
    ('message_caselaw_citations_pkey',
      pg_temp.insert_into(
        'message_caselaw_citations', 'id', '''00000000-0000-4000-8000-00000000b001'''
      )),
    ('message_tool_sources_pkey',
      pg_temp.insert_into(
        'message_tool_sources', 'source_kind, id',
        '''web'', ''00000000-0000-4000-8000-00000000d001'''
      ))
) as c (name, statement);

-- In another firm the same ids and the same matter number are free.
set local role citeledger_admin;
select set_config('test.other', citeledger.create_firm('Other LLP')::text, true);
set local role citeledger_app;
select citeledger.set_context(current_setting('test.other')::uuid);
select lives_ok(
  'insert into citeledger.projects (id, matter_number, name) '
  'values (''00000000-0000-4000-8000-0000000000f1'', ''M-1'', ''x'')',
  'another firm may use the same id and the same matter number'
);

select * from finish();

rollback;
