-- Deploy citeledger:graph/document_triggers to pg
-- requires: graph/document_triggers@v0.1.0
-- requires: graph/reconcile_edges

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.documents_arrived()
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
  v_awaited text[];
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
    -- Under the lock, so that what was recorded before is seen, and what comes later will see these
    -- documents. What no list names gives no edge, and what just arrived has no list yet. Counted,
    -- for that is a look-up by index of each, whatever the planner expects; firm and keys through
    -- sub-selects, for what is known of them would else make the plan look worth making anew.
    v_awaited := array(
      select k.doi_key
      from unnest((select v_firm.keys)) as k (doi_key)
      where (
        select count(*)
        from citeledger.document_references as r
        where r.firm_id = (select v_firm.firm_id) and r.doi_key = k.doi_key
      ) > 0
    );
    if cardinality(v_awaited) > 0 then
      perform citeledger_private.reconcile_edges(v_firm.firm_id, '{}', v_awaited);
    end if;
    perform citeledger_private.leave_firm(v_outer);
  end loop;
  return null;
end
$$;

comment on function citeledger_private.documents_arrived() is
  'Trigger function: resolves the references that name the DOIs of inserted documents. Errors: '
  '25000 above read committed.';

revoke all on function citeledger_private.documents_arrived() from public;

commit;
