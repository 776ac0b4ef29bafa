-- Verify citeledger:graph/edge_doi_check on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- Whether it is valid too is the next change's.
do $$
begin
  if not exists (
    select
    from citeledger_private.describe_relation('citeledger.document_citations') as d (line)
    where d.line ~ '^constraint document_citations_cited_doi_is_short CHECK '
  ) then
    raise exception using
      errcode = '55000',
      message = 'citeledger.document_citations is not as it was deployed',
      detail = 'It has no check document_citations_cited_doi_is_short.',
      hint = 'Somebody changed it by hand: put it back, or revert and deploy the change.';
  end if;
end
$$;

rollback;
