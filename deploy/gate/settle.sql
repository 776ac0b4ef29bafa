-- Deploy citeledger:gate/settle to pg
-- requires: gate/settle@v0.1.0
-- requires: gate/record_gates
-- requires: gate/settle_turn
-- requires: gate/settle_new
-- requires: gate/withdraw_gates

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.all_were_settled(
  p_firm_id uuid,
  p_message_ids uuid[]
)
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
-- An array of one looks cheaper than the generic plan's ten, so each call would be planned anew.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_settled bigint;
begin
  with cleared as (
    delete from citeledger.finalize_failure as f
    where f.firm_id = p_firm_id and f.message_id = any(p_message_ids)
    returning f.message_id
  )
  select count(*)
  into v_settled
  from citeledger.work_product_fiduciary_gate as g
  where g.firm_id = p_firm_id
    and g.message_id = any(p_message_ids)
    and not exists (select from cleared as c where c.message_id = g.message_id);
  return v_settled = cardinality(p_message_ids);
end
$$;

create or replace function citeledger_private.settle(
  p_firm_id uuid,
  p_message_ids uuid[],
  p_source_ids uuid[] default null
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_message_ids uuid[] := p_message_ids;
  v_settled uuid[];
  v_source_ids uuid[] := p_source_ids;
  v_ignored boolean;
  v_stage text := 'assemble';
  v_sqlstate text;
  v_message_id uuid;
begin
  if cardinality(p_message_ids) = 0 then
    return;
  end if;

  -- Above read committed a statement does not see what others committed while the lock was awaited,
  -- so a verdict could be stale: none is recorded, and finalize_pending does it later.
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    -- What the session itself changed it sees: those entries must not say what is past.
    if cardinality(v_source_ids) > 0 then
      begin
        perform citeledger_private.assemble_set(p_firm_id, p_message_ids, v_source_ids);
      exception
        when serialization_failure then
          raise;
        when others or assert_failure then
          perform citeledger_private.log_failure(p_firm_id, p_message_ids, 'assemble', sqlstate);
      end;
    end if;
    perform citeledger_private.withdraw_gates(p_firm_id, p_message_ids, 'isolation', '25000');
    return;
  end if;

  -- Nearly always a turn is new and all is well: one statement. Whatever goes wrong with it, the
  -- steps below find out which of them it is.
  if v_source_ids is null then
    begin
      if cardinality(v_message_ids) = 1 then
        select case when t.gate is not null then v_message_ids end
        into v_settled
        from citeledger_private.settle_turn(p_firm_id, v_message_ids[1]) as t;
      else
        v_settled := citeledger_private.settle_new(p_firm_id, v_message_ids);
      end if;
    exception
      when serialization_failure then
        raise;
      when others or assert_failure then
        null;
    end;
    if cardinality(v_settled) = cardinality(v_message_ids) then
      return;
    end if;
    if cardinality(v_settled) > 0 then
      v_message_ids := array(
        select t.id from unnest(v_message_ids) as t (id)
        except
        select t.id from unnest(v_settled) as t (id)
      );
    end if;
  end if;

  -- Each step has a guard of its own. 40001 passes: only the caller can run its transaction again.
  -- A query cancel or a timeout (57014) is not caught by "others"; nor would a failed assertion be.
  -- The steps are expressions: to perform a function is a query of its own.
  begin
    -- Where an earlier attempt failed, more than the changed sources may be missing.
    -- Nested, so that a whole turn is assembled even where the gate's table is broken.
    if v_source_ids is null then
      perform citeledger_private.clear_failures(p_firm_id, v_message_ids);
    else
      if not citeledger_private.all_were_settled(p_firm_id, v_message_ids) then
        v_source_ids := null;
      end if;
    end if;
    v_ignored :=
      citeledger_private.assemble_set(p_firm_id, v_message_ids, v_source_ids) is null;
  exception
    when serialization_failure then
      raise;
    when others or assert_failure then
      v_sqlstate := sqlstate;
  end;

  -- The fault may lie in single rows of the one turn: try each.
  if left(v_sqlstate, 2) in ('22', '23') and cardinality(v_message_ids) = 1 then
    v_sqlstate := null;
    begin
      perform citeledger_private.clear_failures(p_firm_id, v_message_ids);
      perform citeledger_private.assemble_rows(p_firm_id, v_message_ids[1], v_source_ids);
    exception
      when serialization_failure then
        raise;
      when others or assert_failure then
        v_sqlstate := sqlstate;
    end;
  end if;

  if v_sqlstate is null then
    v_stage := 'gate';
    begin
      v_ignored := citeledger_private.record_gates(p_firm_id, v_message_ids) is null;
    exception
      when serialization_failure then
        raise;
      when others or assert_failure then
        v_sqlstate := sqlstate;
    end;
  end if;

  if v_sqlstate is null then
    return;
  end if;

  if cardinality(v_message_ids) = 1 then
    perform citeledger_private.withdraw_gates(p_firm_id, v_message_ids, v_stage, v_sqlstate);
  else
    -- One bad turn spoils no other.
    foreach v_message_id in array v_message_ids loop
      perform citeledger_private.settle(p_firm_id, array[v_message_id], p_source_ids);
    end loop;
  end if;
end
$$;

comment on function citeledger_private.all_were_settled(uuid, uuid[]) is
  'Removes what was logged of earlier attempts at the given turns; true where each of them has a '
  'verdict and none had failed. The caller holds the lock of every turn.';
comment on function citeledger_private.settle(uuid, uuid[], uuid[]) is
  'Assembles the ledger of the given turns of the assistant, then records their verdicts, each '
  'step in its own guard; p_source_ids limits the assembly to those sources, null means all of '
  'them. When a step fails, the turn has no verdict, the failure is logged and warned about, and '
  'nothing is raised. The caller holds the lock of every turn and acts for p_firm_id. Errors that '
  'pass: 40001, 57014.';

revoke all on function citeledger_private.all_were_settled(uuid, uuid[]) from public;
revoke all on function citeledger_private.settle(uuid, uuid[], uuid[]) from public;

commit;
