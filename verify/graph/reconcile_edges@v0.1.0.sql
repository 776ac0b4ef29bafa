-- Verify citeledger:graph/reconcile_edges on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

do $$
begin
  if not exists (
    select
    from pg_catalog.pg_type as t
    where t.oid = 'citeledger_private.reference_fate'::pg_catalog.regtype
      and pg_catalog.pg_get_userbyid(t.typowner) = 'citeledger_owner'
      and pg_catalog.obj_description(t.oid, 'pg_type') is not null
      and array['matched', 'unmatched', 'ambiguous', 'self_citation'] = array(
        select l.enumlabel::text
        from pg_catalog.pg_enum as l
        where l.enumtypid = t.oid
        order by l.enumsortorder
      )
      and not exists (
        select
        from pg_catalog.aclexplode(coalesce(t.typacl, pg_catalog.acldefault('T', t.typowner))) as g
        where g.grantee <> t.typowner
      )
  ) then
    raise exception using
      errcode = '55000',
      message = 'citeledger_private.reference_fate is not as it was deployed',
      detail = 'Its owner, labels, comment or privileges differ.',
      hint = 'Somebody changed it by hand: put it back, or revert and deploy the change.';
  end if;
end
$$;

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

rollback;
