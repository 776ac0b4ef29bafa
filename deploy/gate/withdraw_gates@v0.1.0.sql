-- Deploy citeledger:gate/withdraw_gates to pg
-- requires: gate/work_product_fiduciary_gate
-- requires: ledger/finalize_failure
-- requires: gate/lock_turns

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.log_failure(
  p_firm_id uuid,
  p_message_ids uuid[],
  p_stage text,
  p_sqlstate text
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  -- A log that cannot be written must not break the turn: the warning still says it.
  begin
    delete from citeledger.finalize_failure as f
    where f.firm_id = p_firm_id and f.message_id = any(p_message_ids) and f.stage = p_stage;
    insert into citeledger.finalize_failure (firm_id, message_id, stage, sqlstate)
    select p_firm_id, m.id, p_stage, p_sqlstate
    from unnest(p_message_ids) as m (id)
    on conflict do nothing;
  exception
    when serialization_failure then
      raise;
    when others then
      raise warning using
        message = 'a failure of finalize could not be logged',
        detail = format('Writing the log failed with SQLSTATE %s.', sqlstate),
        hint = 'See whether citeledger.finalize_failure is whole.';
  end;
  raise warning using
    message = format('a turn could not be finalized: %s failed', p_stage),
    detail = format(
      'Stage %s failed with SQLSTATE %s for %s turn(s).',
      p_stage, p_sqlstate, cardinality(p_message_ids)
    ),
    hint = 'See citeledger.finalize_failure; citeledger.finalize_pending tries again.';
end
$$;

create function citeledger_private.clear_failures(
  p_firm_id uuid,
  p_message_ids uuid[]
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
-- An array of one looks cheaper than the generic plan's ten, so each call would be planned anew.
set plan_cache_mode = force_generic_plan
as $$
begin
  delete from citeledger.finalize_failure as f
  where f.firm_id = p_firm_id and f.message_id = any(p_message_ids);
end
$$;

create function citeledger_private.withdraw_gates(
  p_firm_id uuid,
  p_message_ids uuid[],
  p_stage text,
  p_sqlstate text
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stale boolean := false;
begin
  begin
    if p_stage = 'isolation' then
      perform citeledger_private.expose_hidden_gates(p_firm_id, p_message_ids);
    end if;
    delete from citeledger.work_product_fiduciary_gate as g
    where g.firm_id = p_firm_id and g.message_id = any(p_message_ids);
  exception
    when serialization_failure then
      raise;
    when others then
      perform citeledger_private.log_failure(p_firm_id, p_message_ids, 'withdraw', sqlstate);
      -- No verdict can be read from a broken table. But one that can be read, and is stale, must
      -- not be committed: then the turn fails rather than the promise.
      begin
        v_stale := exists (
          select
          from citeledger.work_product_fiduciary_gate as g
          where g.firm_id = p_firm_id and g.message_id = any(p_message_ids)
        );
      exception
        when others then
          v_stale := false;
      end;
      if v_stale then
        raise;
      end if;
  end;
  perform citeledger_private.log_failure(p_firm_id, p_message_ids, p_stage, p_sqlstate);
end
$$;

comment on function citeledger_private.log_failure(uuid, uuid[], text, text) is
  'Records in finalize_failure that p_stage failed with p_sqlstate for the given turns, in place '
  'of an earlier failure of that stage, and warns. Never raises, except for 40001.';
comment on function citeledger_private.clear_failures(uuid, uuid[]) is
  'Forgets the logged failures of the given turns.';
comment on function citeledger_private.withdraw_gates(uuid, uuid[], text, text) is
  'Removes the verdicts of turns whose stage p_stage failed with p_sqlstate, logs and warns: no '
  'ledger means no verdict, never an old one. Raises only when an old verdict can be read but not '
  'removed.';

revoke all on function citeledger_private.log_failure(uuid, uuid[], text, text) from public;
revoke all on function citeledger_private.clear_failures(uuid, uuid[]) from public;
revoke all on function citeledger_private.withdraw_gates(uuid, uuid[], text, text) from public;

commit;
