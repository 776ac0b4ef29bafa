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
  v_ignored boolean;
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
    -- An expression, and every insert of a source is shorter: to perform a function is a query.
    v_ignored := citeledger_private.settle(
      v_firm.firm_id,
      citeledger_private.lock_turns(v_firm.firm_id, v_firm.message_ids),
      v_firm.source_ids
    ) is null;
    perform citeledger_private.leave_firm(v_outer);
  end loop;
  return null;
end
$$;

create or replace function citeledger_private.citation_updated()
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
  v_followers uuid[];
  v_assembled uuid[];
begin
  -- Only where the verification changed: a document that goes sets its citations' reference to
  -- null, and that must not touch a single turn.
  for v_firm in
    select
      n.firm_id,
      array_agg(distinct n.message_id) as message_ids,
      array_agg(n.id) as source_ids
    from new_rows as n
    join old_rows as o on o.firm_id = n.firm_id and o.id = n.id
    where (o.verified, o.verification_method, o.verification_confidence)
      is distinct from
      (n.verified, n.verification_method, n.verification_confidence)
    group by n.firm_id
    order by n.firm_id
  loop
    v_outer := citeledger_private.enter_firm(v_firm.firm_id);
    v_followers := citeledger_private.lock_turns(v_firm.firm_id, v_firm.message_ids);
    -- A turn that was assembled and nothing more has entries too: they follow at once, or the gate
    -- would count what its sources no longer say. The array through a sub-select: its length would
    -- else make the plan look worth making anew.
    v_assembled := array(
      select distinct e.message_id
      from citeledger.citation_ledger_entry as e
      where e.firm_id = (select v_firm.firm_id)
        and e.message_id = any((select v_firm.message_ids)::uuid[])
        and e.message_id <> all(v_followers)
    );
    if cardinality(v_assembled) > 0 then
      perform citeledger_private.assemble_set(v_firm.firm_id, v_assembled, v_firm.source_ids);
    end if;
    perform citeledger_private.settle(v_firm.firm_id, v_followers, v_firm.source_ids);
    perform citeledger_private.leave_firm(v_outer);
  end loop;
  return null;
end
$$;

comment on function citeledger_private.source_inserted() is
  'Trigger function: locks the turns of the inserted sources and lets ledger and verdict follow, '
  'where the turn is finalized or has a verdict; only the new sources are assembled.';
comment on function citeledger_private.citation_updated() is
  'Trigger function: where the verification of a citation changed, locks its turn and lets its '
  'ledger entry follow, and the verdict too if the turn is finalized or has one.';

revoke all on function citeledger_private.source_inserted() from public;
revoke all on function citeledger_private.citation_updated() from public;

commit;
