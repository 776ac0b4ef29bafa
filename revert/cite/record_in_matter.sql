-- Revert citeledger:cite/record_in_matter from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.visible_matter_number(
  p_firm_id uuid,
  p_matter_id uuid
)
returns text
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
begin
  return (
    -- Row security decides, and the wall is asked for by name besides: inside the cascade of a
    -- foreign key, which anybody may set up on a temporary table, the owner passes row security.
    select p.matter_number
    from citeledger.projects as p
    where p.firm_id = p_firm_id
      and p.id = p_matter_id
      and not citeledger_private.is_behind_wall(p_firm_id, p_matter_id)
  );
end
$$;

create or replace function citeledger_private.holds_record(
  p_firm_id uuid,
  p_matter_id uuid,
  p_document_id uuid
)
returns boolean
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
begin
  return exists (
    select
    from citeledger.documents as d
    where d.firm_id = p_firm_id
      and d.id = p_document_id
      and d.project_id = p_matter_id
      and d.document_kind = 'record'
      and not d.is_privileged
      and d.deleted_at is null
  );
end
$$;

comment on function citeledger_private.visible_matter_number(uuid, uuid) is
  'The number of a matter that is visible in the context, else null.';
comment on function citeledger_private.holds_record(uuid, uuid, uuid) is
  'Whether the document is a live, non-privileged record of the matter: what may be cited.';

revoke all on function citeledger_private.visible_matter_number(uuid, uuid) from public;
revoke all on function citeledger_private.holds_record(uuid, uuid, uuid) from public;

commit;
