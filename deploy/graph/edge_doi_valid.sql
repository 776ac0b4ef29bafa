-- Deploy citeledger:graph/edge_doi_valid to pg
-- requires: graph/edge_doi_check
-- requires: graph/lock_graph
-- requires: tenancy/acting_firm
-- requires: tenancy/firm_ids

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- Firm by firm, for row security holds for the owner too. A firm's ingests wait while its edges are
-- mended; nothing else does.
do $$
declare
  v_firm_id uuid;
  v_outer text;
begin
  for v_firm_id in select f.id from citeledger.firm_ids() as f (id) order by f.id loop
    v_outer := citeledger_private.enter_firm(v_firm_id);
    perform citeledger_private.lock_graph(v_firm_id);
    update citeledger.document_citations as e
    set cited_doi = citeledger_private.edge_doi(e.cited_doi)
    where e.firm_id = v_firm_id
      and octet_length(e.cited_doi) > 64
      and e.cited_doi <> citeledger_private.edge_doi(e.cited_doi);
    perform citeledger_private.leave_firm(v_outer);
  end loop;
end
$$;

alter table citeledger.document_citations
  validate constraint document_citations_cited_doi_is_short;

commit;
