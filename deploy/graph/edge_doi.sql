-- Deploy citeledger:graph/edge_doi to pg
-- requires: graph/normalize_doi

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.edge_doi(
  p_cited_doi text
)
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_key text := citeledger.normalize_doi(p_cited_doi);
begin
  -- 64 bytes are room for a resolver's address and what a sentence leaves behind. What is longer
  -- carries something that is no part of the DOI, such as the query of an address.
  if octet_length(p_cited_doi) <= octet_length(v_key) + 64 then
    return p_cited_doi;
  end if;
  return v_key;
end
$$;

comment on function citeledger_private.edge_doi(text) is
  'What an edge keeps of a DOI: the DOI as printed, or its key where what was printed is more than '
  '64 bytes longer than that. Null where there is no DOI.';

revoke all on function citeledger_private.edge_doi(text) from public;

commit;
