-- Verify citeledger:graph/document_citations on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_relation(
  'citeledger.document_citations', $facts$
  column cited_document_id uuid not null
  column cited_doi text not null without statistics
  column citing_document_id uuid not null
  column created_at timestamp with time zone not null default now()
  column firm_id uuid not null default citeledger.current_firm_id()
  column source text not null
  constraint document_citations_cited_doi_is_doi CHECK ((citeledger.normalize_doi(cited_doi) IS NOT
    NULL))
  constraint document_citations_cited_fkey FOREIGN KEY (firm_id, cited_document_id) REFERENCES
    citeledger.documents(firm_id, id) ON DELETE CASCADE
  constraint document_citations_citing_fkey FOREIGN KEY (firm_id, citing_document_id) REFERENCES
    citeledger.documents(firm_id, id) ON DELETE CASCADE
  constraint document_citations_no_self_citation CHECK ((citing_document_id <> cited_document_id))
  constraint document_citations_pkey PRIMARY KEY (firm_id, citing_document_id, cited_document_id)
  constraint document_citations_source_is_label CHECK ((source ~ '^[a-z][a-z0-9_]{0,31}$'::text))
  grant select to citeledger_app
  index CREATE INDEX document_citations_cited_idx ON citeledger.document_citations USING btree
    (firm_id, cited_document_id, citing_document_id)
  owner citeledger_owner
  policy document_citations_of_the_firm permissive for all to public using (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id)) with check (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id))
  row security forced
$facts$);

rollback;
