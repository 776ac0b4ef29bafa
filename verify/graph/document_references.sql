-- Verify citeledger:graph/document_references on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_relation(
  'citeledger.document_references', $facts$
  column "position" integer not null
  column cited_doi text not null without statistics
  column created_at timestamp with time zone not null default now()
  column document_id uuid not null
  column doi_key text not null generated citeledger.normalize_doi(cited_doi) without statistics
  column firm_id uuid not null default citeledger.current_firm_id()
  column id uuid not null default gen_random_uuid()
  column source text not null
  constraint document_references_document_fkey FOREIGN KEY (firm_id, document_id) REFERENCES
    citeledger.documents(firm_id, id) ON DELETE CASCADE
  constraint document_references_list_key UNIQUE (firm_id, document_id, source, doi_key)
  constraint document_references_pkey PRIMARY KEY (firm_id, id)
  constraint document_references_position_from_one CHECK (("position" >= 1))
  constraint document_references_source_is_label CHECK ((source ~ '^[a-z][a-z0-9_]{0,31}$'::text))
  grant select to citeledger_app
  index CREATE INDEX document_references_doi_key_idx ON citeledger.document_references USING btree
    (firm_id, doi_key)
  owner citeledger_owner
  policy document_references_of_the_firm permissive for all to public using (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id)) with check (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id))
  row security forced
$facts$);

rollback;
