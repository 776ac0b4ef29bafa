-- Deploy citeledger:graph/record_references to pg
-- requires: graph/reconcile_edges
-- requires: graph/lock_graph

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.record_references(
  p_document_id uuid,
  p_dois text[],
  p_source text default 'crossref'
)
returns jsonb
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_usable bigint;
begin
  if p_dois is null then
    raise exception using
      errcode = '22023',
      message = 'p_dois is not a list of DOIs',
      detail = 'p_dois is null.',
      hint = 'Pass an empty list to say that the document cites nothing.';
  end if;
  if p_source is null or p_source collate "C" !~ '^[a-z][a-z0-9_]{0,31}$' then
    raise exception using
      errcode = '22023',
      message = 'p_source is not a label',
      detail = 'A label is a lower-case letter, then at most 31 lower-case letters, digits or _.',
      hint = 'Pass for example crossref.';
  end if;

  perform citeledger_private.lock_graph(v_firm_id);
  perform
  from citeledger.documents as d
  where d.firm_id = v_firm_id and d.id = p_document_id
  for key share;
  if not found then
    raise exception using
      errcode = 'P0002',
      message = 'document not found',
      detail = 'No document of this id is in the firm of the context.',
      hint = 'Check the id and the firm of the context.';
  end if;

  delete from citeledger.document_references as r
  where r.firm_id = v_firm_id and r.document_id = p_document_id and r.source = p_source;

  with printed as materialized (
    select n.doi, n.position, citeledger.normalize_doi(n.doi) as doi_key
    from unnest(p_dois) with ordinality as n (doi, position)
  ),
  written as (
    insert into citeledger.document_references (
      firm_id, document_id, position, cited_doi, source
    )
    select distinct on (p.doi_key) v_firm_id, p_document_id, p.position, p.doi, p_source
    from printed as p
    where p.doi_key is not null
    order by p.doi_key, p.position
    on conflict do nothing
    returning id
  )
  select count(p.doi_key) into v_usable from printed as p;

  return citeledger_private.reconcile_edges(
      v_firm_id, array[p_document_id], '{}', p_source => p_source
    )
    || jsonb_build_object('unusable', cardinality(p_dois) - v_usable);
end
$$;

comment on function citeledger.record_references(uuid, text[], text) is
  'Replaces the reference list of the document p_document_id for the source p_source, and resolves '
  'it. p_dois: the DOIs as printed, in their order; repeats of one DOI are one reference, at its '
  'first place. Strings without a DOI and nulls are counted as unusable and not stored. Returns '
  'the keys of resolve_references, for this list, and "unusable". Locks the firm''s graph until '
  'the transaction ends. For citeledger_app. Errors: 22023 for a null list or a source that is no '
  'label; P0002 when the document is not in the firm; 25000 above read committed.';

revoke all on function citeledger.record_references(uuid, text[], text) from public;
grant execute on function citeledger.record_references(uuid, text[], text) to citeledger_app;
grant execute on function citeledger.record_references(uuid, text[], text) to citeledger_admin;

commit;
