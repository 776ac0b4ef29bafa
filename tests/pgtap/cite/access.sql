-- Who may call what of cite: by full signature, and nobody more.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(75);

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


create function pg_temp.callers(p_function text)
returns text
language sql
as $$
  select coalesce(string_agg(r.role, ' ' order by r.place), 'nobody')
  from (
    values
      (1, 'citeledger_reader'), (2, 'citeledger_app'), (3, 'citeledger_admin'), (4, 'public')
  ) as r (place, role)
  join pg_proc as p
    on format('%s.%s(%s)', p.pronamespace::regnamespace, p.proname, oidvectortypes(p.proargtypes))
      = p_function
  where has_function_privilege(r.role, p.oid, 'execute')
$$;
select is(
  (
    select count(*)
    from pg_proc as p
    where p.pronamespace in ('citeledger'::regnamespace, to_regnamespace('citeledger_private'))
      and p.proname in (
        'cite', 'cite_many', 'cite_ledger_entry', 'suggest_spans', 'read_pages', 'resolve_span',
        'recheck_document', 'replace_document_pages', 'deep_link', 'resolve_spans', 'holds_record',
        'visible_matter_number', 'cite_resolution', 'occurrences', 'read_span'
      )
  ),
  15::bigint,
  'each of these functions is there once'
);
select is(pg_temp.callers(c.function), c.callers, c.function)
from (
  values
    ('citeledger.cite(uuid, jsonb)', 'citeledger_reader citeledger_app citeledger_admin'),
    ('citeledger.cite_many(uuid, jsonb)', 'citeledger_reader citeledger_app citeledger_admin'),
    ('citeledger.cite_ledger_entry(uuid)', 'citeledger_reader citeledger_app citeledger_admin'),
    ('citeledger.suggest_spans(uuid, jsonb, integer)',
      'citeledger_reader citeledger_app citeledger_admin'),
    ('citeledger.read_pages(uuid, uuid, integer)',
      'citeledger_reader citeledger_app citeledger_admin'),
    ('citeledger.resolve_span(jsonb)', 'citeledger_app citeledger_admin'),
    ('citeledger.recheck_document(uuid)', 'citeledger_app citeledger_admin'),
    ('citeledger.replace_document_pages(uuid, jsonb)', 'citeledger_app citeledger_admin'),
    ('citeledger.deep_link(text, uuid, integer, integer)', 'nobody'),
    ('citeledger_private.resolve_spans(uuid, citeledger_private.span[])', 'nobody'),
    ('citeledger_private.holds_record(uuid, uuid, uuid)', 'nobody'),
    ('citeledger_private.visible_matter_number(uuid, uuid)', 'nobody'),
    ('citeledger_private.cite_resolution(text, citeledger_private.span, text)', 'nobody'),
    ('citeledger_private.occurrences(text, text)', 'nobody'),
    ('citeledger_private.read_span(jsonb)', 'nobody')
) as c (function, callers);
select is(
  has_table_privilege(r.role, format('citeledger.%s', t.name), p.privilege)
    or has_any_column_privilege(
      r.role,
      format('citeledger.%s', t.name),
      case when p.privilege in ('delete', 'truncate', 'trigger') then 'select' else p.privilege end
    ),
  t.name = 'document_pages'
    and r.role in ('citeledger_app', 'citeledger_admin')
    and p.privilege in ('select', 'delete', 'truncate', 'trigger'),
  format('%s, %s, %s', r.role, t.name, p.privilege)
)
from (
  values ('citeledger_reader'), ('citeledger_app'), ('citeledger_admin'), ('public')
) as r (role)
cross join (values ('document_pages'), ('document_page_blocks')) as t (name)
cross join (values ('select'), ('insert'), ('update'), ('references')) as p (privilege);
select ok(
  not has_table_privilege(r.role, format('citeledger.%s', t.name), p.privilege),
  format('%s may not %s %s', r.role, p.privilege, t.name)
)
from (
  values ('citeledger_reader'), ('citeledger_app'), ('citeledger_admin'), ('public')
) as r (role)
cross join (values ('document_pages'), ('document_page_blocks')) as t (name)
cross join (values ('delete'), ('truncate'), ('trigger')) as p (privilege);

select * from finish();

rollback;
