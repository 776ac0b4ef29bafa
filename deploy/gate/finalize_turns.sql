-- Deploy citeledger:gate/finalize_turns to pg
-- requires: gate/finalize_turns@v0.1.0
-- requires: gate/message_triggers

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.finalize_turns(
  p_message_ids uuid[]
)
returns integer
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_verdicts integer;
begin
  -- The firm through a sub-select: of one that the statistics do not know a row is expected, and
  -- then any index would do.
  perform
  from citeledger.messages as m
  where m.firm_id = (select v_firm_id) and m.id = any(p_message_ids)
  order by m.id
  for no key update;

  -- The trigger of messages leaves this update to us. Others must not have said so for us.
  perform set_config('citeledger.sealing', pg_trigger_depth()::text, true);
  update citeledger.messages as m
  set finalized_at = clock_timestamp()
  where m.firm_id = (select v_firm_id)
    and m.id = any(p_message_ids)
    and m.role = 'assistant'
    and m.finalized_at is null;
  perform set_config('citeledger.sealing', '', true);

  perform citeledger_private.settle(
    v_firm_id,
    array(
      select m.id
      from citeledger.messages as m
      where m.firm_id = (select v_firm_id) and m.id = any(p_message_ids) and m.role = 'assistant'
      order by m.id
    )
  );

  begin
    select count(*)::integer
    into v_verdicts
    from citeledger.work_product_fiduciary_gate as g
    where g.firm_id = (select v_firm_id) and g.message_id = any(p_message_ids);
  exception
    when others then
      v_verdicts := 0;
  end;
  return v_verdicts;
end
$$;

comment on function citeledger.finalize_turns(uuid[]) is
  'finalize_turn for many turns at once, set-based; returns how many of them have a verdict now. '
  'Messages that are unknown or not the assistant''s are passed over, nulls and repeats do no '
  'harm. One turn whose step fails spoils no other: it is logged in finalize_failure and has no '
  'verdict. Locks the messages in id order until the transaction ends. For citeledger_app. Errors '
  'that pass: as for finalize_turn, and 55P03 or 40P01 while it waits for its locks.';

revoke all on function citeledger.finalize_turns(uuid[]) from public;
grant execute on function citeledger.finalize_turns(uuid[]) to citeledger_app;
grant execute on function citeledger.finalize_turns(uuid[]) to citeledger_admin;

commit;
