-- Verify citeledger:cite/documents on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_relation(
  'citeledger.documents', $facts$
  column created_at timestamp with time zone not null default now()
  column deleted_at timestamp with time zone
  column document_kind text not null default 'record'::text
  column doi text without statistics
  column doi_key text generated citeledger.normalize_doi(doi) without statistics
  column firm_id uuid not null default citeledger.current_firm_id()
  column id uuid not null default gen_random_uuid()
  column is_privileged boolean not null default false
  column license_class text not null default 'unknown'::text without statistics
  column project_id uuid
  column publication_year integer without statistics
  column source text not null default 'local'::text
  column title text not null without statistics
  constraint documents_document_kind_is_known CHECK ((document_kind = ANY (ARRAY['record'::text,
    'work_product'::text, 'authority'::text, 'publication'::text])))
  constraint documents_firm_fkey FOREIGN KEY (firm_id) REFERENCES citeledger.firms(id) ON DELETE
    CASCADE
  constraint documents_pkey PRIMARY KEY (firm_id, id)
  constraint documents_project_fkey FOREIGN KEY (firm_id, project_id) REFERENCES
    citeledger.projects(firm_id, id) ON DELETE SET NULL (project_id)
  constraint documents_source_is_label CHECK ((source ~ '^[a-z][a-z0-9_]{0,31}$'::text))
  grant insert, select to citeledger_app
  grant update (deleted_at, document_kind, doi, is_privileged, license_class, project_id,
    publication_year, source, title) to citeledger_app
  index CREATE INDEX documents_doi_key_idx ON citeledger.documents USING btree (firm_id, doi_key)
    WHERE (doi_key IS NOT NULL)
  index CREATE INDEX documents_project_idx ON citeledger.documents USING btree (firm_id, project_id)
  owner citeledger_owner
  policy documents_of_the_firm permissive for all to public using (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id)) with check (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id))
  row security forced
$facts$);

rollback;
