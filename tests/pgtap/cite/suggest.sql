-- suggest_spans: where a quote stands now, nearest first; it offers, and never verifies.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(31);

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

select citeledger.replace_document_pages(
  pg_temp.id('d1'),
  jsonb_build_array(
    jsonb_build_object('page_number', 1, 'blocks', jsonb_build_array('far', 'rent, rent')),
    jsonb_build_object('page_number', 4, 'blocks', jsonb_build_array(
      'rent', 'none', 'a rent and a rent', 'rent', E'over the\nend', 'over the', 'end'
    )),
    jsonb_build_object('page_number', 5, 'blocks', jsonb_build_array('rent', 'Rent', 'RENT')),
    jsonb_build_object('page_number', 9, 'blocks', jsonb_build_array(
      repeat(U&'\+01F4C4', 2) || 'rent', '100% of %s', 'aaaa'
    ))
  )
);
set local role citeledger_reader;
create function pg_temp.places(p_span jsonb, p_limit integer default 100)
returns text
language sql
as $$
  select coalesce(
    string_agg(
      format(
        '%s/%s [%s,%s)', s.page_number, coalesce(s.block_index::text, '-'), s.char_start, s.char_end
      ),
      ' '
      order by s.place
    ),
    'nowhere'
  )
  from citeledger.suggest_spans(pg_temp.id('f1'), p_span, p_limit) with ordinality
    as s (page_number, block_index, char_start, char_end, place)
$$;
select is(
  pg_temp.places(pg_temp.span('rent', 4, 2, 2, 6)),
  '4/2 [2,6) 4/2 [13,17) 4/3 [0,4) 4/0 [0,4) 5/0 [0,4) 1/1 [0,4) 1/1 [6,10) 9/0 [2,6)',
  'all of them, nearest first: by page, then block, then offset; in code points'
);
select is(
  pg_temp.places(pg_temp.span('rent', 4, 2, 14, 18)),
  '4/2 [13,17) 4/2 [2,6) 4/3 [0,4) 4/0 [0,4) 5/0 [0,4) 1/1 [6,10) 1/1 [0,4) 9/0 [2,6)',
  'nearest to another offset'
);
select is(
  pg_temp.places(pg_temp.span('rent', 4, 2, 14, 18), c.n),
  c.places,
  format('at most %s', c.n)
)
from (values (1, '4/2 [13,17)'), (2, '4/2 [13,17) 4/2 [2,6)')) as c (n, places);
select is(
  (
    select count(*)
    from citeledger.suggest_spans(pg_temp.id('f1'), pg_temp.span('rent', 4, 2, 2, 6))
  ),
  5::bigint,
  'five, if nothing is said'
);
select is(pg_temp.places(pg_temp.span('rent', 99), 1), '9/0 [2,6)', 'from a page that is gone');
select is(
  pg_temp.places(pg_temp.span('aa', 9, 2)), '9/2 [0,2) 9/2 [2,4)', 'places do not overlap'
);
select is(pg_temp.places(pg_temp.span('%s', 9)), '9/1 [8,10)', 'no pattern');
select is(pg_temp.places(pg_temp.span('%', 9)), '9/1 [3,4) 9/1 [8,9)', 'a sign is itself');
select is(pg_temp.places(pg_temp.span('RENT', 1)), '5/2 [0,4)', 'bytes decide');
select is(pg_temp.places(pg_temp.span('nothing', 1)), 'nowhere', 'a quote that is nowhere');
select is(
  pg_temp.places(pg_temp.span(E'over the\nend', 4, 4)),
  '4/4 [0,12) 4/- [46,58)',
  'within a block, and over the end of one, counted in the page'
);

-- What it offers holds, and cite makes nothing of it.
select is(
  (
    select array_agg(distinct citeledger.cite(
      pg_temp.id('f1'),
      pg_temp.span(
        q.quote, s.page_number, s.block_index, s.char_start, s.char_end
      )
    ) ->> 'verified')
    from (values ('rent'), (E'over the\nend'), ('aa'), ('%s')) as q (quote)
    cross join lateral citeledger.suggest_spans(
      pg_temp.id('f1'), pg_temp.span(q.quote, 4), 100
    ) as s
  ),
  array['true'],
  'each place that it offers holds'
);
select is(
  citeledger.cite(pg_temp.id('f1'), pg_temp.span('rent', 4, 1, 0, 4)) ->> 'reason',
  'text_mismatch',
  'a quote that stands elsewhere does not verify'
);

-- The checks of cite, and a limit that is one.
select is(
  pg_temp.refusal(
    format(
      'select citeledger.suggest_spans(%L, %L)',
      pg_temp.id(c.matter),
      pg_temp.span('rent', 1, 1, 4, 8, pg_temp.id(c.document))
    )
  ),
  pg_temp.refusal(
    format('select citeledger.cite(%L, %L)', pg_temp.id('dead'), pg_temp.span('rent'))
  ),
  format('not found: %s in %s', c.document, c.matter)
)
from (
  values
    ('f1', 'd2'), ('f1', 'd3'), ('f1', 'd4'), ('f2', 'd1'), ('f3', 'd5'), ('f1', 'd6'),
    ('f1', 'd7'), ('f1', 'bd'), ('b1', 'bd'), ('f1', 'dead'), ('dead', 'd1')
) as c (matter, document);
select matches(
  pg_temp.refusal(
    format(
      'select citeledger.suggest_spans(%L, %L, %L)', pg_temp.id('f1'), pg_temp.span('rent'), c.n
    )
  ),
  '^22023\|p_limit is not a number of suggestions\|p_limit is [^|]+\.\|.+',
  format('no limit: %s', coalesce(c.n::text, 'null'))
)
from (values (0), (-1), (null)) as c (n);

select * from finish();

rollback;
