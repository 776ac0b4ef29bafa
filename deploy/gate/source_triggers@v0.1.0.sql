-- Deploy citeledger:gate/source_triggers to pg
-- requires: gate/settle
-- requires: gate/lock_turns
-- requires: tenancy/acting_firm

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.source_inserted()
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
    perform citeledger_private.leave_firm(v_outer);
  end loop;
  return null;
end
$$;

create function citeledger_private.citation_updated()
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
    -- would count what its sources no longer say.
    v_assembled := array(
      select distinct e.message_id
      from citeledger.citation_ledger_entry as e
      where e.firm_id = v_firm.firm_id
        and e.message_id = any(v_firm.message_ids)
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

create function citeledger_private.source_deleted()
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
begin
  for v_firm in
    select o.firm_id, array_agg(distinct o.message_id) as message_ids
    from old_rows as o
    group by o.firm_id
    order by o.firm_id
  loop
    v_outer := citeledger_private.enter_firm(v_firm.firm_id);
    -- When the turn itself goes, its message is gone already: nothing to lock, nothing to seal.
    v_followers := citeledger_private.lock_turns(v_firm.firm_id, v_firm.message_ids);

    if exists (
        select
        from citeledger.messages as m
        where m.firm_id = v_firm.firm_id
          and m.id = any(v_firm.message_ids)
          and m.finalized_at is not null
      )
      -- This function runs as the owner; the setting role still tells who deletes.
      and not pg_has_role(
        coalesce(nullif(current_setting('role'), 'none'), session_user)::name,
        'citeledger_owner',
        'member'
      )
    then
      raise exception using
        errcode = '55000',
        message = 'the turn is finalized and its sources are sealed',
        detail = format('The source is a row of %s.', tg_table_name),
        hint = 'Set verified = false on it, or delete the whole message as citeledger_admin.';
    end if;

    -- Its entries went with the sources; what is left is to count again.
    perform citeledger_private.settle(v_firm.firm_id, v_followers, '{}');
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
comment on function citeledger_private.source_deleted() is
  'Trigger function: locks the turns of the deleted sources, refuses when one of them is finalized '
  'and whoever deletes is no member of citeledger_owner, and lets the verdicts follow. Errors: '
  '55000.';

revoke all on function citeledger_private.source_inserted() from public;
revoke all on function citeledger_private.citation_updated() from public;
revoke all on function citeledger_private.source_deleted() from public;

create trigger message_citations_inserted
  after insert on citeledger.message_citations
  referencing new table as new_rows
  for each statement
  execute function citeledger_private.source_inserted();
create trigger message_citations_updated
  after update on citeledger.message_citations
  referencing old table as old_rows new table as new_rows
  for each statement
  execute function citeledger_private.citation_updated();
create trigger message_citations_deleted
  after delete on citeledger.message_citations
  referencing old table as old_rows
  for each statement
  execute function citeledger_private.source_deleted();

create trigger message_caselaw_citations_inserted
  after insert on citeledger.message_caselaw_citations
  referencing new table as new_rows
  for each statement
  execute function citeledger_private.source_inserted();
create trigger message_caselaw_citations_updated
  after update on citeledger.message_caselaw_citations
  referencing old table as old_rows new table as new_rows
  for each statement
  execute function citeledger_private.citation_updated();
create trigger message_caselaw_citations_deleted
  after delete on citeledger.message_caselaw_citations
  referencing old table as old_rows
  for each statement
  execute function citeledger_private.source_deleted();

create trigger message_tool_sources_inserted
  after insert on citeledger.message_tool_sources
  referencing new table as new_rows
  for each statement
  execute function citeledger_private.source_inserted();
create trigger message_tool_sources_deleted
  after delete on citeledger.message_tool_sources
  referencing old table as old_rows
  for each statement
  execute function citeledger_private.source_deleted();

comment on trigger message_citations_inserted on citeledger.message_citations is
  'A late source gets its entry, and the verdict follows.';
comment on trigger message_citations_updated on citeledger.message_citations is
  'A late verification reaches the entry, and the verdict follows.';
comment on trigger message_citations_deleted on citeledger.message_citations is
  'A finalized turn keeps its sources; elsewhere the verdict follows.';
comment on trigger message_caselaw_citations_inserted on citeledger.message_caselaw_citations is
  'A late source gets its entry, and the verdict follows.';
comment on trigger message_caselaw_citations_updated on citeledger.message_caselaw_citations is
  'A late verification reaches the entry, and the verdict follows.';
comment on trigger message_caselaw_citations_deleted on citeledger.message_caselaw_citations is
  'A finalized turn keeps its sources; elsewhere the verdict follows.';
comment on trigger message_tool_sources_inserted on citeledger.message_tool_sources is
  'A late source gets its entry, and the verdict follows.';
comment on trigger message_tool_sources_deleted on citeledger.message_tool_sources is
  'A finalized turn keeps its sources; elsewhere the verdict follows.';

commit;
