-- Revert citeledger:gate/compute_and_record_gate from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.compute_and_record_gate(
  p_message_id uuid
)
returns citeledger.work_product_fiduciary_gate
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_gate citeledger.work_product_fiduciary_gate;
begin
  perform citeledger_private.lock_turns(v_firm_id, array[p_message_id]);

  if not exists (
    select
    from citeledger.messages as m
    where m.firm_id = v_firm_id and m.id = p_message_id and m.role = 'assistant'
  ) then
    return null;
  end if;

  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    perform citeledger_private.withdraw_gates(v_firm_id, array[p_message_id], 'isolation', '25000');
    return null;
  end if;

  -- Where an earlier attempt failed, the ledger may be behind its sources: it is caught up first.
  if exists (
    select
    from citeledger.finalize_failure as f
    where f.firm_id = v_firm_id and f.message_id = p_message_id
  ) then
    perform citeledger_private.assemble_turn(v_firm_id, p_message_id);
  end if;

  perform citeledger_private.record_gates(v_firm_id, array[p_message_id]);

  select g.*
  into v_gate
  from citeledger.work_product_fiduciary_gate as g
  where g.firm_id = v_firm_id and g.message_id = p_message_id;
  return v_gate;
end
$$;

comment on function citeledger.compute_and_record_gate(uuid) is
  'Computes the verdict of the turn p_message_id from its ledger entries, stores it, and returns '
  'the row; an unchanged verdict is not written again. A citation that has no entry counts as '
  'failed. A turn with logged failures is assembled first. An unrecognised status counts in no '
  'tier, flags the turn, and is named in one warning. Null, and no row, for an unknown message and '
  'for one that is not the assistant''s. Above read committed no verdict is recorded: null, logged '
  'in finalize_failure (stage isolation). What it cannot see is a citation that the application '
  'never recorded: record failed ones too, as verified = false, also for caselaw. Locks the '
  'message until the transaction ends. For citeledger_app.';

revoke all on function citeledger.compute_and_record_gate(uuid) from public;
grant execute on function citeledger.compute_and_record_gate(uuid) to citeledger_app;
grant execute on function citeledger.compute_and_record_gate(uuid) to citeledger_admin;

commit;
