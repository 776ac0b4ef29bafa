-- Deploy citeledger:graph/document_triggers to pg
-- requires: graph/reconcile_edges
-- requires: graph/lock_graph
-- requires: tenancy/acting_firm

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.documents_arrived()
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
    select n.firm_id, array_agg(distinct n.doi_key) as keys
    from new_rows as n
    where n.doi_key is not null
    group by n.firm_id
    order by n.firm_id
  loop
    v_outer := citeledger_private.enter_firm(v_firm.firm_id);
    perform citeledger_private.lock_graph(v_firm.firm_id);
    -- What just arrived has no list yet.
    perform citeledger_private.reconcile_edges(v_firm.firm_id, '{}', v_firm.keys);
    perform citeledger_private.leave_firm(v_outer);
  end loop;
  return null;
end
$$;

create function citeledger_private.documents_changed()
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
      array_agg(distinct n.id) as document_ids,
      array_remove(array_agg(distinct n.doi_key) || array_agg(distinct o.doi_key), null) as keys,
      bool_or(
        n.doi_key is distinct from o.doi_key
        or (n.doi_key is not null and n.deleted_at is null and o.deleted_at is not null)
      ) as doi_arrived
    from new_rows as n
    join old_rows as o on o.firm_id = n.firm_id and o.id = n.id
    where n.doi_key is distinct from o.doi_key
      or (n.deleted_at is null) <> (o.deleted_at is null)
    group by n.firm_id
    order by n.firm_id
  loop
    v_outer := citeledger_private.enter_firm(v_firm.firm_id);
    if v_firm.doi_arrived
      or current_setting('transaction_isolation') in ('read committed', 'read uncommitted')
    then
      perform citeledger_private.lock_graph(v_firm.firm_id);
    end if;
    perform citeledger_private.reconcile_edges(
      v_firm.firm_id, v_firm.document_ids, v_firm.keys
    );
    perform citeledger_private.leave_firm(v_outer);
  end loop;
  return null;
end
$$;

create function citeledger_private.documents_left()
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
    select o.firm_id, array_agg(distinct o.doi_key) as keys
    from old_rows as o
    where o.doi_key is not null
    group by o.firm_id
    order by o.firm_id
  loop
    v_outer := citeledger_private.enter_firm(v_firm.firm_id);
    if current_setting('transaction_isolation') in ('read committed', 'read uncommitted') then
      perform citeledger_private.lock_graph(v_firm.firm_id);
    end if;
    -- Its own edges went with it; a DOI that two documents held may have one holder now.
    perform citeledger_private.reconcile_edges(v_firm.firm_id, '{}', v_firm.keys);
    perform citeledger_private.leave_firm(v_outer);
  end loop;
  return null;
end
$$;

comment on function citeledger_private.documents_arrived() is
  'Trigger function: resolves the references that name the DOIs of inserted documents. Errors: '
  '25000 above read committed.';
comment on function citeledger_private.documents_changed() is
  'Trigger function: resolves again where documents changed their DOI, were withdrawn or restored. '
  'Errors: 25000 above read committed, when a DOI changed or came back.';
comment on function citeledger_private.documents_left() is
  'Trigger function: resolves again the references that name the DOIs of deleted documents.';

revoke all on function citeledger_private.documents_arrived() from public;
revoke all on function citeledger_private.documents_changed() from public;
revoke all on function citeledger_private.documents_left() from public;

create trigger documents_before_insert
  before insert on citeledger.documents
  for each statement
  execute function citeledger_private.before_ingest();
create trigger documents_before_update
  before update on citeledger.documents
  for each statement
  execute function citeledger_private.before_ingest();
create trigger documents_before_delete
  before delete on citeledger.documents
  for each statement
  execute function citeledger_private.before_ingest();
-- A matter that goes takes itself out of its documents, which queue only then.
create trigger projects_before_delete
  before delete on citeledger.projects
  for each statement
  execute function citeledger_private.before_ingest();
create trigger documents_arrived
  after insert on citeledger.documents
  referencing new table as new_rows
  for each statement
  execute function citeledger_private.documents_arrived();
create trigger documents_changed
  after update on citeledger.documents
  referencing old table as old_rows new table as new_rows
  for each statement
  execute function citeledger_private.documents_changed();
create trigger documents_left
  after delete on citeledger.documents
  referencing old table as old_rows
  for each statement
  execute function citeledger_private.documents_left();

comment on trigger documents_before_insert on citeledger.documents is
  'The graph''s lock comes before the locks of rows.';
comment on trigger documents_before_update on citeledger.documents is
  'The graph''s lock comes before the locks of rows.';
comment on trigger documents_before_delete on citeledger.documents is
  'The graph''s lock comes before the locks of rows.';
comment on trigger projects_before_delete on citeledger.projects is
  'The graph''s lock comes before the locks of rows.';
comment on trigger documents_arrived on citeledger.documents is
  'A reference resolves when what it names arrives.';
comment on trigger documents_changed on citeledger.documents is
  'A reference resolves again when what it names changes.';
comment on trigger documents_left on citeledger.documents is
  'A reference is unresolved again when what it named leaves.';

commit;
