-- Revert citeledger:graph/edge_doi_check from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

alter table citeledger.document_citations drop constraint document_citations_cited_doi_is_short;

commit;
