-- Revert citeledger:gate/record_gates from pg

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
  with counted as materialized (
    select * from citeledger_private.recount(p_firm_id, p_message_ids)
  ),
  recorded as (
    insert into citeledger.work_product_fiduciary_gate as g (
      firm_id, message_id, chat_id, project_id,
      gate_status,
      pass_count, supported_count, fail_count, total_assertions, unrecognized_count,
      confidence, computed_at
    )
    select
      p_firm_id, c.message_id, c.chat_id, c.project_id,
      case
        when c.fail_count > 0 or c.unrecognized_count > 0 then 'flagged'
        when c.supported_count > 0 then 'supported_only'
        else 'fiduciary_grade'
      end,
      c.pass_count, c.supported_count, c.fail_count,
      c.pass_count + c.supported_count + c.fail_count,
      c.unrecognized_count,
      c.confidence, clock_timestamp()
    from counted as c
    on conflict (firm_id, message_id) do update
    set
      project_id = excluded.project_id,
      gate_status = excluded.gate_status,
      pass_count = excluded.pass_count,
      supported_count = excluded.supported_count,
      fail_count = excluded.fail_count,
      total_assertions = excluded.total_assertions,
      unrecognized_count = excluded.unrecognized_count,
      confidence = excluded.confidence,
      computed_at = excluded.computed_at
    where (
        g.project_id, g.gate_status, g.pass_count, g.supported_count, g.fail_count,
        g.total_assertions, g.unrecognized_count, g.confidence
      ) is distinct from (
        excluded.project_id, excluded.gate_status, excluded.pass_count, excluded.supported_count,
        excluded.fail_count, excluded.total_assertions, excluded.unrecognized_count,
        excluded.confidence
      )
    returning g.message_id
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
