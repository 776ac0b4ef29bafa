-- Deploy citeledger:graph/edge_doi_check to pg
-- requires: graph/reconcile_edges
-- requires: graph/document_citations

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- A no-op but where an upgrade was interrupted and is run again; then it needs no notice.
set local client_min_messages = warning;
alter table citeledger.document_citations
  drop constraint if exists document_citations_cited_doi_is_short;

-- Not yet valid for the edges that are there, so that the table is locked for a moment only.
alter table citeledger.document_citations
  add constraint document_citations_cited_doi_is_short check (
    coalesce(
      octet_length(cited_doi) <= octet_length(citeledger.normalize_doi(cited_doi)) + 64, false
    )
  ) not valid;

comment on constraint document_citations_cited_doi_is_short on citeledger.document_citations is
  'At most 64 bytes longer than the key of the DOI: what surrounds a DOI is no content.';

commit;
