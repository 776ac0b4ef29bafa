-- Deploy citeledger:graph/lock_graph to pg
-- requires: tenancy/schemas
-- requires: tenancy/current_firm_id

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

create function citeledger_private.queue_ingest(
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
  -- Before any lock of a row, whatever the ingest begins with: one that held rows and then came to
  -- the graph's lock could wait for another that has that lock and wants those rows. Above read
  -- committed the graph cannot be written, so there is nothing to come to later.
  if p_firm_id is not null
    and current_setting('transaction_isolation') in ('read committed', 'read uncommitted')
  then
    perform citeledger_private.lock_graph(p_firm_id);
  end if;
end
$$;

create function citeledger_private.before_ingest()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  -- Which rows it will be is not known yet: the context tells the firm.
  perform citeledger_private.queue_ingest(citeledger.current_firm_id());
  return null;
end
$$;

comment on function citeledger_private.lock_graph(uuid) is
  'Takes the advisory lock of a firm''s citation graph until the transaction ends. Every writer of '
  'edges and lists takes it first. Errors: 25000 above read committed.';
comment on function citeledger_private.queue_ingest(uuid) is
  'Takes the lock of a firm''s graph before an ingest locks its first row, so that of two ingests '
  'of a firm one waits for the other and never both. Does nothing for a null firm, or above read '
  'committed.';
comment on function citeledger_private.before_ingest() is
  'Trigger function: takes the lock of the graph of the context''s firm before the statement locks '
  'a row.';

revoke all on function citeledger_private.lock_graph(uuid) from public;
revoke all on function citeledger_private.queue_ingest(uuid) from public;
revoke all on function citeledger_private.before_ingest() from public;

commit;
