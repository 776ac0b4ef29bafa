-- Permissions: has_permission and require_permission, and the public functions that need one or
-- that are not for every role.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(69);

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
select set_config('test.firm', citeledger.create_firm('Permissions LLP')::text, true);

set local role citeledger_app;
select citeledger.set_context(
  current_setting('test.firm')::uuid, null, array['matters:read', 'a.b']
);

select is(citeledger.has_permission(c.permission), c.expected, format('has_permission: %s', c.why))
from (
  values
    ('matters:read', true, 'one that is held'),
    ('a.b', true, 'another that is held'),
    ('matters:write', false, 'one that is not held'),
    ('Matters:read', false, 'another case'),
    ('matters', false, 'the beginning of one'),
    ('matters:read2', false, 'more than one'),
    (' matters:read', false, 'a blank in front'),
    ('matters:read ', false, 'a blank behind'),
    ('matters:read,a.b', false, 'two at once'),
    ('a_b', false, 'a dot is no wildcard'),
    ('%', false, 'a percent sign'),
    ('', false, 'empty'),
    (null, false, 'null')
) as c (permission, expected, why);

-- A setting of one permission and what is asked for may look alike without being a permission.
create function pg_temp.holds(p_permissions text, p_permission text)
returns boolean
language plpgsql
as $$
begin
  perform set_config('citeledger.permissions', p_permissions, true);
  return citeledger.has_permission(p_permission);
end
$$;
select is(
  pg_temp.holds(c.permissions, c.permission), c.expected, format('has_permission: %s', c.why)
)
from (
  values
    ('{a.b}', 'a.b', true, 'the only one'),
    ('{a,b}', 'a,b', false, 'two are not one'),
    ('{"a"}', '"a"', false, 'quotes are no part of one'),
    ('{}', '', false, 'none is not one'),
    ('{{a}}', '{a}', false, 'braces are no part of one'),
    ('{a b}', 'a b', false, 'a blank is in none'),
    (E'{a\n}', E'a\n', false, 'a line feed is in none'),
    ('{é}', 'é', false, 'a letter beyond ASCII is in none'),
    ('{a}', null, false, 'null is none')
) as c (permissions, permission, expected, why);
select citeledger.set_context(
  current_setting('test.firm')::uuid, null, array['matters:read', 'a.b']
);

select lives_ok(
  $$select citeledger.require_permission('matters:read')$$,
  'require_permission returns when the permission is held'
);
select throws_ok(
  $$select citeledger.require_permission('matters:write')$$,
  '42501',
  'permission denied by the citeledger context',
  'require_permission raises 42501 for one that is not held'
);
select throws_ok(
  'select citeledger.require_permission(null)',
  '42501',
  'permission denied by the citeledger context',
  'require_permission raises 42501 for null'
);
select citeledger.set_context(null);
select throws_ok(
  $$select citeledger.require_permission('matters:read')$$,
  '42501',
  'permission denied by the citeledger context',
  'require_permission raises 42501 without a context'
);

-- What only reads checks for itself, whoever calls.
select citeledger.set_context(current_setting('test.firm')::uuid);
insert into citeledger.chats (id) values ('00000000-0000-4000-8000-000000000001');

set local role citeledger_reader;
select throws_ok(
  $$select citeledger.ledger_trace('00000000-0000-4000-8000-000000000001')$$,
  '42501',
  'permission denied by the citeledger context',
  'ledger_trace needs matters:read of the reader'
);
select throws_ok(
  'select citeledger.check_integrity()',
  '42501',
  'permission denied by the citeledger context',
  'check_integrity needs matters:read of the reader'
);
set local role citeledger_admin;
select throws_ok(
  $$select citeledger.ledger_trace('00000000-0000-4000-8000-000000000001')$$,
  '42501',
  'permission denied by the citeledger context',
  'ledger_trace needs matters:read of the admin too'
);
select throws_ok(
  'select citeledger.check_integrity()',
  '42501',
  'permission denied by the citeledger context',
  'check_integrity needs matters:read of the admin too'
);
select throws_ok(
  $$select citeledger.ledger_trace('00000000-0000-4000-8000-00000000dead')$$,
  '42501',
  'permission denied by the citeledger context',
  'without the permission an unknown chat is not told from a known one'
);

set local role citeledger_reader;
select citeledger.set_context(current_setting('test.firm')::uuid, null, array['matters:read']);
select lives_ok(
  $$select citeledger.ledger_trace('00000000-0000-4000-8000-000000000001')$$,
  'the reader may call ledger_trace with matters:read'
);
select lives_ok(
  'select citeledger.check_integrity()',
  'the reader may call check_integrity with matters:read'
);

-- What writes is not for the reader.
select throws_ok(c.query, '42501', null, format('not for the reader: %s', c.query))
from (
  values
    ('select citeledger.assemble_ledger_entries(null)'),
    ('select citeledger.compute_and_record_gate(null)'),
    ('select citeledger.finalize_turn(null)'),
    ('select citeledger.finalize_turns(null)'),
    ('select citeledger.finalize_pending()'),
    ('select citeledger.create_firm(''Forged'')'),
    ('select citeledger.delete_firm(null)'),
    ('select citeledger.firm_ids()')
) as c (query);

-- What onboards, erases or sweeps is not for the app.
set local role citeledger_app;
select throws_ok(c.query, '42501', null, format('not for the app: %s', c.query))
from (
  values
    ('select citeledger.create_firm(''Forged'')'),
    ('select citeledger.delete_firm(current_setting(''test.firm'')::uuid)'),
    ('select citeledger.firm_ids()')
) as c (query);
select is(
  (select count(*) from citeledger.firms),
  1::bigint,
  'the firm is still there after delete_firm was refused to the app'
);

-- The helpers are for nobody: the schema is closed, also where a policy needs an EXECUTE.
select throws_ok(c.query, '42501', null, format('not for the app: %s', c.query))
from (
  values
    ('select citeledger_private.is_behind_wall(null, null)'),
    ('select citeledger_private.settle(null, null, null)'),
    ('select citeledger_private.record_gates(null, null)'),
    ('select citeledger_private.assemble_set(null, null, null)'),
    ('select citeledger_private.enter_firm(null)'),
    ('select citeledger_private.withdraw_gates(null, null, null, null)')
) as c (query);
set local role citeledger_admin;
select throws_ok(c.query, '42501', null, format('not for the admin: %s', c.query))
from (
  values
    ('select citeledger_private.is_behind_wall(null, null)'),
    ('select citeledger_private.settle(null, null, null)'),
    ('select citeledger_private.record_gates(null, null)')
) as c (query);

-- The pattern of a hijack: temporary tables named like those that the definers read.
set local role citeledger_app;
select citeledger.set_context(current_setting('test.firm')::uuid, null, array['matters:read']);
create temporary table chats (
  firm_id uuid, id uuid, project_id uuid
);
create temporary table projects (firm_id uuid, id uuid);
create temporary table project_members (firm_id uuid, project_id uuid, user_id uuid);
create temporary table messages (
  firm_id uuid, id uuid, chat_id uuid, role text, finalized_at timestamptz
);
create temporary table firms (id uuid, name text);
create temporary table citation_ledger_entry (firm_id uuid, chat_id uuid, message_id uuid);
create temporary table work_product_fiduciary_gate (firm_id uuid, chat_id uuid, message_id uuid);
create temporary table message_citations (firm_id uuid, id uuid, message_id uuid);
create temporary table pg_class (oid oid);
create function pg_temp.has_permission(p_permission text)
returns boolean
language sql
as $$ select true $$;
create function pg_temp.current_setting(p_name text, p_missing boolean)
returns text
language sql
as $$ select '99999999-9999-4999-8999-999999999999'::text $$;
grant all on chats, projects, project_members, messages, firms, citation_ledger_entry,
  work_product_fiduciary_gate, message_citations, pg_class to public;
insert into chats (firm_id, id)
values (current_setting('test.firm')::uuid, '00000000-0000-4000-8000-00000000dead');
insert into messages (firm_id, id, chat_id, role, finalized_at)
values (
  current_setting('test.firm')::uuid, '00000000-0000-4000-8000-00000000beef',
  '00000000-0000-4000-8000-00000000dead', 'assistant', now()
);
insert into firms (id) values ('99999999-9999-4999-8999-999999999999');

select throws_ok(
  $$select citeledger.ledger_trace('00000000-0000-4000-8000-00000000dead')$$,
  'P0002',
  'chat not found',
  'a temporary chats table invents no chat for ledger_trace'
);
select is(
  citeledger.finalize_turn('00000000-0000-4000-8000-00000000beef') ->> 'finalized',
  'false',
  'a temporary messages table invents no turn for finalize_turn'
);
select is(
  citeledger.assemble_ledger_entries('00000000-0000-4000-8000-00000000beef'),
  0,
  'a temporary messages table invents no turn for assemble_ledger_entries'
);
select is(
  citeledger.compute_and_record_gate('00000000-0000-4000-8000-00000000beef') is null,
  true,
  'a temporary messages table invents no turn for compute_and_record_gate'
);
select is(
  citeledger.finalize_turns(array['00000000-0000-4000-8000-00000000beef'::uuid]),
  0,
  'a temporary messages table invents no turn for finalize_turns'
);
select is(citeledger.finalize_pending(), 0, 'a temporary messages table has nothing pending');
select is_empty(
  'select citeledger.check_integrity()',
  'a temporary messages table is nothing to check_integrity'
);
select is_empty(
  'select citeledger.metadata_only_violations()',
  'a temporary pg_class is nothing to metadata_only_violations'
);
select is(
  citeledger.current_firm_id()::text,
  pg_catalog.current_setting('test.firm'),
  'a temporary function does not become the context'
);
select is(
  citeledger.has_permission('matters:write'),
  false,
  'a temporary function does not become has_permission'
);
set local role citeledger_admin;
select ok(
  '99999999-9999-4999-8999-999999999999' not in (select citeledger.firm_ids()),
  'a temporary firms table invents no firm for firm_ids'
);
select throws_ok(
  $$select citeledger.delete_firm('99999999-9999-4999-8999-999999999999')$$,
  'P0002',
  'firm not found',
  'a temporary firms table invents no firm for delete_firm'
);

select * from finish();

rollback;
