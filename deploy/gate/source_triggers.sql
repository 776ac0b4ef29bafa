-- Deploy citeledger:gate/source_triggers to pg
-- requires: gate/source_triggers@v0.1.0
-- requires: gate/settle
-- requires: gate/lock_turns

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.source_inserted()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm record;
  v_outer text;
begin
  for v_firm in
    select
      n.firm_id,
      array_agg(distinct n.message_id) as message_ids,
      array_agg(n.id) as source_ids
    from new_rows as n
    group by n.firm_id
    order by n.firm_id
  loop
    v_outer := citeledger_private.enter_firm(v_firm.firm_id);
    perform citeledger_private.settle(
      v_firm.firm_id,
      citeledger_private.lock_turns(v_firm.firm_id, v_firm.message_ids),
      v_firm.source_ids
    );
    -- Mostly it is the caller's own firm: then nothing was changed, and nothing is called.
    if v_outer is not null then
      perform citeledger_private.leave_firm(v_outer);
    end if;
  end loop;
  return null;
end
$$;

comment on function citeledger_private.source_inserted() is
  'Trigger function: locks the turns of the inserted sources and lets ledger and verdict follow, '
  'where the turn is finalized or has a verdict; only the new sources are assembled.';

revoke all on function citeledger_private.source_inserted() from public;

commit;
