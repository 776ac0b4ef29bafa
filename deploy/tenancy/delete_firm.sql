-- Deploy citeledger:tenancy/delete_firm to pg
-- requires: tenancy/firms
-- requires: tenancy/acting_firm
-- requires: ledger/chats
-- requires: cite/documents
-- requires: graph/lock_graph

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.delete_firm(
  p_firm_id uuid
)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_outer text;
begin
  -- The graph's lock before the firm's: an ingest takes them in this order.
  if current_setting('transaction_isolation') in ('read committed', 'read uncommitted') then
    perform citeledger_private.lock_graph(p_firm_id);
  end if;
  -- Locked first: no session can add a row to the firm while it goes.
  perform from citeledger.firms as f where f.id = p_firm_id for update;
  if not found then
    raise exception using
      errcode = 'P0002',
      message = 'firm not found',
      detail = 'No firm has the id p_firm_id.',
      hint = 'List the firms with citeledger.firm_ids.';
  end if;

  -- Everything of a tenant hangs on its firm by cascading foreign keys. Chats and documents go
  -- first: a cascade from the top would check what hangs deep below against what is gone already.
  v_outer := citeledger_private.enter_firm(p_firm_id);
  delete from citeledger.chats as c where c.firm_id = p_firm_id;
  delete from citeledger.documents as d where d.firm_id = p_firm_id;
  perform citeledger_private.leave_firm(v_outer);
  delete from citeledger.firms as f where f.id = p_firm_id;
end
$$;

comment on function citeledger.delete_firm(uuid) is
  'Erases a firm and every row of it in every table, sealed turns included. It cannot be undone. '
  'Locks every row of the firm until the transaction ends. For citeledger_admin. Errors: P0002 '
  'when there is no such firm.';

revoke all on function citeledger.delete_firm(uuid) from public;
grant execute on function citeledger.delete_firm(uuid) to citeledger_admin;

commit;
