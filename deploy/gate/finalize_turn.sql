-- Deploy citeledger:gate/finalize_turn to pg
-- requires: gate/finalize_turn@v0.1.0
-- requires: gate/message_triggers
-- requires: gate/settle_turn

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.finalize_turn(
  p_message_id uuid
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
  v_role text;
  v_finalized_at timestamptz;
  v_sealed boolean := false;
  v_ignored boolean;
  v_lock_error text;
  v_entries_before bigint;
  v_entries_written bigint;
  v_gate jsonb;
  v_failures jsonb := '[]'::jsonb;
begin
  -- The table first, where waiting has an end: a guard that takes no row lock costs no multixact.
  if current_setting('lock_timeout') <> '0' then
    begin
      lock table citeledger.messages in row exclusive mode;
    exception
      when lock_not_available or deadlock_detected then
        v_lock_error := sqlstate;
    end;
  end if;

  if v_lock_error is null then
    -- The trigger of messages leaves this update to us. Others must not have said so for us. It is
    -- said in an expression: to perform a function is a query of its own.
    v_ignored := set_config('citeledger.sealing', pg_trigger_depth()::text, true) is null;
    -- Nearly always the message is free and open. Waiting for it in a guard would cost every turn a
    -- multixact: a lock of a subtransaction, then an update of its parent.
    update citeledger.messages as m
    set finalized_at = clock_timestamp()
    where m.firm_id = v_firm_id
      and m.id = (
        select l.id
        from citeledger.messages as l
        where l.firm_id = v_firm_id
          and l.id = p_message_id
          and l.role = 'assistant'
          and l.finalized_at is null
        for no key update skip locked
      )
    returning m.role into v_role;
    v_sealed := found;

    if not v_sealed then
      begin
        select m.role, m.finalized_at
        into v_role, v_finalized_at
        from citeledger.messages as m
        where m.firm_id = v_firm_id and m.id = p_message_id
        for no key update;
      exception
        when lock_not_available or deadlock_detected then
          v_lock_error := sqlstate;
      end;
      if v_role = 'assistant' and v_finalized_at is null then
        update citeledger.messages as m
        set finalized_at = clock_timestamp()
        where m.firm_id = v_firm_id and m.id = p_message_id;
        v_sealed := true;
      end if;
    end if;
    v_ignored := set_config('citeledger.sealing', '', true) is null;
  end if;

  if v_lock_error is not null then
    perform citeledger_private.log_failure(v_firm_id, array[p_message_id], 'lock', v_lock_error);
    v_failures := jsonb_build_array(
      jsonb_build_object('stage', 'lock', 'sqlstate', v_lock_error)
    );
  end if;
  -- A message that is busy, not there, or not the assistant's.
  if v_role is distinct from 'assistant' then
    return jsonb_build_object(
      'message_id', p_message_id,
      'finalized', false,
      'entries_written', 0,
      'gate', null,
      'failures', v_failures
    );
  end if;

  -- A turn that is new reports what it wrote: nothing is read again. Above read committed there is
  -- no verdict, which settle says; and it finds out what went wrong here.
  if v_sealed
    and current_setting('transaction_isolation') in ('read committed', 'read uncommitted')
  then
    begin
      select t.entries, t.gate
      into v_entries_written, v_gate
      from citeledger_private.settle_turn(v_firm_id, p_message_id) as t;
    exception
      when serialization_failure then
        raise;
      when others or assert_failure then
        null;
    end;
  end if;

  if v_gate is null then
    -- What is only read for the report has guards too: a broken table must not break the turn.
    -- Entries that were new beside a verdict that was not are written already.
    begin
      v_entries_before := citeledger_private.count_entries(v_firm_id, p_message_id)
        - coalesce(v_entries_written, 0);
    exception
      when others then
        v_entries_before := 0;
    end;

    perform citeledger_private.settle(v_firm_id, array[p_message_id]);

    begin
      select r.entries - v_entries_before, r.gate, r.failures
      into v_entries_written, v_gate, v_failures
      from citeledger_private.finalize_report(v_firm_id, p_message_id) as r;
    exception
      when others then
        v_failures := jsonb_build_array(
          jsonb_build_object('stage', 'report', 'sqlstate', sqlstate)
        );
    end;
  end if;

  return jsonb_build_object(
    'message_id', p_message_id,
    'finalized', true,
    'entries_written', coalesce(v_entries_written, 0),
    'gate', v_gate,
    'failures', v_failures
  );
end
$$;

comment on function citeledger.finalize_turn(uuid) is
  'Finalizes the turn p_message_id: sets finalized_at if it is null, assembles its ledger, records '
  'its verdict. Called again, it assembles and counts again. Returns {"message_id", "finalized", '
  '"entries_written", "gate", "failures"}: finalized is false for a message that is unknown, not '
  'the assistant''s, or busy; gate is the verdict''s row less firm_id, or null; failures lists '
  '{"stage", "sqlstate"}. It never raises because a step failed: the failure is logged in '
  'finalize_failure and warned about, an old verdict is withdrawn, and finalize_pending tries '
  'again. Under repeatable read or serializable no verdict is recorded (stage isolation). Locks '
  'the message until the transaction ends. For citeledger_app. Errors that pass: 57014 (cancel, '
  'timeouts), 40001 (run the transaction again), 55P03 while DDL holds messages itself, and what a '
  'deferred constraint raises at commit. Call it in a savepoint, or in a transaction of its own, '
  'where the turn must survive those.';

revoke all on function citeledger.finalize_turn(uuid) from public;
grant execute on function citeledger.finalize_turn(uuid) to citeledger_app;
grant execute on function citeledger.finalize_turn(uuid) to citeledger_admin;

commit;
