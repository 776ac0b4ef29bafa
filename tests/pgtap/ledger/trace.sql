-- ledger_trace: the shape of what it returns, its order, what it withholds, and whom it refuses.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(35);

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

select citeledger.set_context(current_setting('test.a')::uuid);
insert into citeledger.projects (id, matter_number, name)
values
  ('00000000-0000-4000-8000-0000000000f1', 'M-1', 'Matter'),
  ('00000000-0000-4000-8000-0000000000f2', 'M-2', 'Another, walled below');

set local role citeledger_app;
insert into citeledger.documents (id, project_id, title)
values
  ('00000000-0000-4000-8000-0000000000d1', '00000000-0000-4000-8000-0000000000f1', 'Lease'),
  ('00000000-0000-4000-8000-0000000000d2', '00000000-0000-4000-8000-0000000000f1', 'Memo'),
  ('00000000-0000-4000-8000-0000000000d3', '00000000-0000-4000-8000-0000000000f1', 'Old lease'),
  ('00000000-0000-4000-8000-0000000000d4', '00000000-0000-4000-8000-0000000000f2', 'Secret');
insert into citeledger.chats (id, project_id)
values
  ('00000000-0000-4000-8000-0000000000c1', '00000000-0000-4000-8000-0000000000f1'),
  ('00000000-0000-4000-8000-0000000000c2', null),
  ('00000000-0000-4000-8000-0000000000c3', '00000000-0000-4000-8000-0000000000f2');
insert into citeledger.messages (id, chat_id, role, created_at)
values
  ('00000000-0000-4000-8000-0000000000e1', '00000000-0000-4000-8000-0000000000c1', 'assistant',
    '2024-05-01 09:00:00+00'),
  ('00000000-0000-4000-8000-0000000000e2', '00000000-0000-4000-8000-0000000000c1', 'assistant',
    '2024-05-01 08:00:00+00'),
  ('00000000-0000-4000-8000-0000000000e3', '00000000-0000-4000-8000-0000000000c1', 'user',
    '2024-05-01 07:00:00+00'),
  ('00000000-0000-4000-8000-0000000000e4', '00000000-0000-4000-8000-0000000000c2', 'assistant',
    '2024-05-01 07:00:00+00');
-- Recorded in an order that is neither that of the ids nor that of the tables.
insert into citeledger.message_citations (
  id, message_id, source_document_id, source_page, source_block, source_offset_start,
  source_offset_end, source_text, verified, verification_method, verification_confidence, created_at
)
values
  ('00000000-0000-4000-8000-00000000a009', '00000000-0000-4000-8000-0000000000e1',
    '00000000-0000-4000-8000-0000000000d1', 3, 0, 10, 21, 'rent is due', true, 'exact_match', 0.95,
    '2024-05-01 10:03:00+00'),
  ('00000000-0000-4000-8000-00000000a001', '00000000-0000-4000-8000-0000000000e1',
    null, null, null, null, null, 'of no document', false, null, null,
    '2024-05-01 10:05:00+00'),
  ('00000000-0000-4000-8000-00000000a002', '00000000-0000-4000-8000-0000000000e2',
    '00000000-0000-4000-8000-0000000000d1', 1, null, null, null, 'second turn', true,
    'paraphrase_judge', 0.5, '2024-05-01 10:02:00+00');
insert into citeledger.message_caselaw_citations (
  id, message_id, opinion_id, cluster_id, source_offset_start, source_offset_end, source_text,
  partial, verified, verification_method, verification_confidence, created_at
)
values (
  '00000000-0000-4000-8000-00000000b001', '00000000-0000-4000-8000-0000000000e1',
  123, 9000000456, 0, 12, 'it is so held', true, true, 'tolerant_match', 0.75,
  '2024-05-01 10:04:00+00'
);
insert into citeledger.message_tool_sources (
  id, message_id, source_kind, label, subtitle, url, external_ref, provider, tool, created_at
)
values
  ('00000000-0000-4000-8000-00000000d001', '00000000-0000-4000-8000-0000000000e1',
    'web_search', 'A page', 'about leases', 'https://a.example/?q=1', 'ref-1', 'a.example',
    'search', '2024-05-01 10:01:00+00'),
  ('00000000-0000-4000-8000-00000000d002', '00000000-0000-4000-8000-0000000000e1',
    'publication', 'A paper', null, null, null, null, null, '2024-05-01 10:06:00+00');
select citeledger.finalize_turns(
  array(select m.id from citeledger.messages as m where m.chat_id
    = '00000000-0000-4000-8000-0000000000c1')
);

set local role citeledger_reader;
select citeledger.set_context(current_setting('test.a')::uuid, null, array['matters:read']);
select set_config(
  'test.trace', citeledger.ledger_trace('00000000-0000-4000-8000-0000000000c1')::text, true
);

-- The shape.
select results_eq(
  $$select k collate "C"
    from jsonb_object_keys(current_setting('test.trace')::jsonb) as k order by 1$$,
  array['chat_id' collate "C", 'entries', 'gates'],
  'a trace has chat_id, entries and gates'
);
select is(
  current_setting('test.trace')::jsonb ->> 'chat_id',
  '00000000-0000-4000-8000-0000000000c1',
  'it names its chat'
);
select is(
  (
    select string_agg(distinct k.keys, ' | ')
    from jsonb_array_elements(current_setting('test.trace')::jsonb -> 'entries') as e (entry)
    cross join lateral (
      select string_agg(o.key, ' ' order by o.key collate "C")
      from jsonb_object_keys(e.entry) as o (key)
    ) as k (keys)
  ),
  'confidence created_at id message_id provider retrieved_at source source_kind tier treatment_id '
  'verification_status',
  'every entry has exactly the keys that are documented'
);
select is(
  (
    select string_agg(distinct k.keys, ' | ')
    from jsonb_array_elements(current_setting('test.trace')::jsonb -> 'gates') as g (gate)
    cross join lateral (
      select string_agg(o.key, ' ' order by o.key collate "C")
      from jsonb_object_keys(g.gate) as o (key)
    ) as k (keys)
  ),
  'chat_id computed_at confidence created_at fail_count gate_status id message_id pass_count '
  'project_id supported_count total_assertions unrecognized_count',
  'every gate has the columns of its table less firm_id'
);

-- The sources, each kind as documented, in the order of recording.
select is(
  jsonb_path_query_array(current_setting('test.trace')::jsonb, '$.entries[*].source'),
  '[
    {"kind": "web_search", "label": "A page", "subtitle": "about leases",
      "url": "https://a.example/?q=1", "external_ref": "ref-1", "tool": "search"},
    {"kind": "kb_document", "document_id": "00000000-0000-4000-8000-0000000000d1",
      "page": 1, "block": null,
      "passages": [{"text": "second turn", "offset_start": null, "offset_end": null}]},
    {"kind": "kb_document", "document_id": "00000000-0000-4000-8000-0000000000d1",
      "page": 3, "block": 0,
      "passages": [{"text": "rent is due", "offset_start": 10, "offset_end": 21}]},
    {"kind": "caselaw", "opinion_id": 123, "cluster_id": 9000000456, "partial": true,
      "passages": [{"text": "it is so held", "offset_start": 0, "offset_end": 12}]},
    {"kind": "kb_document", "document_id": null, "page": null, "block": null,
      "passages": [{"text": "of no document", "offset_start": null, "offset_end": null}]},
    {"kind": "publication", "label": "A paper", "subtitle": null, "url": null,
      "external_ref": null, "tool": null}
  ]'::jsonb,
  'sources are resolved from the content tables, in the order in which they were recorded'
);
select is(
  (
    select jsonb_agg(e.entry - '{id,message_id,created_at,source,retrieved_at}'::text[])
    from jsonb_array_elements(current_setting('test.trace')::jsonb -> 'entries') as e (entry)
  ),
  '[
    {"source_kind": "web_search", "verification_status": "provenance", "tier": "provenance",
      "confidence": null, "provider": "a.example", "treatment_id": null},
    {"source_kind": "kb_document", "verification_status": "paraphrase_judge", "tier": "supported",
      "confidence": 0.5, "provider": null, "treatment_id": null},
    {"source_kind": "kb_document", "verification_status": "exact_match", "tier": "pass",
      "confidence": 0.95, "provider": null, "treatment_id": null},
    {"source_kind": "caselaw", "verification_status": "tolerant_match", "tier": "pass",
      "confidence": 0.75, "provider": "courtlistener", "treatment_id": null},
    {"source_kind": "kb_document", "verification_status": "unverified", "tier": "fail",
      "confidence": null, "provider": null, "treatment_id": null},
    {"source_kind": "publication", "verification_status": "provenance", "tier": "provenance",
      "confidence": null, "provider": null, "treatment_id": null}
  ]'::jsonb,
  'entries say status, tier, confidence and provider'
);
set local role citeledger_app;
select results_eq(
  $$select (e.entry ->> 'id')::uuid, (e.entry ->> 'message_id')::uuid,
      (e.entry ->> 'retrieved_at')::timestamptz, (e.entry ->> 'created_at')::timestamptz
    from jsonb_array_elements(current_setting('test.trace')::jsonb -> 'entries') as e (entry)
    order by 1$$,
  $$select e.id, e.message_id, e.retrieved_at, e.created_at
    from citeledger.citation_ledger_entry as e
    order by 1$$,
  'ids, turns and times are those of the ledger'
);
select results_eq(
  $$select g.gate
    from jsonb_array_elements(current_setting('test.trace')::jsonb -> 'gates') as g (gate)$$,
  $$select to_jsonb(g) - 'firm_id'
    from citeledger.work_product_fiduciary_gate as g
    join citeledger.messages as m on m.id = g.message_id
    order by m.created_at$$,
  'gates are those of the table, in the order of their turns'
);

-- One message alone.
set local role citeledger_reader;
select is(
  jsonb_path_query_array(
    citeledger.ledger_trace(
      '00000000-0000-4000-8000-0000000000c1', '00000000-0000-4000-8000-0000000000e2'
    ),
    '$.*[*].message_id'
  ),
  '["00000000-0000-4000-8000-0000000000e2", "00000000-0000-4000-8000-0000000000e2"]'::jsonb,
  'for one message: its entry and its gate alone'
);
select is(
  citeledger.ledger_trace('00000000-0000-4000-8000-0000000000c1', c.message_id::uuid),
  '{"chat_id": "00000000-0000-4000-8000-0000000000c1", "entries": [], "gates": []}'::jsonb,
  format('empty lists for %s', c.why)
)
from (
  values
    ('00000000-0000-4000-8000-0000000000e3', 'a user''s message'),
    ('00000000-0000-4000-8000-0000000000e4', 'a message of another chat'),
    ('00000000-0000-4000-8000-00000000dead', 'an unknown message')
) as c (message_id, why);
select is(
  citeledger.ledger_trace('00000000-0000-4000-8000-0000000000c2'),
  '{"chat_id": "00000000-0000-4000-8000-0000000000c2", "entries": [], "gates": []}'::jsonb,
  'a chat without a turn, and of no matter, has empty lists'
);

-- What is withheld: the quote, never the fact that there is one.
set local role citeledger_app;
insert into citeledger.messages (id, chat_id, role)
values (
  '00000000-0000-4000-8000-0000000000e5', '00000000-0000-4000-8000-0000000000c2', 'assistant'
);
insert into citeledger.message_citations (message_id, source_document_id, source_page, source_text)
select
  '00000000-0000-4000-8000-0000000000e5', d.id, row_number() over (order by d.id),
  'quote of ' || d.title
from citeledger.documents as d
order by d.id;
select citeledger.finalize_turn('00000000-0000-4000-8000-0000000000e5');

create function pg_temp.shown(
  p_chat_id uuid default '00000000-0000-4000-8000-0000000000c2'
)
returns text
language sql
as $$
  select string_agg(
    coalesce(
      e.entry #>> '{source,passages,0,text}',
      case
        when e.entry -> 'source' = jsonb_build_object(
          'kind', 'kb_document',
          'document_id', e.entry #> '{source,document_id}',
          'page', e.entry #> '{source,page}',
          'block', null,
          'passages', null,
          'withheld', true
        )
        then 'withheld'
        else 'malformed'
      end
    ),
    ', ' order by e.place
  )
  from jsonb_array_elements(
    citeledger.ledger_trace(p_chat_id) -> 'entries'
  ) with ordinality as e (entry, place)
$$;
set local role citeledger_reader;
select is(
  pg_temp.shown(),
  'quote of Lease, quote of Memo, quote of Old lease, quote of Secret',
  'live documents that are not privileged, of matters that are visible, are shown'
);
set local role citeledger_app;
update citeledger.documents
set is_privileged = true
where id = '00000000-0000-4000-8000-0000000000d2';
select is(
  pg_temp.shown(),
  'quote of Lease, withheld, quote of Old lease, quote of Secret',
  'the quote of a privileged document is withheld'
);
update citeledger.documents
set deleted_at = now()
where id = '00000000-0000-4000-8000-0000000000d3';
select is(
  pg_temp.shown(),
  'quote of Lease, withheld, withheld, quote of Secret',
  'the quote of a deleted document is withheld'
);
set local role citeledger_admin;
insert into citeledger.project_members (project_id, user_id)
values ('00000000-0000-4000-8000-0000000000f2', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
set local role citeledger_reader;
select is(
  pg_temp.shown(),
  'quote of Lease, withheld, withheld, withheld',
  'the quote of a document in a matter that is hidden is withheld'
);
select citeledger.set_context(
  current_setting('test.a')::uuid,
  'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa',
  array['matters:read']
);
select is(
  pg_temp.shown(),
  'quote of Lease, withheld, withheld, quote of Secret',
  'it is shown to who may see the matter'
);
set local role citeledger_app;
update citeledger.documents set is_privileged = false, deleted_at = null;
set local role citeledger_reader;
select is(
  pg_temp.shown(),
  'quote of Lease, quote of Memo, quote of Old lease, quote of Secret',
  'what is privileged or deleted no longer is shown again'
);
select unalike(
  citeledger.ledger_trace('00000000-0000-4000-8000-0000000000c1')::text,
  '%firm_id%',
  'a trace does not tell the firm'
);

-- The same in the chat of a matter: that its own matter is visible says nothing of another's, nor
-- of what is privileged or deleted in its own.
set local role citeledger_app;
update citeledger.documents
set is_privileged = (title = 'Memo'), deleted_at = case when title = 'Old lease' then now() end;
insert into citeledger.chats (id, project_id)
values ('00000000-0000-4000-8000-0000000000c4', '00000000-0000-4000-8000-0000000000f1');
insert into citeledger.messages (id, chat_id, role)
values
  ('00000000-0000-4000-8000-0000000000e6', '00000000-0000-4000-8000-0000000000c4', 'assistant'),
  ('00000000-0000-4000-8000-0000000000e7', '00000000-0000-4000-8000-0000000000c3', 'assistant');
insert into citeledger.message_citations (message_id, source_document_id, source_text)
select m.id, d.id, 'quote of ' || d.title
from citeledger.messages as m, citeledger.documents as d
where m.id in ('00000000-0000-4000-8000-0000000000e6', '00000000-0000-4000-8000-0000000000e7')
order by d.id;
select citeledger.finalize_turns(
  array['00000000-0000-4000-8000-0000000000e6', '00000000-0000-4000-8000-0000000000e7']::uuid[]
);
set local role citeledger_reader;
select is(
  pg_temp.shown(c.chat_id::uuid),
  'quote of Lease, withheld, withheld, quote of Secret',
  format('to who may see both matters, in the chat of the %s one', c.which)
)
from (
  values
    ('00000000-0000-4000-8000-0000000000c4', 'open'),
    ('00000000-0000-4000-8000-0000000000c3', 'walled')
) as c (chat_id, which);
select citeledger.set_context(current_setting('test.a')::uuid, null, array['matters:read']);
select is(
  pg_temp.shown('00000000-0000-4000-8000-0000000000c4'),
  'quote of Lease, withheld, withheld, withheld',
  'a quote from a hidden matter is withheld in the chat of a matter that is visible'
);

-- What a tier is, verification_tier says alone; one that it does not know is in unrecognized.sql.
set local role citeledger_app;
insert into citeledger.messages (id, chat_id, role)
values (
  '00000000-0000-4000-8000-0000000000e8', '00000000-0000-4000-8000-0000000000c4', 'assistant'
);
insert into citeledger.message_citations (message_id, source_text, verified, verification_method)
select '00000000-0000-4000-8000-0000000000e8', 'a quote', s.status <> 'unverified',
  nullif(s.status, 'unverified')
from unnest(
  array[
    'exact_match', 'tolerant_match', 'paraphrase_judge', 'ensemble_strict', 'ensemble_majority',
    'unverified', 'failed'
  ]
) as s (status);
insert into citeledger.message_tool_sources (message_id, source_kind, label)
values ('00000000-0000-4000-8000-0000000000e8', 'web_search', 'A result');
select citeledger.finalize_turn('00000000-0000-4000-8000-0000000000e8');
set local role citeledger_reader;
select is(
  (
    select jsonb_object_agg(e.entry ->> 'verification_status', e.entry -> 'tier')
    from jsonb_array_elements(
      citeledger.ledger_trace(
        '00000000-0000-4000-8000-0000000000c4', '00000000-0000-4000-8000-0000000000e8'
      ) -> 'entries'
    ) as e (entry)
  ),
  (
    select jsonb_object_agg(s.status, citeledger.verification_tier(s.status))
    from unnest(
      array[
        'exact_match', 'tolerant_match', 'paraphrase_judge', 'ensemble_strict',
        'ensemble_majority', 'unverified', 'failed', 'provenance'
      ]
    ) as s (status)
  ),
  'each of the eight statuses has the tier that verification_tier gives it'
);

-- Whom it refuses.
select citeledger.set_context(current_setting('test.a')::uuid, null, array['matters:read']);
select throws_ok(
  format('select citeledger.ledger_trace(%L)', c.chat_id),
  'P0002',
  'chat not found',
  format('not found: %s', c.why)
)
from (
  values
    ('00000000-0000-4000-8000-00000000dead', 'an unknown chat'),
    ('00000000-0000-4000-8000-0000000000e1', 'a message''s id'),
    ('00000000-0000-4000-8000-0000000000c3', 'a chat of a matter that is walled'),
    (null, 'null')
) as c (chat_id, why);
select throws_ok(
  $$select citeledger.ledger_trace(
    '00000000-0000-4000-8000-0000000000c3', '00000000-0000-4000-8000-0000000000e1'
  )$$,
  'P0002',
  'chat not found',
  'a message of another chat is no way to a walled one'
);
select citeledger.set_context(current_setting('test.b')::uuid, null, array['matters:read']);
select throws_ok(
  $$select citeledger.ledger_trace('00000000-0000-4000-8000-0000000000c1')$$,
  'P0002',
  'chat not found',
  'not found: a chat of another firm'
);
select citeledger.set_context(null, null, array['matters:read']);
select throws_ok(
  $$select citeledger.ledger_trace('00000000-0000-4000-8000-0000000000c1')$$,
  '42501',
  'permission denied by the citeledger context',
  'refused: without a firm there is no permission'
);
select citeledger.set_context(current_setting('test.a')::uuid);
select throws_ok(
  $$select citeledger.ledger_trace('00000000-0000-4000-8000-0000000000c1')$$,
  '42501',
  'permission denied by the citeledger context',
  'refused: without matters:read'
);

select * from finish();

rollback;
