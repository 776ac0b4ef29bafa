-- Deploy citeledger:ledger/assemble_turn to pg
-- requires: ledger/assemble_rows

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.assemble_turn(
  p_firm_id uuid,
  p_message_id uuid
)
returns integer
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  begin
    return citeledger_private.assemble_set(p_firm_id, array[p_message_id]);
  exception
    -- The fault may lie in single rows: try each.
    when data_exception or integrity_constraint_violation then
      null;
  end;
  delete from citeledger.finalize_failure as f
  where f.firm_id = p_firm_id and f.message_id = p_message_id and f.stage = 'assemble_row';
  return citeledger_private.assemble_rows(p_firm_id, p_message_id);
end
$$;

comment on function citeledger_private.assemble_turn(uuid, uuid) is
  'Assembles one turn, all at once or, where that fails by SQLSTATE class 22 or 23, source by '
  'source; returns how many entries are new. Any other error is raised. The caller holds the lock '
  'of the turn.';

revoke all on function citeledger_private.assemble_turn(uuid, uuid) from public;

commit;
