-- Revert citeledger:graph/document_triggers from pg

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

comment on function citeledger_private.documents_arrived() is
  'Trigger function: resolves the references that name the DOIs of inserted documents. Errors: '
  '25000 above read committed.';

revoke all on function citeledger_private.documents_arrived() from public;

commit;
