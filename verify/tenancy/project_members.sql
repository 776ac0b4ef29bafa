-- Verify citeledger:tenancy/project_members on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_relation(
  'citeledger.project_members', $facts$
  column created_at timestamp with time zone not null default now()
  column firm_id uuid not null default citeledger.current_firm_id()
  column project_id uuid not null
  column user_id uuid not null
  constraint project_members_pkey PRIMARY KEY (firm_id, project_id, user_id)
  constraint project_members_project_fkey FOREIGN KEY (firm_id, project_id) REFERENCES
    citeledger.projects(firm_id, id) ON DELETE CASCADE
  grant delete, insert, select, update to citeledger_admin
  owner citeledger_owner
  policy project_members_of_the_firm permissive for all to public using (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id)) with check (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id))
  row security forced
$facts$);

rollback;
