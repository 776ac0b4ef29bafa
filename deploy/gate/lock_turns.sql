-- Deploy citeledger:gate/lock_turns to pg
-- requires: gate/lock_turns@v0.1.0

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.lock_turns(
  p_firm_id uuid,
  p_message_ids uuid[]
)
returns uuid[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
-- An array of one looks cheaper than the generic plan's ten, so each call would be planned anew.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_followers uuid[];
begin
  -- NO KEY UPDATE lets foreign keys to the message through: two sessions that both inserted sources
  -- and both finalize would deadlock under FOR UPDATE. In id order, whoever asks.
  perform
  from citeledger.messages as m
  where m.firm_id = p_firm_id and m.id = any(p_message_ids)
  order by m.id
  for no key update;

  begin
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
      perform citeledger_private.expose_hidden_gates(p_firm_id, p_message_ids);
    end if;

    -- A new statement, so that it sees what was committed while this one waited for the locks.
    v_followers := array(
      select m.id
      from citeledger.messages as m
      where m.firm_id = p_firm_id
        and m.id = any(p_message_ids)
        and m.role = 'assistant'
        and (
          m.finalized_at is not null
          or exists (
            select
            from citeledger.work_product_fiduciary_gate as g
            where g.firm_id = p_firm_id and g.message_id = m.id
            -- Or the verdicts of the whole firm might be read once rather than one by its key.
            offset 0
          )
        )
      order by m.id
    );
  exception
    -- A verdict that nobody can read breaks no turn: those that should have one go on to fail in
    -- the guard of their step, where it is logged. One that cannot be read only now would be left
    -- stale: then the statement that changes a source fails.
    when undefined_table or undefined_column then
      v_followers := array(
        select m.id
        from citeledger.messages as m
        where m.firm_id = p_firm_id
          and m.id = any(p_message_ids)
          and m.role = 'assistant'
          and m.finalized_at is not null
        order by m.id
      );
  end;
  return v_followers;
end
$$;

comment on function citeledger_private.lock_turns(uuid, uuid[]) is
  'Locks the messages FOR NO KEY UPDATE in id order until the transaction ends: the one lock that '
  'every writer of a turn takes before it reads the turn''s state. Returns, in id order, those '
  'whose verdict must follow their sources: the assistant''s messages that are finalized or have a '
  'verdict.';

revoke all on function citeledger_private.lock_turns(uuid, uuid[]) from public;

commit;
