-- Deploy citeledger:graph/lock_graph to pg
-- requires: tenancy/schemas

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.lock_graph(
  p_firm_id uuid
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  -- Above read committed a list would be resolved against the documents of an old snapshot.
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    raise exception using
      errcode = '25000',
      message = 'the citation graph is written under read committed only',
      detail = format('The transaction is %s.', current_setting('transaction_isolation')),
      hint = 'Start the transaction with isolation level read committed.';
  end if;
  -- One lock for the graph of a firm: of two ingests at once the second resolves what the first
  -- committed, and as there is but one lock they cannot wait for each other.
  perform pg_advisory_xact_lock(hashtextextended('citeledger graph ' || p_firm_id, 0));
end
$$;

comment on function citeledger_private.lock_graph(uuid) is
  'Takes the advisory lock of a firm''s citation graph until the transaction ends. Every writer of '
  'edges and lists takes it first. Errors: 25000 above read committed.';

revoke all on function citeledger_private.lock_graph(uuid) from public;

commit;
