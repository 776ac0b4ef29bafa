-- The context: firm, person and permissions, from citeledger's settings or from request.jwt.claims,
-- never from both, and closed on everything that is absent, empty or malformed.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(135);

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

-- Sets what a session may carry; null leaves the setting empty, as SET LOCAL does at its end.
create function pg_temp.carry(
  p_firm text,
  p_user text,
  p_permissions text,
  p_claims text
)
returns void
language plpgsql
as $$
begin
  perform set_config('citeledger.firm_id', coalesce(p_firm, ''), true);
  perform set_config('citeledger.user_id', coalesce(p_user, ''), true);
  perform set_config('citeledger.permissions', coalesce(p_permissions, ''), true);
  perform set_config('request.jwt.claims', coalesce(p_claims, ''), true);
end
$$;

create function pg_temp.firm_under(p_firm text, p_claims text)
returns uuid
language plpgsql
as $$
begin
  perform pg_temp.carry(p_firm, null, null, p_claims);
  return citeledger.current_firm_id();
end
$$;

create function pg_temp.user_under(p_firm text, p_user text, p_claims text)
returns uuid
language plpgsql
as $$
begin
  perform pg_temp.carry(p_firm, p_user, null, p_claims);
  return citeledger.current_user_id();
end
$$;

create function pg_temp.reads_under(p_firm text, p_permissions text, p_claims text)
returns boolean
language plpgsql
as $$
begin
  perform pg_temp.carry(p_firm, null, p_permissions, p_claims);
  return citeledger.has_permission('matters:read');
end
$$;

set local role citeledger_admin;
select set_config('test.firm', citeledger.create_firm('Context LLP')::text, true);

set local role citeledger_app;

-- Nothing was ever set in this session, so every setting is null.
select is(citeledger.current_firm_id(), null, 'without any setting there is no firm');
select is(citeledger.current_user_id(), null, 'without any setting there is nobody');
select is(citeledger.has_permission('matters:read'), false, 'without any setting: no permission');
select is_empty('select from citeledger.firms', 'without any setting no firm is visible');

-- set_context writes all three.
select lives_ok(
  $$select citeledger.set_context(
    '11111111-1111-4111-8111-111111111111',
    '22222222-2222-4222-8222-222222222222',
    array['matters:read', 'x.y_z-0']
  )$$,
  'set_context takes a firm, a person and permissions'
);
select is(
  citeledger.current_firm_id(),
  '11111111-1111-4111-8111-111111111111',
  'set_context sets the firm'
);
select is(
  citeledger.current_user_id(),
  '22222222-2222-4222-8222-222222222222',
  'set_context sets the person'
);
select is(
  citeledger.has_permission('matters:read'),
  true,
  'set_context grants the first permission'
);
select is(citeledger.has_permission('x.y_z-0'), true, 'set_context grants the last permission');
select is(
  array[
    current_setting('citeledger.firm_id'),
    current_setting('citeledger.user_id'),
    current_setting('citeledger.permissions')
  ],
  array[
    '11111111-1111-4111-8111-111111111111',
    '22222222-2222-4222-8222-222222222222',
    '{matters:read,x.y_z-0}'
  ],
  'the settings are those that are documented'
);

savepoint before_another;
select citeledger.set_context('33333333-3333-4333-8333-333333333333');
select is(
  array[citeledger.current_firm_id()::text, citeledger.current_user_id()::text],
  array['33333333-3333-4333-8333-333333333333', null],
  'a second set_context replaces firm and person'
);
select is(
  citeledger.has_permission('matters:read'),
  false,
  'a second set_context leaves no permission of the first'
);
rollback to savepoint before_another;
select is(
  citeledger.current_firm_id(),
  '11111111-1111-4111-8111-111111111111',
  'a context set after a savepoint goes with the rollback to it'
);

select citeledger.set_context(
  '11111111-1111-4111-8111-111111111111', null, array[repeat('a', 64)]
);
select is(
  citeledger.has_permission(repeat('a', 64)),
  true,
  'a permission name may have 64 characters'
);
select citeledger.set_context('11111111-1111-4111-8111-111111111111', null, array['NULL']);
select is(
  citeledger.has_permission('NULL'),
  true,
  'a permission whose text literal needs quotes is found'
);

select lives_ok(
  $$select citeledger.set_context('11111111-1111-4111-8111-111111111111', null, null)$$,
  'null permissions are no permissions'
);
select is(citeledger.has_permission('matters:read'), false, 'null permissions grant nothing');

-- A bad list is refused, and what was set before stays.
select citeledger.set_context(
  '11111111-1111-4111-8111-111111111111', null, array['matters:read']
);
select throws_ok(
  format(
    'select citeledger.set_context(%L, null, %L::text[])',
    '33333333-3333-4333-8333-333333333333', c.permissions
  ),
  '22023',
  'p_permissions is not a list of permission names',
  format('set_context refuses %s', c.why)
)
from (
  values
    (array[null]::text[], 'a null permission'),
    (array['matters:read', null], 'a null permission behind a good one'),
    (array[''], 'an empty permission'),
    (array[' '], 'a blank permission'),
    (array['matters read'], 'a permission with a blank in it'),
    (array['matters:read '], 'a permission with a blank behind it'),
    (array[E'matters:read\n'], 'a permission with a line feed behind it'),
    (array['a,b'], 'a permission with a comma'),
    (array['{a}'], 'a permission with braces'),
    (array['a"'], 'a permission with a double quote'),
    (array['a''; reset role; --'], 'a permission with a quote and a semicolon'),
    (array['a\'], 'a permission with a backslash'),
    (array['.a'], 'a permission that starts with a dot'),
    (array['é'], 'a permission with a letter that is not ASCII'),
    (array[repeat('a', 65)], 'a permission of 65 characters'),
    (array[array['a'], array['b']], 'an array of two dimensions')
) as c (permissions, why);
select is(
  citeledger.current_firm_id(),
  '11111111-1111-4111-8111-111111111111',
  'a refused set_context changes no firm'
);

-- Null clears.
select lives_ok(
  $$select citeledger.set_context(
    null, '22222222-2222-4222-8222-222222222222', array['matters:read']
  )$$,
  'set_context takes null for the firm'
);
select is(citeledger.current_firm_id(), null, 'a null firm clears the firm');
select is(citeledger.current_user_id(), null, 'a person without a firm is nobody');
select is(citeledger.has_permission('matters:read'), false, 'a null firm leaves no permission');

-- The firm: from the setting.
select is(
  pg_temp.firm_under(c.setting, c.claims),
  c.expected::uuid,
  format('firm setting: %s', c.why)
)
from (
  values
    ('11111111-1111-4111-8111-111111111111', null, '11111111-1111-4111-8111-111111111111',
      'a uuid is the firm'),
    ('ABCDEF01-2345-4678-9ABC-DEF012345678', null, 'abcdef01-2345-4678-9abc-def012345678',
      'capital letters do no harm'),
    (null, null, null, 'empty, and no claims, is no firm'),
    ('null', null, null, 'the word null is no firm'),
    ('*', null, null, 'a star is no firm'),
    ('%', null, null, 'a percent sign is no firm'),
    (' ', '{"firm_id":"44444444-4444-4444-8444-444444444444"}', null,
      'a blank does not fall back to the claims'),
    ('garbage', '{"firm_id":"44444444-4444-4444-8444-444444444444"}', null,
      'garbage does not fall back to the claims'),
    ('{11111111-1111-4111-8111-111111111111}', null, null, 'braces are malformed'),
    ('11111111111141118111111111111111', null, null, 'a uuid without dashes is malformed'),
    ('urn:uuid:11111111-1111-4111-8111-111111111111', null, null, 'a urn is malformed'),
    (E'11111111-1111-4111-8111-111111111111\n', null, null, 'a line feed behind is malformed'),
    (' 11111111-1111-4111-8111-111111111111', null, null, 'a blank in front is malformed'),
    ('11111111-1111-4111-8111-11111111111', null, null, 'a digit too few is malformed'),
    ('11111111-1111-4111-8111-1111111111111', null, null, 'a digit too many is malformed'),
    ('11111111-1111-4111-8111-11111111111g', null, null, 'a letter beyond f is malformed'),
    ('1111-111-1111-4111-8111-111111111111', null, null, 'a dash too many is malformed'),
    ('------------------------------------', null, null, 'nothing but dashes is malformed'),
    ('１１１１１１１１-1111-4111-8111-111111111111', null, null, 'full-width digits are malformed'),
    ('11111111-1111-4111-8111-111111111111',
      '{"firm_id":"44444444-4444-4444-8444-444444444444"}',
      '11111111-1111-4111-8111-111111111111', 'it wins over the claims'),
    ('11111111-1111-4111-8111-111111111111', 'no json', '11111111-1111-4111-8111-111111111111',
      'claims that are not consulted may be anything')
) as c (setting, claims, expected, why);

-- The firm: from the claims.
select is(
  pg_temp.firm_under(null, c.claims),
  c.expected::uuid,
  format('firm claim: %s', c.why)
)
from (
  values
    ('{"firm_id":"44444444-4444-4444-8444-444444444444"}', '44444444-4444-4444-8444-444444444444',
      'a uuid is the firm'),
    ('{}', null, 'absent is no firm'),
    ('{"firm_id":null}', null, 'null is no firm'),
    ('{"firm_id":""}', null, 'empty is no firm'),
    ('{"firm_id":"garbage"}', null, 'garbage is no firm'),
    ('{"firm_id":"{44444444-4444-4444-8444-444444444444}"}', null, 'braces are malformed'),
    ('{"firm_id":44444444}', null, 'a number is no firm'),
    ('{"firm_id":["44444444-4444-4444-8444-444444444444"]}', null, 'an array is no firm'),
    ('{"firm_id":{"id":"44444444-4444-4444-8444-444444444444"}}', null, 'an object is no firm'),
    ('{"Firm_id":"44444444-4444-4444-8444-444444444444"}', null, 'another key is no firm'),
    ('{"app":{"firm_id":"44444444-4444-4444-8444-444444444444"}}', null,
      'a nested key is no firm'),
    ('["firm_id","44444444-4444-4444-8444-444444444444"]', null, 'a list is no claims'),
    ('"44444444-4444-4444-8444-444444444444"', null, 'a string is no claims'),
    ('null', null, 'null is no claims'),
    ('7', null, 'a number is no claims')
) as c (claims, expected, why);

-- The person.
select is(
  pg_temp.user_under(c.firm, c.person, c.claims),
  c.expected::uuid,
  format('person: %s', c.why)
)
from (
  values
    ('11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222', null,
      '22222222-2222-4222-8222-222222222222', 'the setting, with a firm set'),
    ('11111111-1111-4111-8111-111111111111', null, null, null, 'empty is nobody'),
    ('11111111-1111-4111-8111-111111111111', 'garbage', null, null, 'malformed is nobody'),
    ('11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-22222222222g', null, null,
      'a letter beyond f is nobody'),
    ('11111111-1111-4111-8111-111111111111', '2222-222-2222-4222-8222-222222222222', null, null,
      'a dash too many is nobody'),
    ('11111111-1111-4111-8111-111111111111', '22222222222242228222222222222222', null, null,
      'a uuid without dashes is nobody'),
    ('11111111-1111-4111-8111-111111111111', null,
      '{"sub":"55555555-5555-4555-8555-555555555555"}', null,
      'never the claims'' sub beside the setting''s firm'),
    ('11111111-1111-4111-8111-111111111111', 'garbage',
      '{"sub":"55555555-5555-4555-8555-555555555555"}', null,
      'a malformed setting does not fall back to the claims'),
    (null, '22222222-2222-4222-8222-222222222222', null, null,
      'the setting counts for nothing without a firm'),
    (null, '22222222-2222-4222-8222-222222222222',
      '{"firm_id":"44444444-4444-4444-8444-444444444444"}', null,
      'never the setting''s person beside the claims'' firm'),
    (null, '22222222-2222-4222-8222-222222222222',
      '{"firm_id":"44444444-4444-4444-8444-444444444444",
        "sub":"55555555-5555-4555-8555-555555555555"}',
      '55555555-5555-4555-8555-555555555555', 'sub, with the firm from the claims'),
    (null, null, '{"sub":"garbage"}', null, 'a malformed sub is nobody'),
    (null, null, '{"sub":null}', null, 'a null sub is nobody'),
    (null, null, '[]', null, 'a list is no claims')
) as c (firm, person, claims, expected, why);

-- The permissions.
select is(
  pg_temp.reads_under(c.firm, c.permissions, c.claims),
  c.expected,
  format('permissions: %s', c.why)
)
from (
  values
    ('11111111-1111-4111-8111-111111111111', '{matters:read}', null, true, 'the setting grants'),
    ('11111111-1111-4111-8111-111111111111', '{"matters:read"}', null, true,
      'the setting grants in quotes'),
    ('11111111-1111-4111-8111-111111111111', '{a,"matters:read",b}', null, true,
      'the setting grants among others'),
    (null, '{matters:read}', null, false, 'nothing without a firm'),
    ('garbage', '{matters:read}', null, false, 'nothing with a malformed firm'),
    ('garbage', '{matters:read}',
      '{"firm_id":"44444444-4444-4444-8444-444444444444","permissions":["matters:read"]}', false,
      'nothing with a malformed firm, whatever the claims say'),
    ('11111111-1111-4111-8111-111111111111', null, null, false, 'empty grants nothing'),
    ('11111111-1111-4111-8111-111111111111', '{}', null, false, 'an empty list grants nothing'),
    ('11111111-1111-4111-8111-111111111111', 'matters:read', null, false,
      'a word without braces grants nothing'),
    ('11111111-1111-4111-8111-111111111111', '{matters:read', null, false,
      'an open brace grants nothing'),
    ('11111111-1111-4111-8111-111111111111', '{matters:read,}', null, false,
      'a comma at the end grants nothing'),
    ('11111111-1111-4111-8111-111111111111', '{{matters:read}}', null, false,
      'a nested list grants nothing'),
    ('11111111-1111-4111-8111-111111111111', '{"matters:read}', null, false,
      'a quote that is not closed grants nothing'),
    ('11111111-1111-4111-8111-111111111111', '{matters:read"}', null, false,
      'a quote that was not opened grants nothing'),
    ('11111111-1111-4111-8111-111111111111', '["matters:read"]', null, false,
      'a JSON list in the setting grants nothing'),
    ('11111111-1111-4111-8111-111111111111', '*', null, false, 'a star grants nothing'),
    ('11111111-1111-4111-8111-111111111111', null,
      '{"firm_id":"11111111-1111-4111-8111-111111111111","permissions":["matters:read"]}', false,
      'never the claims'' permissions beside the setting''s firm'),
    (null, '{matters:read}', '{"firm_id":"44444444-4444-4444-8444-444444444444"}', false,
      'never the setting''s permissions beside the claims'' firm'),
    (null, null,
      '{"firm_id":"44444444-4444-4444-8444-444444444444","permissions":["a","matters:read"]}',
      true, 'the claims grant'),
    (null, null, '{"permissions":["matters:read"]}', false,
      'the claims grant nothing without a firm'),
    (null, null, '{"firm_id":"garbage","permissions":["matters:read"]}', false,
      'the claims grant nothing with a malformed firm'),
    (null, null,
      '{"firm_id":"44444444-4444-4444-8444-444444444444","permissions":[]}', false,
      'an empty list in the claims grants nothing'),
    (null, null,
      '{"firm_id":"44444444-4444-4444-8444-444444444444","permissions":null}', false,
      'null in the claims grants nothing'),
    (null, null,
      '{"firm_id":"44444444-4444-4444-8444-444444444444","permissions":"matters:read"}', false,
      'a string in the claims grants nothing'),
    (null, null,
      '{"firm_id":"44444444-4444-4444-8444-444444444444","permissions":{"matters:read":true}}',
      false, 'an object in the claims grants nothing'),
    (null, null,
      '{"firm_id":"44444444-4444-4444-8444-444444444444","permissions":[["matters:read"]]}',
      false, 'a nested list in the claims grants nothing'),
    (null, null,
      '{"firm_id":"44444444-4444-4444-8444-444444444444","permissions":["Matters:Read"]}',
      false, 'another case in the claims grants nothing')
) as c (firm, permissions, claims, expected, why);

-- Claims that are no JSON fail, wherever they are consulted. A table needs a row for that: without
-- one to filter, its policy is not evaluated at all.
select pg_temp.carry(current_setting('test.firm'), null, null, null);
insert into citeledger.chats (id) values ('00000000-0000-4000-8000-0000000000c1');
insert into citeledger.messages (id, chat_id, role)
values (
  '00000000-0000-4000-8000-0000000000e1', '00000000-0000-4000-8000-0000000000c1', 'assistant'
);
select pg_temp.carry(null, null, null, 'no json');
select throws_ok(
  c.query,
  '22P02',
  null,
  format('claims that are no JSON fail with 22P02 in %s', c.query)
)
from (
  values
    ('select citeledger.current_firm_id()'),
    ('select citeledger.current_user_id()'),
    ('select citeledger.has_permission(''matters:read'')'),
    ('select citeledger.require_permission(''matters:read'')'),
    ('select from citeledger.messages'),
    ('select from citeledger.firms')
) as c (query);

-- Under claims the context cannot be set, by nobody, and not to null either.
select pg_temp.carry(
  null, null, null, '{"firm_id":"44444444-4444-4444-8444-444444444444"}'
);
select throws_ok(
  $$select citeledger.set_context('11111111-1111-4111-8111-111111111111')$$,
  '42501',
  'the context comes from request.jwt.claims and cannot be set',
  'set_context is refused under claims'
);
select throws_ok(
  'select citeledger.set_context(null)',
  '42501',
  'the context comes from request.jwt.claims and cannot be set',
  'set_context cannot clear a context under claims either'
);
select is(
  citeledger.current_firm_id(),
  '44444444-4444-4444-8444-444444444444',
  'the claims'' firm stays after set_context was refused'
);
set local role citeledger_reader;
select throws_ok(
  $$select citeledger.set_context('11111111-1111-4111-8111-111111111111')$$,
  '42501',
  'the context comes from request.jwt.claims and cannot be set',
  'set_context is refused to the reader under claims'
);
set local role citeledger_admin;
select throws_ok(
  $$select citeledger.set_context('11111111-1111-4111-8111-111111111111')$$,
  '42501',
  'the context comes from request.jwt.claims and cannot be set',
  'set_context is refused to the admin under claims'
);
set local role citeledger_app;
select pg_temp.carry(null, null, null, 'no json');
select throws_ok(
  $$select citeledger.set_context('11111111-1111-4111-8111-111111111111')$$,
  '42501',
  null,
  'set_context is refused under claims that are no JSON'
);

-- What the context is for.
select pg_temp.carry(
  null, null, null, format('{"firm_id":"%s"}', current_setting('test.firm'))
);
select results_eq(
  'select f.id::text from citeledger.firms as f',
  array[current_setting('test.firm')],
  'the claims'' firm is the one that is visible'
);
insert into citeledger.message_citations (message_id, source_text)
values ('00000000-0000-4000-8000-0000000000e1', 'quote');
select is(
  (
    select format('%s, %s', g.firm_id, g.gate_status)
    from jsonb_populate_record(
      null::citeledger.work_product_fiduciary_gate,
      citeledger.finalize_turn('00000000-0000-4000-8000-0000000000e1') -> 'gate'
    ) as g
  ),
  ', flagged',
  'under claims alone a turn is recorded and finalized'
);
insert into citeledger.message_tool_sources (message_id, source_kind, label)
values ('00000000-0000-4000-8000-0000000000e1', 'web', 'Page');
select is(
  array[
    (select count(*)::text from citeledger.citation_ledger_entry),
    citeledger.current_firm_id()::text,
    current_setting('citeledger.firm_id')
  ],
  array['2', current_setting('test.firm'), ''],
  'a late source follows too, and the claims are still the context'
);
select pg_temp.carry(current_setting('test.firm'), null, null, null);
select results_eq(
  'select f.id::text from citeledger.firms as f',
  array[current_setting('test.firm')],
  'the setting''s firm is the one that is visible'
);
select pg_temp.carry('garbage', null, null, null);
select is_empty('select from citeledger.firms', 'under a malformed firm no firm is visible');

select * from finish();

rollback;
