-- Deploy citeledger:ledger/assemble_set to pg
-- requires: ledger/assemble_set@v0.1.0
-- requires: ledger/entry_id
-- requires: ledger/entry_values

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.assemble_set(
  p_firm_id uuid,
  p_message_ids uuid[],
  p_source_ids uuid[] default null
)
returns integer
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_due integer;
  v_written integer;
  v_stale_ids uuid[];
  v_kinds text[];
  v_statuses text[];
  v_confidences double precision[];
  v_providers text[];
  v_retrieved timestamptz[];
begin
  with due as materialized (
    select * from citeledger_private.entry_values(p_firm_id, p_message_ids, p_source_ids)
  ),
  written as (
    insert into citeledger.citation_ledger_entry (
      firm_id, id, project_id, chat_id, message_id,
      source_kind, message_citation_id, message_caselaw_citation_id, message_tool_source_id,
      verification_status, confidence, provider, retrieved_at
    )
    select
      p_firm_id, citeledger_private.entry_id(d.message_id, gen_random_uuid()),
      d.project_id, d.chat_id, d.message_id,
      d.source_kind, d.message_citation_id, d.message_caselaw_citation_id, d.message_tool_source_id,
      d.verification_status, d.confidence, d.provider, d.retrieved_at
    from due as d
    on conflict do nothing
    returning id
  )
  select (select count(*) from due)::integer, (select count(*) from written)::integer
  into v_due, v_written;

  -- All of them are new: nothing can be out of date.
  if v_written = v_due then
    return v_written;
  end if;

  -- What no longer mirrors its source. One indexed equality for each source, whatever the planner
  -- believes of tables without statistics: "offset 0" keeps it from turning this around. The firm
  -- through a sub-select: of one that the statistics do not know a row is expected, and then any
  -- index would do. The replaced values are kept by the ledger's own trigger.
  select
    array_agg(e.id),
    array_agg(d.source_kind),
    array_agg(d.verification_status),
    array_agg(d.confidence),
    array_agg(d.provider),
    array_agg(d.retrieved_at)
  into v_stale_ids, v_kinds, v_statuses, v_confidences, v_providers, v_retrieved
  from citeledger_private.entry_values(p_firm_id, p_message_ids, p_source_ids) as d
  cross join lateral (
    select e.*
    from citeledger.citation_ledger_entry as e
    where e.firm_id = (select p_firm_id) and e.message_citation_id = d.message_citation_id
    union all
    select e.*
    from citeledger.citation_ledger_entry as e
    where e.firm_id = (select p_firm_id)
      and e.message_caselaw_citation_id = d.message_caselaw_citation_id
    union all
    select e.*
    from citeledger.citation_ledger_entry as e
    where e.firm_id = (select p_firm_id) and e.message_tool_source_id = d.message_tool_source_id
    offset 0
  ) as e
  where (e.source_kind, e.verification_status, e.confidence, e.provider, e.retrieved_at)
    is distinct from
    (d.source_kind, d.verification_status, d.confidence, d.provider, d.retrieved_at);

  if v_stale_ids is not null then
    update citeledger.citation_ledger_entry as e
    set
      source_kind = d.source_kind,
      verification_status = d.verification_status,
      confidence = d.confidence,
      provider = d.provider,
      retrieved_at = d.retrieved_at
    -- Through sub-selects: the length of an array would else make the plan look worth making anew.
    from unnest(
      (select v_stale_ids),
      (select v_kinds),
      (select v_statuses),
      (select v_confidences),
      (select v_providers),
      (select v_retrieved)
    ) as d (id, source_kind, verification_status, confidence, provider, retrieved_at)
    where e.firm_id = (select p_firm_id) and e.id = d.id;
  end if;

  return v_written;
end
$$;

comment on function citeledger_private.assemble_set(uuid, uuid[], uuid[]) is
  'Writes the missing ledger entries of the given turns and refreshes those that no longer mirror '
  'their source, all at once; returns how many are new. p_source_ids limits it to those sources; '
  'null means all of them. The caller holds the lock of every turn.';

revoke all on function citeledger_private.assemble_set(uuid, uuid[], uuid[]) from public;

commit;
