-- Verify citeledger:graph/edge_doi_valid on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_parts(
  'citeledger.document_citations', $facts$
  constraint document_citations_cited_doi_is_short CHECK (COALESCE((octet_length(cited_doi) <=
    (octet_length(citeledger.normalize_doi(cited_doi)) + 64)), false))
$facts$);

rollback;
