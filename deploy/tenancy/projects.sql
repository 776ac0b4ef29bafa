-- Deploy citeledger:tenancy/projects to pg
-- requires: tenancy/firms

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.projects (
  firm_id uuid not null default citeledger.current_firm_id(),
  id uuid not null default gen_random_uuid(),
  matter_number text not null,
  name text not null,
  created_at timestamptz not null default now(),
  constraint projects_pkey primary key (firm_id, id),
  constraint projects_matter_number_key unique (firm_id, matter_number),
  constraint projects_firm_fkey foreign key (firm_id)
    references citeledger.firms (id) on delete cascade,
  constraint projects_matter_number_is_short check (
    matter_number ~ '[^[:space:]]' and length(matter_number) <= 200
  )
);

alter table citeledger.projects enable row level security;
alter table citeledger.projects force row level security;

create policy projects_of_the_firm on citeledger.projects
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

-- No statistics of content: an estimate would tell one firm about the texts of another.
alter table citeledger.projects alter column matter_number set statistics 0;
alter table citeledger.projects alter column name set statistics 0;

comment on table citeledger.projects is
  'Legal matters, each of one firm. A matter with members (project_members) is walled.';
comment on column citeledger.projects.firm_id is 'The tenant; default the firm of the context.';
comment on column citeledger.projects.id is 'The matter.';
comment on column citeledger.projects.matter_number is
  'The firm''s own number of the matter, unique in the firm: 1 to 200 characters, not blank.';
comment on column citeledger.projects.name is 'Display name of the matter.';
comment on column citeledger.projects.created_at is 'When the row was recorded.';
comment on constraint projects_pkey on citeledger.projects is 'A matter is known within its firm.';
comment on constraint projects_matter_number_key on citeledger.projects is
  'A firm uses a matter number once.';
comment on constraint projects_firm_fkey on citeledger.projects is
  'A matter goes with its firm.';
comment on constraint projects_matter_number_is_short on citeledger.projects is
  'A matter number has a visible character and at most 200 characters.';
comment on policy projects_of_the_firm on citeledger.projects is
  'Only rows of the firm of the context, to read and to write.';

revoke all on table citeledger.projects from public;
grant select, insert on table citeledger.projects to citeledger_app;
grant select, insert, delete on table citeledger.projects to citeledger_admin;

commit;
