-- Deploy citeledger:gate/record_gates to pg
-- requires: gate/record_gates@v0.1.0
-- requires: gate/gate_status
-- requires: gate/recount

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.record_gates(
  p_firm_id uuid,
  p_message_ids uuid[]
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_unrecognized text;
begin
  -- A verdict that is there is updated, not upserted: the lock that an upsert takes in one guard
  -- would be carried from version to version by the next, each time in a new multixact. Found by
  -- its key and not by the place it was seen at: a matter that is deleted meanwhile moves it, and
  -- an update that waited for that must fail or be made, but not pass it by. Nobody else adds one
  -- to a turn that the caller holds; should a hidden one be there, the key raises, and the turn has
  -- none. The firm through a sub-select: of one that the statistics do not know a row is expected,
  -- and then any index would do.
  with counted as materialized (
    select
      c.*,
      citeledger_private.gate_status(
        c.supported_count, c.fail_count, c.unrecognized_count
      ) as gate_status,
      c.pass_count + c.supported_count + c.fail_count as total_assertions
    from citeledger_private.recount(p_firm_id, p_message_ids) as c
  ),
  changed as (
    update citeledger.work_product_fiduciary_gate as g
    set
      project_id = c.project_id,
      gate_status = c.gate_status,
      pass_count = c.pass_count,
      supported_count = c.supported_count,
      fail_count = c.fail_count,
      total_assertions = c.total_assertions,
      unrecognized_count = c.unrecognized_count,
      confidence = c.confidence,
      computed_at = clock_timestamp()
    from counted as c
    where g.firm_id = (select p_firm_id)
      and g.message_id = c.message_id
      and (
        g.project_id, g.gate_status, g.pass_count, g.supported_count, g.fail_count,
        g.total_assertions, g.unrecognized_count, g.confidence
      ) is distinct from (
        c.project_id, c.gate_status, c.pass_count, c.supported_count, c.fail_count,
        c.total_assertions, c.unrecognized_count, c.confidence
      )
    returning g.message_id
  ),
  recorded as (
    insert into citeledger.work_product_fiduciary_gate (
      firm_id, message_id, chat_id, project_id,
      gate_status,
      pass_count, supported_count, fail_count, total_assertions, unrecognized_count,
      confidence
    )
    select
      p_firm_id, c.message_id, c.chat_id, c.project_id,
      c.gate_status,
      c.pass_count, c.supported_count, c.fail_count, c.total_assertions, c.unrecognized_count,
      c.confidence
    from counted as c
    -- What was just updated is not looked up again: in a transaction that brings a turn many late
    -- sources each look-up walks past as many versions.
    where case
      when c.message_id in (select u.message_id from changed as u) then false
      else not exists (
        select
        from citeledger.work_product_fiduciary_gate as g
        where g.firm_id = (select p_firm_id) and g.message_id = c.message_id
        -- Or the verdicts of the whole firm might be read once rather than one by its key.
        offset 0
      )
    end
  )
  select string_agg(distinct s.status, ', ')
  into v_unrecognized
  from counted as c
  cross join unnest(c.unrecognized_statuses) as s (status);

  if v_unrecognized is not null then
    perform citeledger_private.warn_of_unrecognized(v_unrecognized);
  end if;
end
$$;

comment on function citeledger_private.record_gates(uuid, uuid[]) is
  'Computes and stores the verdict of each of the given turns, in one statement; an unchanged '
  'verdict is not written. Warns once, naming the distinct unrecognised statuses. The caller holds '
  'the lock of every turn.';

revoke all on function citeledger_private.record_gates(uuid, uuid[]) from public;

commit;
