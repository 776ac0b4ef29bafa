-- Deploy citeledger:tenancy/project_members to pg
-- requires: tenancy/projects

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.project_members (
  firm_id uuid not null default citeledger.current_firm_id(),
  project_id uuid not null,
  user_id uuid not null,
  created_at timestamptz not null default now(),
  constraint project_members_pkey primary key (firm_id, project_id, user_id),
  constraint project_members_project_fkey foreign key (firm_id, project_id)
    references citeledger.projects (firm_id, id) on delete cascade
);

alter table citeledger.project_members enable row level security;
alter table citeledger.project_members force row level security;

create policy project_members_of_the_firm on citeledger.project_members
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

comment on table citeledger.project_members is
  'Ethical walls: a matter with rows here is visible to those people only, one without to the '
  'whole firm. Kept by citeledger_admin; unreadable to the application, which would learn of '
  'matters that its user may not know of.';
comment on column citeledger.project_members.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.project_members.project_id is 'The walled matter.';
comment on column citeledger.project_members.user_id is
  'Who may see it: compared with current_user_id().';
comment on column citeledger.project_members.created_at is 'When the person was admitted.';
comment on constraint project_members_pkey on citeledger.project_members is
  'A person is a member of a matter once.';
comment on constraint project_members_project_fkey on citeledger.project_members is
  'A wall goes with its matter, and never stands around another firm''s.';
comment on policy project_members_of_the_firm on citeledger.project_members is
  'Only rows of the firm of the context, to read and to write.';

revoke all on table citeledger.project_members from public;
grant select, insert, update, delete on table citeledger.project_members to citeledger_admin;

commit;
