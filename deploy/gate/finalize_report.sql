-- Deploy citeledger:gate/finalize_report to pg
-- requires: gate/work_product_fiduciary_gate
-- requires: ledger/citation_ledger_entry
-- requires: ledger/finalize_failure

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.count_entries(
  p_firm_id uuid,
  p_message_id uuid
)
returns bigint
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
    select count(*)
    from citeledger.citation_ledger_entry as e
    where e.firm_id = p_firm_id and e.message_id = p_message_id
  );
end
$$;

create function citeledger_private.finalize_report(
  p_firm_id uuid,
  p_message_id uuid
)
returns table (
  entries bigint,
  gate jsonb,
  failures jsonb
)
language plpgsql
stable
parallel safe
security invoker
rows 1
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  select
    citeledger_private.count_entries(p_firm_id, p_message_id),
    (
      select to_jsonb(g) - 'firm_id'
      from citeledger.work_product_fiduciary_gate as g
      where g.firm_id = p_firm_id and g.message_id = p_message_id
    ),
    (
      select
        coalesce(
          jsonb_agg(
            jsonb_build_object('stage', f.stage, 'sqlstate', f.sqlstate)
            order by f.failed_at, f.id
          ),
          '[]'
        )
      from citeledger.finalize_failure as f
      where f.firm_id = p_firm_id and f.message_id = p_message_id
    );
end
$$;

comment on function citeledger_private.count_entries(uuid, uuid) is
  'How many entries the turn has.';
comment on function citeledger_private.finalize_report(uuid, uuid) is
  'What finalize_turn reports of a turn: how many entries it has, its verdict''s row less firm_id '
  'or null, and its logged failures as a list of {"stage", "sqlstate"}.';

revoke all on function citeledger_private.count_entries(uuid, uuid) from public;
revoke all on function citeledger_private.finalize_report(uuid, uuid) from public;

commit;
