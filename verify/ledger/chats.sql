-- Verify citeledger:ledger/chats on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_relation(
  'citeledger.chats', $facts$
  column created_at timestamp with time zone not null default now()
  column firm_id uuid not null default citeledger.current_firm_id()
  column id uuid not null default gen_random_uuid()
  column project_id uuid
  column title text without statistics
  constraint chats_firm_fkey FOREIGN KEY (firm_id) REFERENCES citeledger.firms(id) ON DELETE CASCADE
  constraint chats_pkey PRIMARY KEY (firm_id, id)
  constraint chats_project_fkey FOREIGN KEY (firm_id, project_id) REFERENCES
    citeledger.projects(firm_id, id) ON DELETE SET NULL (project_id)
  grant delete, insert, select to citeledger_admin
  grant insert, select to citeledger_app
  index CREATE INDEX chats_project_idx ON citeledger.chats USING btree (firm_id, project_id)
  owner citeledger_owner
  policy chats_of_the_firm permissive for all to public using (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id)) with check (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id))
  row security forced
$facts$);

rollback;
