-- Verify citeledger:tenancy/projects on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_relation(
  'citeledger.projects', $facts$
  column created_at timestamp with time zone not null default now()
  column firm_id uuid not null default citeledger.current_firm_id()
  column id uuid not null default gen_random_uuid()
  column matter_number text not null without statistics
  column name text not null without statistics
  constraint projects_firm_fkey FOREIGN KEY (firm_id) REFERENCES citeledger.firms(id) ON DELETE
    CASCADE
  constraint projects_matter_number_is_short CHECK (((matter_number ~ '[^[:space:]]'::text) AND
    (length(matter_number) <= 200)))
  constraint projects_matter_number_key UNIQUE (firm_id, matter_number)
  constraint projects_pkey PRIMARY KEY (firm_id, id)
  grant delete, insert, select to citeledger_admin
  grant insert, select to citeledger_app
  owner citeledger_owner
  policy projects_of_the_firm permissive for all to public using (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id)) with check (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id))
  row security forced
$facts$);

rollback;
