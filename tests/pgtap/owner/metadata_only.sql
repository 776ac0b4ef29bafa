-- metadata_only_violations finds a column that could hold content. The owner plants some; all is
-- undone. It changes tables for the moment and so locks them until it is rolled back: run it
-- alone, on a quiet database.
--
-- Needs a login that may SET ROLE to citeledger_owner (the deployer), no superuser and not exempt
-- from row security. Row security is forced, so the owner too sees the firm of its context alone.
-- All is rolled back.

begin;

select plan(10);

-- A superuser or a role exempt from row security would pass tests that guard nothing.
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
  pg_has_role(session_user, 'citeledger_owner', 'member'),
  'the login may become citeledger_owner'
);

set local role citeledger_owner;

select is(
  (
    select array[r.rolsuper, r.rolbypassrls]
    from pg_roles as r
    where r.rolname = current_user
  ),
  array[false, false],
  'citeledger_owner is no superuser and not exempt from row security'
);

select is_empty(
  'select from citeledger.metadata_only_violations()',
  'there is none to begin with'
);

alter table citeledger.citation_ledger_entry add column extra text;
alter table citeledger.citation_ledger_entry add column extra_name varchar(20);
alter table citeledger.citation_ledger_entry add column details jsonb;
alter table citeledger.citation_ledger_entry_revision add column raw bytea;
alter table citeledger.work_product_fiduciary_gate add column reasoning uuid;
alter table citeledger.work_product_fiduciary_gate add column tags text[];
alter table citeledger.finalize_failure add column error_message text
  constraint planted_1 check (error_message ~ '^[0-9A-Z]{5}$');
-- A check that is none: too wide, of two columns, or not validated.
alter table citeledger.finalize_failure add column wide text
  constraint planted_2 check (wide ~ '^.*$');
alter table citeledger.finalize_failure add column either text;
alter table citeledger.finalize_failure
  add constraint planted_3 check (either ~ '^[0-9A-Z]{5}$' or stage = 'gate');
alter table citeledger.finalize_failure add column unchecked text;
alter table citeledger.finalize_failure
  add constraint planted_4 check (unchecked ~ '^[0-9A-Z]{5}$') not valid;
select set_eq(
  $$select format('%s.%s', v.table_name, v.column_name)
    from citeledger.metadata_only_violations() as v$$,
  array[
    'citation_ledger_entry.extra',
    'citation_ledger_entry.extra_name',
    'citation_ledger_entry.details',
    'citation_ledger_entry_revision.raw',
    'work_product_fiduciary_gate.reasoning',
    'work_product_fiduciary_gate.tags',
    'finalize_failure.error_message',
    'finalize_failure.wide',
    'finalize_failure.either',
    'finalize_failure.unchecked'
  ],
  'every planted column is found'
);
select is_empty(
  $$select v.column_name
    from citeledger.metadata_only_violations() as v
    where v.reason !~ '[^[:space:]]' or v.reason is null$$,
  'each with a reason'
);

-- What is no content is not found.
alter table citeledger.citation_ledger_entry drop column extra;
alter table citeledger.citation_ledger_entry drop column extra_name;
alter table citeledger.citation_ledger_entry drop column details;
alter table citeledger.citation_ledger_entry_revision drop column raw;
alter table citeledger.work_product_fiduciary_gate drop column reasoning;
alter table citeledger.work_product_fiduciary_gate drop column tags;
alter table citeledger.finalize_failure drop column error_message;
alter table citeledger.finalize_failure drop column wide;
alter table citeledger.finalize_failure drop column either;
alter table citeledger.finalize_failure drop column unchecked;
alter table citeledger.finalize_failure add column step text
  constraint planted_5 check (step ~ '^[a-z][a-z0-9_]{0,31}$');
alter table citeledger.finalize_failure add column attempt bigint;
select is_empty(
  'select from citeledger.metadata_only_violations()',
  'a label and a number are none'
);

-- A check that somebody takes away is missed at once.
alter table citeledger.citation_ledger_entry
  drop constraint citation_ledger_entry_provider_is_name;
select results_eq(
  'select v.table_name, v.column_name from citeledger.metadata_only_violations() as v',
  $$values ('citation_ledger_entry', 'provider')$$,
  'a column that lost its check is found'
);
-- That a text is a DOI says nothing of what surrounds it.
alter table citeledger.document_citations
  drop constraint document_citations_cited_doi_is_short;
select set_eq(
  'select v.table_name, v.column_name from citeledger.metadata_only_violations() as v',
  $$values ('citation_ledger_entry', 'provider'), ('document_citations', 'cited_doi')$$,
  'a DOI of any length is found'
);

select * from finish();

rollback;
