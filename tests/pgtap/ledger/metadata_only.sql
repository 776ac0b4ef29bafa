-- The ledger, its revisions, the gate and the log of failures hold metadata alone: no column of
-- theirs could hold a word of a source, a message or an error.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(9);

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

set local role citeledger_reader;
select is_empty(
  'select * from citeledger.metadata_only_violations()',
  'metadata_only_violations finds no column that could hold content'
);

-- The same, without asking the function: the columns by name and type, as a whole.
select set_eq(
  $$select format('%s.%s %s', c.relname, a.attname, a.atttypid::regtype)
    from pg_class as c
    join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where c.oid in (
        'citeledger.citation_ledger_entry'::regclass,
        'citeledger.citation_ledger_entry_revision'::regclass,
        'citeledger.work_product_fiduciary_gate'::regclass,
        'citeledger.finalize_failure'::regclass
      )
      and a.atttypid not in (
        'uuid'::regtype, 'timestamptz'::regtype, 'integer'::regtype, 'double precision'::regtype
      )$$,
  array[
    'citation_ledger_entry.source_kind text',
    'citation_ledger_entry.verification_status text',
    'citation_ledger_entry.provider text',
    'citation_ledger_entry_revision.source_kind text',
    'citation_ledger_entry_revision.verification_status text',
    'citation_ledger_entry_revision.provider text',
    'work_product_fiduciary_gate.gate_status text',
    'finalize_failure.stage text',
    'finalize_failure.sqlstate text'
  ],
  'beside ids, times and numbers there are these nine columns'
);
select set_eq(
  $$select format(
      '%s.%s %s', k.conrelid::regclass, a.attname,
      substring(pg_get_expr(k.conbin, k.conrelid) from '''(.*)''::text')
    )
    from pg_constraint as k
    join pg_attribute as a on a.attrelid = k.conrelid and array[a.attnum] = k.conkey
    where k.contype = 'c'
      and k.convalidated
      and a.atttypid = 'text'::regtype
      and pg_get_expr(k.conbin, k.conrelid) ~ '~'
      and k.conrelid in (
        'citeledger.citation_ledger_entry'::regclass,
        'citeledger.citation_ledger_entry_revision'::regclass,
        'citeledger.work_product_fiduciary_gate'::regclass,
        'citeledger.finalize_failure'::regclass
      )$$,
  array[
    'citeledger.citation_ledger_entry.source_kind ^[a-z][a-z0-9_]{0,31}$',
    'citeledger.citation_ledger_entry.verification_status ^[a-z][a-z0-9_]{0,31}$',
    'citeledger.citation_ledger_entry.provider ^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$',
    'citeledger.citation_ledger_entry_revision.source_kind ^[a-z][a-z0-9_]{0,31}$',
    'citeledger.citation_ledger_entry_revision.verification_status ^[a-z][a-z0-9_]{0,31}$',
    'citeledger.citation_ledger_entry_revision.provider ^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$',
    'citeledger.work_product_fiduciary_gate.gate_status ^[a-z][a-z0-9_]{0,31}$',
    'citeledger.finalize_failure.stage ^[a-z][a-z0-9_]{0,31}$',
    'citeledger.finalize_failure.sqlstate ^[0-9A-Z]{5}$'
  ],
  'and a validated CHECK makes each a label, a name or a SQLSTATE'
);

-- And by trying: a turn full of a word that must not get through.
set local role citeledger_admin;
select set_config('test.firm', citeledger.create_firm('Canary LLP')::text, true);
set local role citeledger_app;
select citeledger.set_context(current_setting('test.firm')::uuid, null, array['matters:read']);
insert into citeledger.projects (id, matter_number, name)
values ('00000000-0000-4000-8000-0000000000f1', 'canary', 'canary');
insert into citeledger.documents (id, project_id, title, doi)
values (
  '00000000-0000-4000-8000-0000000000d1', '00000000-0000-4000-8000-0000000000f1', 'canary',
  '10.1000/canary'
);
insert into citeledger.chats (id, project_id, title)
values (
  '00000000-0000-4000-8000-0000000000c1', '00000000-0000-4000-8000-0000000000f1', 'canary'
);
insert into citeledger.messages (id, chat_id, role, content)
values (
  '00000000-0000-4000-8000-0000000000e1', '00000000-0000-4000-8000-0000000000c1', 'assistant',
  'canary'
);
insert into citeledger.message_citations (message_id, source_document_id, source_text)
values (
  '00000000-0000-4000-8000-0000000000e1', '00000000-0000-4000-8000-0000000000d1', 'canary'
);
insert into citeledger.message_caselaw_citations (message_id, opinion_id, cluster_id, source_text)
values ('00000000-0000-4000-8000-0000000000e1', 1, 1, 'canary');
insert into citeledger.message_tool_sources (
  message_id, source_kind, label, subtitle, url, external_ref, tool
)
values (
  '00000000-0000-4000-8000-0000000000e1', 'web', 'canary', 'canary', 'https://canary.example/',
  'canary', 'canary'
);
select citeledger.finalize_turn('00000000-0000-4000-8000-0000000000e1');
update citeledger.message_citations set verified = true, verification_method = 'exact_match';
select is(
  (select count(*) from citeledger.citation_ledger_entry),
  3::bigint,
  'the ledger has the turn''s three entries'
);
select is_empty(
  $$select r.said
    from (
      select to_jsonb(e)::text from citeledger.citation_ledger_entry as e
      union all
      select to_jsonb(r)::text from citeledger.citation_ledger_entry_revision as r
      union all
      select to_jsonb(g)::text from citeledger.work_product_fiduciary_gate as g
      union all
      select to_jsonb(f)::text from citeledger.finalize_failure as f
    ) as r (said)
    where r.said ~ 'canary'$$,
  'no word of message, quote, title, address or matter is in any of them'
);
select ok(
  citeledger.ledger_trace('00000000-0000-4000-8000-0000000000c1')::text ~ 'canary',
  'a trace reads them from where they are'
);

select * from finish();

rollback;
