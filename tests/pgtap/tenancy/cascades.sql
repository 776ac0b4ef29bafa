-- Inside the cascade of a foreign key the server passes row security for the owner of a table, and a
-- function of that owner inherits it. Anybody may set up such a cascade on temporary tables, with a
-- trigger that calls what it likes: walls and firms must stand there too, and afterwards, when the
-- plans that were made inside are used again.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(14);

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
select set_config('test.firm', citeledger.create_firm('Alpha LLP')::text, true);
select set_config('test.other', citeledger.create_firm('Beta LLP')::text, true);
select citeledger.set_context(
  current_setting('test.firm')::uuid,
  '22222222-2222-4222-8222-222222222222',
  array['matters:read']
);
insert into citeledger.projects (id, matter_number, name)
values ('00000000-0000-4000-8000-000000000001', 'M-1', 'Walled');
insert into citeledger.project_members (project_id, user_id)
values ('00000000-0000-4000-8000-000000000001', '22222222-2222-4222-8222-222222222222');
insert into citeledger.documents (id, project_id, title, doi)
values (
  '00000000-0000-4000-8000-0000000000d1', '00000000-0000-4000-8000-000000000001', 'Secret',
  '10.1000/secret'
);
select citeledger.replace_document_pages(
  '00000000-0000-4000-8000-0000000000d1', '[{"page_number": 1, "blocks": ["secret"]}]'
);
insert into citeledger.chats (id, project_id)
values ('00000000-0000-4000-8000-0000000000c1', '00000000-0000-4000-8000-000000000001');

-- What the cascade calls, and what came of it.
create temporary table attempt (id integer primary key, statement text);
create temporary table parent (id integer primary key);
create temporary table child (
  id integer references parent on delete cascade
);
create temporary table outcome (statement text, sqlstate text);
create function pg_temp.call_all()
returns trigger
language plpgsql
as $$
declare
  v_statement text;
begin
  for v_statement in select a.statement from attempt as a order by a.id loop
    begin
      execute v_statement;
      insert into outcome values (v_statement, '00000');
    exception
      when others then
        insert into outcome values (v_statement, sqlstate);
    end;
  end loop;
  return old;
end
$$;
create trigger call_all before delete on child for each row execute function pg_temp.call_all();
insert into attempt
values
  (1, $$select citeledger.read_pages('00000000-0000-4000-8000-000000000001',
    '00000000-0000-4000-8000-0000000000d1')$$),
  (2, $$select citeledger.cite('00000000-0000-4000-8000-000000000001',
    '{"document_id": "00000000-0000-4000-8000-0000000000d1", "page_number": 1,
      "quote": "secret"}')$$),
  (3, $$select citeledger.ledger_trace('00000000-0000-4000-8000-0000000000c1')$$),
  (4, $$select citeledger.get_citations('00000000-0000-4000-8000-0000000000d1')$$);
grant select on attempt to public;
grant insert, select on outcome to public;
grant select, insert, delete on parent, child to public;

-- Another person of the firm, inside a cascade, and after it in the same session. It comes first,
-- for a plan is made where a function first runs.
select citeledger.set_context(
  current_setting('test.firm')::uuid,
  '33333333-3333-4333-8333-333333333333',
  array['matters:read']
);
insert into parent values (1);
insert into child values (1);
delete from parent;
select results_eq(
  'select o.sqlstate from outcome as o',
  array['P0002', 'P0002', 'P0002', 'P0002'],
  'the wall stands inside a cascade'
);
select throws_ok(a.statement, 'P0002', null, format('and after it: attempt %s', a.id))
from attempt as a
order by a.id;

-- Another firm.
truncate outcome;
select citeledger.set_context(
  current_setting('test.other')::uuid,
  '22222222-2222-4222-8222-222222222222',
  array['matters:read']
);
insert into parent values (2);
insert into child values (2);
delete from parent;
select results_eq(
  'select o.sqlstate from outcome as o',
  array['P0002', 'P0002', 'P0002', 'P0002'],
  'another firm''s matter is not there inside a cascade'
);
select is(
  (select count(*) from citeledger.documents),
  0::bigint,
  'nor are its documents afterwards'
);

-- A member sees it all: so the calls are right.
select citeledger.set_context(
  current_setting('test.firm')::uuid,
  '22222222-2222-4222-8222-222222222222',
  array['matters:read']
);
select lives_ok(a.statement, format('for a member: attempt %s', a.id))
from attempt as a
order by a.id;

select * from finish();
rollback;
