-- Verify citeledger:graph/reconcile_edges on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger_private.judged_references(uuid, uuid[], text[])', $facts$
  arguments p_firm_id uuid, p_document_ids uuid[], p_keys text[]
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns TABLE(citing_document_id uuid, cited_document_id uuid, cited_doi text, source text,
    list_position integer, fate citeledger_private.reference_fate)
  security invoker
  set search_path=pg_catalog, pg_temp; plan_cache_mode=force_generic_plan
  stable
$facts$);

select citeledger_private.verify_function(
  'citeledger_private.edges_in_question(uuid, uuid[], uuid[])', $facts$
  arguments p_firm_id uuid, p_document_ids uuid[], p_holder_ids uuid[]
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns TABLE(citing_document_id uuid, cited_document_id uuid, cited_doi text, source text)
  security invoker
  set search_path=pg_catalog, pg_temp
  stable
$facts$);

select citeledger_private.verify_function(
  'citeledger_private.reconcile_edges(uuid, uuid[], text[], text, boolean)', $facts$
  arguments p_firm_id uuid, p_document_ids uuid[], p_keys text[], p_source text DEFAULT NULL::text,
    p_dry_run boolean DEFAULT false
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns jsonb
  security invoker
  set search_path=pg_catalog, pg_temp
  volatile
$facts$);

-- What came with this version of it.
do $$
begin
  if strpos(
    pg_get_functiondef(
      'citeledger_private.reconcile_edges(uuid, uuid[], text[], text, boolean)'::regprocedure
    ),
    'citeledger_private.edge_doi'
  ) = 0 then
    raise exception using
      errcode = '55000',
      message = 'citeledger_private.reconcile_edges is not as it was deployed',
      detail = 'It does not keep the DOI of an edge short, as from 0.2.0 on it does.',
      hint = 'Somebody changed it by hand: put it back, or revert and deploy the change.';
  end if;
end
$$;

rollback;
