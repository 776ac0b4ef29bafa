-- Deploy citeledger:ledger/assemble_ledger_entries to pg
-- requires: ledger/assemble_turn
-- requires: gate/record_gates
-- requires: gate/lock_turns
-- requires: gate/withdraw_gates

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.assemble_ledger_entries(
  p_message_id uuid
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
  v_followers uuid[];
  v_written integer;
begin
  v_followers := citeledger_private.lock_turns(v_firm_id, array[p_message_id]);
  v_written := citeledger_private.assemble_turn(v_firm_id, p_message_id);

  -- A verdict that is there already must agree with the ledger as it is now.
  if cardinality(v_followers) > 0 then
    if current_setting('transaction_isolation') in ('read committed', 'read uncommitted') then
      perform citeledger_private.record_gates(v_firm_id, v_followers);
    else
      perform citeledger_private.withdraw_gates(v_firm_id, v_followers, 'isolation', '25000');
    end if;
  end if;

  return v_written;
end
$$;

comment on function citeledger.assemble_ledger_entries(uuid) is
  'Writes one ledger entry for each source of the turn p_message_id that has none, and refreshes '
  'the entries that no longer mirror their source; the replaced values go to '
  'citation_ledger_entry_revision. Returns how many entries are new: 0 for an unknown message and '
  'for one that is not the assistant''s. A source whose entry cannot be written is skipped, logged '
  'in finalize_failure (stage assemble_row) and warned about. A verdict that the turn already has '
  'is computed again. Locks the message until the transaction ends. For citeledger_app. Errors: '
  'any but SQLSTATE class 22 and 23 fails the assembly; finalize_turn catches them.';

revoke all on function citeledger.assemble_ledger_entries(uuid) from public;
grant execute on function citeledger.assemble_ledger_entries(uuid) to citeledger_app;
grant execute on function citeledger.assemble_ledger_entries(uuid) to citeledger_admin;

commit;
