-- Deploy citeledger:tenancy/firms to pg
-- requires: tenancy/current_firm_id

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.firms (
  id uuid not null default gen_random_uuid(),
  name text not null,
  created_at timestamptz not null default now(),
  constraint firms_pkey primary key (id),
  constraint firms_name_is_not_blank check (name ~ '[^[:space:]]' and length(name) <= 200)
);

-- Enabled, not forced: the owner's functions sweep firm by firm, everybody else sees the own firm.
alter table citeledger.firms enable row level security;

create policy firms_are_their_own on citeledger.firms
  using (id = (select citeledger.current_firm_id()))
  with check (id = (select citeledger.current_firm_id()));

-- No statistics of content: an estimate would tell one firm about the texts of another.
alter table citeledger.firms alter column name set statistics 0;

comment on table citeledger.firms is
  'The tenants, one row each. Made by create_firm, erased with all that is theirs by delete_firm.';
comment on column citeledger.firms.id is 'The firm: the firm_id of every row of every other table.';
comment on column citeledger.firms.name is 'Display name: 1 to 200 characters, not blank.';
comment on column citeledger.firms.created_at is 'When the firm was onboarded.';
comment on constraint firms_pkey on citeledger.firms is 'One row for each tenant.';
comment on constraint firms_name_is_not_blank on citeledger.firms is
  'A name has a visible character and at most 200 characters.';
comment on policy firms_are_their_own on citeledger.firms is
  'A role sees the firm of its context and no other; without a context none.';

revoke all on table citeledger.firms from public;
grant select on table citeledger.firms to citeledger_app;

commit;
