-- Deploy citeledger:gate/lock_turns to pg
-- requires: gate/work_product_fiduciary_gate

begin;

set local role citeledger_owner;

create function citeledger_private.lock_turns(
  p_firm_id uuid,
  p_message_ids uuid[]
)
returns uuid[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  -- NO KEY UPDATE lets foreign keys to the message through: two sessions that both inserted sources
  -- and both finalize would deadlock under FOR UPDATE. In id order, whoever asks.
  perform
  from citeledger.messages as m
  where m.firm_id = p_firm_id and m.id = any(p_message_ids)
  order by m.id
  for no key update;

  -- A new statement, so that it sees what was committed while this one waited for the locks.
  return array(
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
        )
      )
    order by m.id
  );
end
$$;

comment on function citeledger_private.lock_turns(uuid, uuid[]) is
  'Locks the messages FOR NO KEY UPDATE in id order until the transaction ends: the one lock that '
  'every writer of a turn takes before it reads the turn''s state. Returns, in id order, those '
  'whose verdict must follow their sources: the assistant''s messages that are finalized or have a '
  'verdict.';

revoke all on function citeledger_private.lock_turns(uuid, uuid[]) from public;

commit;
