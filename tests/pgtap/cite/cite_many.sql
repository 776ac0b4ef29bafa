-- cite_many: in order, set-based, and a bad item spoils no other.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(23);

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

set local role citeledger_reader;

create function pg_temp.many(p_spans jsonb, p_matter text default 'f1')
returns text[]
language sql
as $$
  select array_agg(
    coalesce(
      i.item #>> '{error,sqlstate}',
      i.item ->> 'reason',
      'verified'
    )
    order by i.place
  )
  from jsonb_array_elements(citeledger.cite_many(pg_temp.id(p_matter), p_spans)) with ordinality
    as i (item, place)
$$;

select is(citeledger.cite_many(pg_temp.id('f1'), '[]'), '[]'::jsonb, 'no spans, no answers');
select is(
  citeledger.cite_many(pg_temp.id('f1'), jsonb_build_array(s.span)) #- '{0,checked_at}',
  jsonb_build_array(citeledger.cite(pg_temp.id('f1'), s.span) - 'checked_at'),
  format('an item is what cite answers: %s', s.span ->> 'quote')
)
from (
  values
    (pg_temp.span('rent', 1, 1, 4, 8)), (pg_temp.span('rent')), (pg_temp.span('Rent', 1, 1, 4, 8)),
    (pg_temp.span('nowhere')), (pg_temp.span('x', 9)), (pg_temp.span('x', 1, 9))
) as s (span);
select is(
  pg_temp.many(
    jsonb_build_array(
      pg_temp.span('rent', 1, 1, 4, 8), -- good
      pg_temp.span('rent', 0), -- malformed
      pg_temp.span('Rent', 1, 1, 4, 8), -- drifted
      pg_temp.span('rent', 1, 1, 4, 8, pg_temp.id('d2')), -- privileged
      null,
      5,
      pg_temp.span('rent', 1, 1, 4, 8, pg_temp.id('d3')), -- deleted
      pg_temp.span('rent', 1, 1, 4, 8, pg_temp.id('d4')), -- of another matter
      pg_temp.span('rent', 1, 1, 4, 8, pg_temp.id('d5')), -- behind a wall
      pg_temp.span('rent', 1, 1, 4, 8, pg_temp.id('bd')), -- of another firm
      pg_temp.span('rent', 1, 1, 4, 8, pg_temp.id('dead')), -- of nobody
      '[]'::jsonb,
      pg_temp.span('rent', 1, 1, 4, 8), -- good, and the same again
      pg_temp.span('Second page', 2),
      pg_temp.span(' ')
    )
  ),
  array[
    'verified', '22023', 'text_mismatch', 'P0002', '22023', '22023', 'P0002', 'P0002', 'P0002',
    'P0002', 'P0002', '22023', 'verified', 'verified', '22023'
  ],
  'every item has its answer in its place'
);
select is(
  citeledger.cite_many(pg_temp.id('f1'), jsonb_build_array(pg_temp.span('rent', 0))),
  '[{"error": {"sqlstate": "22023", "message":
    "the span is malformed: page_number: not a whole number from 1 to 2147483647"}}]'::jsonb,
  'a malformed item names its key'
);
select is(
  (
    select count(distinct i.item)
    from jsonb_array_elements(
      citeledger.cite_many(
        pg_temp.id('f1'),
        (
          select jsonb_agg(pg_temp.span('rent', 1, 1, 4, 8, pg_temp.id(d.id)))
          from (
            values ('d2'), ('d3'), ('d4'), ('d5'), ('d6'), ('d7'), ('d8'), ('d9'), ('bd'), ('dead')
          ) as d (id)
        )
      )
    ) as i (item)
    where i.item = '{"error": {"sqlstate": "P0002", "message": "record not found"}}'
  ),
  1::bigint,
  'what is not there is one answer'
);
select is(
  jsonb_array_length(
    citeledger.cite_many(
      pg_temp.id('f1'),
      (
        select jsonb_agg(pg_temp.span('rent', 1, 1, n.n % 12, n.n % 12 + 4))
        from generate_series(0, 1999) as n (n)
      )
    )
  ),
  2000,
  'many at once'
);

-- What fails as a whole.
select matches(
  pg_temp.refusal(format('select citeledger.cite_many(%L, %L)', pg_temp.id('f1'), c.spans)),
  format('^22023\|p_spans is not a list of spans\|p_spans is %s\.\|.+', c.kind),
  format('no list: %s', c.kind)
)
from (values ('{}', 'object'), ('5', 'number'), ('"x"', 'string'), ('null', 'null'), (null, 'null'))
  as c (spans, kind);
select is(
  pg_temp.refusal(
    format('select citeledger.cite_many(%L, %L)', pg_temp.id(c.matter), c.spans)
  ),
  pg_temp.refusal(
    format('select citeledger.cite(%L, %L)', pg_temp.id('dead'), pg_temp.span('rent'))
  ),
  format('the matter is not there: %s, %s', c.matter, c.spans)
)
from (
  values ('dead', '[]'), ('f3', '[]'), ('b1', '[]'), ('f3', '[5]')
) as c (matter, spans);

select * from finish();

rollback;
