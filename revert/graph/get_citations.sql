-- Revert citeledger:graph/get_citations from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.visible_documents(
  p_firm_id uuid,
  p_document_ids uuid[]
)
returns setof uuid
language plpgsql
stable
parallel safe
security invoker
rows 10
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  select d.id
  from citeledger.documents as d
  where d.firm_id = p_firm_id
    and d.id = any(p_document_ids)
    and d.deleted_at is null
    and (
      d.project_id is null
      or exists (
        select
        -- The wall by name besides: a foreign key's cascade passes row security.
        from citeledger.projects as p
        where p.firm_id = p_firm_id
          and p.id = d.project_id
          and not citeledger_private.is_behind_wall(p_firm_id, p.id)
      )
    );
end
$$;

comment on function citeledger_private.visible_documents(uuid, uuid[]) is
  'Those of the documents that are live and in no matter that is hidden from the caller.';

revoke all on function citeledger_private.visible_documents(uuid, uuid[]) from public;

commit;
