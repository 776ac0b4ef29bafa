-- verification_tier: the eight statuses that are known, and null for everything else, compared
-- exactly.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(36);

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
select is(
  citeledger.verification_tier(c.status),
  c.tier,
  format('%s is %s', c.status, c.tier)
)
from (
  values
    ('exact_match', 'pass'),
    ('tolerant_match', 'pass'),
    ('paraphrase_judge', 'supported'),
    ('ensemble_strict', 'supported'),
    ('ensemble_majority', 'supported'),
    ('unverified', 'fail'),
    ('failed', 'fail'),
    ('provenance', 'provenance')
) as c (status, tier);
select is(
  citeledger.verification_tier(c.status),
  null,
  format('%s has no tier', quote_nullable(replace(c.status, E'\n', '<line feed>')))
)
from (
  values
    (null), (''), (' '), ('pass'), ('PASS'), ('supported'), ('fail'), ('Exact_match'),
    ('EXACT_MATCH'), (' exact_match'), ('exact_match '), (E'exact_match\n'), ('exact-match'),
    ('exact match'), ('exactmatch'), ('not exact_match'), ('exact_match,failed'),
    ('partially_supported'), ('ensemble'), ('error'), ('null'), ('ｅxact_match'), ('verified')
) as c (status);
select volatility_is(
  'citeledger', 'verification_tier', array['text'], 'immutable',
  'it is immutable: a tier is not a matter of settings'
);
select is(
  (
    select p.prosrc !~* '(current_setting|select)'
    from pg_proc as p
    where p.oid = 'citeledger.verification_tier(text)'::regprocedure
  ),
  true,
  'and it truly is: it reads no setting and no table'
);

select * from finish();

rollback;
