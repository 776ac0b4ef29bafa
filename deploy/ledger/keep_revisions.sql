-- Deploy citeledger:ledger/keep_revisions to pg
-- requires: ledger/citation_ledger_entry_revision

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.keep_replaced_values()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid;
  v_outer text;
begin
  for v_firm_id in
    select distinct o.firm_id from old_rows as o order by o.firm_id
  loop
    v_outer := citeledger_private.enter_firm(v_firm_id);
    insert into citeledger.citation_ledger_entry_revision (
      firm_id, message_id, entry_id,
      source_kind, verification_status, confidence, provider, retrieved_at
    )
    select
      o.firm_id, o.message_id, o.id,
      o.source_kind, o.verification_status, o.confidence, o.provider, o.retrieved_at
    from old_rows as o
    join new_rows as n on n.firm_id = o.firm_id and n.id = o.id
    where o.firm_id = v_firm_id
      and (o.source_kind, o.verification_status, o.confidence, o.provider, o.retrieved_at)
        is distinct from
        (n.source_kind, n.verification_status, n.confidence, n.provider, n.retrieved_at)
    on conflict do nothing;
    perform citeledger_private.leave_firm(v_outer);
  end loop;
  return null;
end
$$;

create function citeledger_private.keep_deleted_values()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid;
  v_outer text;
begin
  for v_firm_id in
    select distinct o.firm_id from old_rows as o order by o.firm_id
  loop
    v_outer := citeledger_private.enter_firm(v_firm_id);
    -- When the turn itself goes, its message is gone already and so is the history.
    insert into citeledger.citation_ledger_entry_revision (
      firm_id, message_id, entry_id,
      source_kind, verification_status, confidence, provider, retrieved_at
    )
    select
      o.firm_id, o.message_id, o.id,
      o.source_kind, o.verification_status, o.confidence, o.provider, o.retrieved_at
    from old_rows as o
    join citeledger.messages as m on m.firm_id = v_firm_id and m.id = o.message_id
    where o.firm_id = v_firm_id
    on conflict do nothing;
    perform citeledger_private.leave_firm(v_outer);
  end loop;
  return null;
end
$$;

comment on function citeledger_private.keep_replaced_values() is
  'Trigger function: records what updated ledger entries said before, for those whose mirrored '
  'values changed.';
comment on function citeledger_private.keep_deleted_values() is
  'Trigger function: records what deleted ledger entries said, for those whose turn stays.';

revoke all on function citeledger_private.keep_replaced_values() from public;
revoke all on function citeledger_private.keep_deleted_values() from public;

create trigger citation_ledger_entry_keep_replaced
  after update on citeledger.citation_ledger_entry
  referencing old table as old_rows new table as new_rows
  for each statement
  execute function citeledger_private.keep_replaced_values();

create trigger citation_ledger_entry_keep_deleted
  after delete on citeledger.citation_ledger_entry
  referencing old table as old_rows
  for each statement
  execute function citeledger_private.keep_deleted_values();

comment on trigger citation_ledger_entry_keep_replaced on citeledger.citation_ledger_entry is
  'Every change of an entry leaves a revision.';
comment on trigger citation_ledger_entry_keep_deleted on citeledger.citation_ledger_entry is
  'An entry that goes while its turn stays leaves a revision.';

commit;
