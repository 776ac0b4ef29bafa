-- Revert citeledger:graph/edge_doi_valid from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- Nothing forgets that a constraint was found to hold but dropping it. The DOIs stay as they are:
-- the lists have them as printed, and the next resolve_references gives them back to the edges.
alter table citeledger.document_citations drop constraint document_citations_cited_doi_is_short;

alter table citeledger.document_citations
  add constraint document_citations_cited_doi_is_short check (
    coalesce(
      octet_length(cited_doi) <= octet_length(citeledger.normalize_doi(cited_doi)) + 64, false
    )
  ) not valid;

comment on constraint document_citations_cited_doi_is_short on citeledger.document_citations is
  'At most 64 bytes longer than the key of the DOI: what surrounds a DOI is no content.';

commit;
