-- cite: three layers in one order, the live text, and the link to what holds.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(67);

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
  ('00000000-0000-4000-8000-0000000000f2', 'M-2', 'Another'),
  ('00000000-0000-4000-8000-0000000000f3', 'M-3', 'Walled');
insert into citeledger.project_members (project_id, user_id)
values ('00000000-0000-4000-8000-0000000000f3', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');

set local role citeledger_app;
insert into citeledger.documents (id, project_id, title, document_kind, is_privileged, deleted_at)
values
  ('00000000-0000-4000-8000-0000000000d1', '00000000-0000-4000-8000-0000000000f1', 'Lease',
    'record', false, null),
  ('00000000-0000-4000-8000-0000000000d2', '00000000-0000-4000-8000-0000000000f1', 'Privileged',
    'record', true, null),
  ('00000000-0000-4000-8000-0000000000d3', '00000000-0000-4000-8000-0000000000f1', 'Deleted',
    'record', false, now()),
  ('00000000-0000-4000-8000-0000000000d4', '00000000-0000-4000-8000-0000000000f2', 'Elsewhere',
    'record', false, null),
  ('00000000-0000-4000-8000-0000000000d5', '00000000-0000-4000-8000-0000000000f3', 'Walled',
    'record', false, null),
  ('00000000-0000-4000-8000-0000000000d6', '00000000-0000-4000-8000-0000000000f1', 'Memo',
    'work_product', false, null),
  ('00000000-0000-4000-8000-0000000000d7', null, 'Of no matter', 'record', false, null),
  ('00000000-0000-4000-8000-0000000000d8', '00000000-0000-4000-8000-0000000000f1', 'Authority',
    'authority', false, null),
  ('00000000-0000-4000-8000-0000000000d9', '00000000-0000-4000-8000-0000000000f1', 'Publication',
    'publication', false, null);
select citeledger.replace_document_pages(
  d.id,
  '[{"page_number": 1, "blocks": ["Heading", "The rent is due.", "Signed"]},
    {"page_number": 2, "blocks": ["Second page"]}]'
)
from citeledger.documents as d;

select citeledger.set_context(current_setting('test.b')::uuid);
insert into citeledger.projects (id, matter_number, name)
values ('00000000-0000-4000-8000-0000000000b1', 'M-1', 'Theirs');
insert into citeledger.documents (id, project_id, title)
values (
  '00000000-0000-4000-8000-0000000000bd', '00000000-0000-4000-8000-0000000000b1', 'Their lease'
);
select citeledger.replace_document_pages(
  '00000000-0000-4000-8000-0000000000bd',
  '[{"page_number": 1, "blocks": ["Heading", "The rent is due.", "Signed"]}]'
);
select citeledger.set_context(current_setting('test.a')::uuid, null, array['matters:read']);

create function pg_temp.id(p_n text)
returns uuid
language sql
immutable
as $$
  select ('00000000-0000-4000-8000-' || lpad(p_n, 12, '0'))::uuid
$$;

create function pg_temp.span(
  p_quote text,
  p_page integer default 1,
  p_block integer default null,
  p_start integer default null,
  p_end integer default null,
  p_document uuid default '00000000-0000-4000-8000-0000000000d1'
)
returns jsonb
language sql
immutable
as $$
  select jsonb_build_object(
    'document_id', p_document, 'page_number', p_page, 'block_index', p_block,
    'char_start', p_start, 'char_end', p_end, 'quote', p_quote
  )
$$;

create function pg_temp.refusal(p_statement text)
returns text
language plpgsql
as $$
declare
  v_message text;
  v_detail text;
  v_hint text;
begin
  execute p_statement;
  return 'no error';
exception
  when others then
    get stacked diagnostics
      v_message = message_text, v_detail = pg_exception_detail, v_hint = pg_exception_hint;
    return format('%s|%s|%s|%s', sqlstate, v_message, v_detail, v_hint);
end
$$;

create function pg_temp.not_found(p_matter text, p_document text, p_page integer default 1)
returns text
language sql
as $$
  select pg_temp.refusal(
    format(
      'select citeledger.cite(%L, %L)',
      pg_temp.id(p_matter),
      pg_temp.span('rent', p_page, 1, 4, 8, pg_temp.id(p_document))
    )
  )
$$;
-- A role would see the definer's answer, so the reader asks: it may select no table.
set local role citeledger_reader;

-- What is answered.
select is(
  citeledger.cite(pg_temp.id('f1'), pg_temp.span('rent', 1, 1, 4, 8)) - 'checked_at',
  '{"verified": true, "reason": null, "engine_state": "live",
    "deep_link": "/matters/M-1/record/doc/00000000-0000-4000-8000-0000000000d1?page=1&block=1",
    "span": {"document_id": "00000000-0000-4000-8000-0000000000d1", "page_number": 1,
      "block_index": 1, "char_start": 4, "char_end": 8, "quote": "rent"}}'::jsonb,
  'what holds is verified, and has its link'
);
select is(
  citeledger.cite(pg_temp.id('f1'), pg_temp.span('rent')) - 'checked_at',
  '{"verified": true, "reason": null, "engine_state": "live",
    "deep_link": "/matters/M-1/record/doc/00000000-0000-4000-8000-0000000000d1?page=1",
    "span": {"document_id": "00000000-0000-4000-8000-0000000000d1", "page_number": 1,
      "quote": "rent"}}'::jsonb,
  'anchored in a page, the link names no block, and absent keys stay absent'
);
select is(
  citeledger.cite(pg_temp.id('f1'), pg_temp.span('rents', 1, 1, 4, 9)) - 'checked_at',
  '{"verified": false, "reason": "text_mismatch", "engine_state": "live", "deep_link": null,
    "span": {"document_id": "00000000-0000-4000-8000-0000000000d1", "page_number": 1,
      "block_index": 1, "char_start": 4, "char_end": 9, "quote": "rents"}}'::jsonb,
  'what does not hold has a reason and no link'
);
select is(
  citeledger.cite(pg_temp.id('f1'), c.span) - 'checked_at' - 'span' - 'engine_state',
  jsonb_build_object('verified', false, 'reason', c.reason, 'deep_link', null),
  format('no link: %s', c.reason)
)
from (
  values
    (pg_temp.span('rent', 9), 'page_missing'),
    (pg_temp.span('rent', 1, 9), 'block_out_of_range'),
    (pg_temp.span('rent', 1, 1, 4, 80), 'offsets_out_of_range'),
    (pg_temp.span('Rent'), 'quote_absent')
) as c (span, reason);
select is(
  (citeledger.cite(pg_temp.id('f1'), pg_temp.span('rent')) ->> 'checked_at')::timestamptz,
  statement_timestamp(),
  'checked_at is when the statement began'
);
select matches(
  citeledger.cite(pg_temp.id('f1'), pg_temp.span('Second page', 2)) ->> 'deep_link',
  'page=2$',
  'the page of the link is the page that was verified'
);

-- The first layer: the permission, before anything else.
select is(
  pg_temp.refusal(format(c.statement)),
  pg_temp.refusal('select citeledger.require_permission(''matters:read'')'),
  format('without the permission: %s', c.why)
)
from (
  values
    (format('select citeledger.cite(%L, %L)', pg_temp.id('f1'), pg_temp.span('rent')), 'cite'),
    (format('select citeledger.cite(%L, %L)', pg_temp.id('dead'), pg_temp.span('rent')),
      'no such matter'),
    (format('select citeledger.cite(%L, %L)', pg_temp.id('f1'), '{}'), 'a malformed span'),
    (format('select citeledger.cite(%L, %L)', pg_temp.id('b1'), 'null'), 'everything is wrong'),
    (format('select citeledger.cite_many(%L, %L)', pg_temp.id('f1'), '5'), 'cite_many'),
    (format('select citeledger.cite_ledger_entry(%L)', pg_temp.id('dead')), 'cite_ledger_entry'),
    (format('select citeledger.suggest_spans(%L, %L, 0)', pg_temp.id('f1'), '{}'), 'suggest_spans'),
    (format('select citeledger.read_pages(%L, %L)', pg_temp.id('f1'), pg_temp.id('d1')),
      'read_pages')
) as c (statement, why)
cross join lateral (
  select citeledger.set_context(current_setting('test.a')::uuid, null, array['matters:write'])
) as without;
select citeledger.set_context(current_setting('test.a')::uuid, null, array['matters:read']);

-- The second check: the form of the span, before it is said whether anything is there.
select matches(
  pg_temp.refusal(
    format('select citeledger.cite(%L, %L)', pg_temp.id(c.matter), pg_temp.span('rent', 0))
  ),
  '^22023\|the span is malformed\|page_number: ',
  format('the form comes before the matter: %s', c.matter)
)
from (values ('f1'), ('f3'), ('b1'), ('dead')) as c (matter);

-- The second and third layer: one answer for all that is not there.
select is(
  pg_temp.not_found(c.matter, c.document),
  'P0002|record not found|No record that may be cited here is visible in the context.|'
    || 'Check the ids, the firm of the context, and who may see the matter.',
  format('not found: %s', c.why)
)
from (
  values
    ('f1', 'dead', 'an unknown document'),
    ('dead', 'd1', 'an unknown matter'),
    ('dead', 'dead', 'neither'),
    ('f1', 'd2', 'privileged'),
    ('f1', 'd3', 'deleted'),
    ('f1', 'd4', 'of another matter'),
    ('f2', 'd1', 'in another matter'),
    ('f1', 'd5', 'of a walled matter'),
    ('f3', 'd5', 'in a walled matter'),
    ('f1', 'd6', 'a work product'),
    ('f1', 'd8', 'an authority'),
    ('f1', 'd9', 'a publication'),
    ('f1', 'd7', 'of no matter'),
    ('f1', 'bd', 'of another firm'),
    ('b1', 'bd', 'of another firm, in its matter'),
    ('b1', 'd1', 'in another firm''s matter')
) as c (matter, document, why);
select is(
  pg_temp.not_found('f1', 'd2', 99), pg_temp.not_found('f1', 'd2'),
  'whether a page of it is there is not told'
);
select is(
  pg_temp.refusal(
    format('select citeledger.cite(null, %L)', pg_temp.span('rent'))
  ),
  pg_temp.not_found('dead', 'dead'),
  'null is no matter'
);

-- The wall, from both sides.
select citeledger.set_context(
  current_setting('test.a')::uuid, c.person::uuid, array['matters:read']
)
from (values ('aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')) as c (person);
select is(pg_temp.not_found('f3', 'd5'), 'no error', 'a member sees the walled record');
select citeledger.set_context(
  current_setting('test.a')::uuid, 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb', array['matters:read']
);
select is(
  pg_temp.not_found('f3', 'd5'), pg_temp.not_found('dead', 'dead'), 'another person does not'
);

-- Every state of a document is asked for anew.
select citeledger.set_context(current_setting('test.a')::uuid, null, array['matters:read']);
set local role citeledger_app;
update citeledger.documents set is_privileged = true where id = pg_temp.id('d1');
select is(pg_temp.not_found('f1', 'd1'), pg_temp.not_found('f1', 'dead'), 'privileged now');
update citeledger.documents
set is_privileged = false, deleted_at = now()
where id = pg_temp.id('d1');
select is(pg_temp.not_found('f1', 'd1'), pg_temp.not_found('f1', 'dead'), 'deleted now');
update citeledger.documents
set deleted_at = null, project_id = pg_temp.id('f2')
where id = pg_temp.id('d1');
select is(pg_temp.not_found('f1', 'd1'), pg_temp.not_found('f1', 'dead'), 'moved away now');
select is(pg_temp.not_found('f2', 'd1'), 'no error', 'it is where it went');
update citeledger.documents
set project_id = pg_temp.id('f1'), document_kind = 'authority'
where id = pg_temp.id('d1');
select is(pg_temp.not_found('f1', 'd1'), pg_temp.not_found('f1', 'dead'), 'no record now');
update citeledger.documents set document_kind = 'record' where id = pg_temp.id('d1');
select is(pg_temp.not_found('f1', 'd1'), 'no error', 'a record again');

-- The link: the number of the matter is percent-encoded, whatever it is.
create function pg_temp.link(p_number text)
returns text
language plpgsql
as $$
declare
  v_matter uuid := gen_random_uuid();
  v_document uuid := gen_random_uuid();
begin
  insert into citeledger.projects (id, matter_number, name) values (v_matter, p_number, 'x');
  insert into citeledger.documents (id, project_id, title) values (v_document, v_matter, 'x');
  perform citeledger.replace_document_pages(
    v_document, '[{"page_number": 7, "blocks": ["", "rent"]}]'
  );
  return replace(
    citeledger.cite(
      v_matter, pg_temp.span('rent', 7, 1, null, null, v_document)
    ) ->> 'deep_link',
    v_document::text,
    'ID'
  );
end
$$;
select is(
  pg_temp.link(c.number),
  format('/matters/%s/record/doc/ID?page=7&block=1', c.encoded),
  format('encoded: %s', c.encoded)
)
from (
  values
    ('2026-0147', '2026-0147'),
    ('A.b_c~d-9', 'A.b_c~d-9'),
    ('2026/01', '2026%2F01'),
    ('a b', 'a%20b'),
    ('a?page=9&block=0#x', 'a%3Fpage%3D9%26block%3D0%23x'),
    ('100%', '100%25'),
    ('%2F', '%252F'),
    ('..', '..'),
    ('a+b', 'a%2Bb'),
    (U&'\00E9', '%C3%A9'),
    (U&'\+01F4C4', '%F0%9F%93%84'),
    (E'a\nb', 'a%0Ab'),
    ('"><script>', '%22%3E%3Cscript%3E'),
    (E'back\\slash', 'back%5Cslash'),
    (U&'\FF11', '%EF%BC%91')
) as c (number, encoded);
select throws_ok(
  format('select citeledger.deep_link(''M-1'', %L, 1)', pg_temp.id('d1')),
  '42501',
  null,
  'the application cannot make a link'
);
set local role citeledger_admin;
select throws_ok(
  format('select citeledger.deep_link(''M-1'', %L, 1)', pg_temp.id('d1')),
  '42501',
  null,
  'nor can the admin'
);

select * from finish();

rollback;
