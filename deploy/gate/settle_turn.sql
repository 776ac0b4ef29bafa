-- Deploy citeledger:gate/settle_turn to pg
-- requires: gate/gate_status
-- requires: gate/record_gates
-- requires: ledger/entry_id
-- requires: ledger/entry_values

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.settle_turn(
  p_firm_id uuid,
  p_message_id uuid
)
returns table (
  entries bigint,
  gate jsonb
)
language plpgsql
volatile
parallel unsafe
security invoker
rows 1
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_unrecognized integer;
begin
  -- The caller holds the message, so nobody else writes what was not there: no conflict to look for
  -- in every unique key. What is counted is what was written, so nothing is read again; and where
  -- every source has just got its entry, no citation is without one.
  with turn as materialized (
    select m.chat_id, c.project_id
    from citeledger.messages as m
    cross join lateral (
      select c.project_id
      from citeledger.chats as c
      where c.firm_id = p_firm_id and c.id = m.chat_id
      offset 0
    ) as c
    where m.firm_id = p_firm_id
      and m.id = p_message_id
      and m.role = 'assistant'
      and not exists (
        select
        from citeledger.citation_ledger_entry as e
        where e.firm_id = p_firm_id and e.message_id = p_message_id
      )
      and not exists (
        select
        from citeledger.finalize_failure as f
        where f.firm_id = p_firm_id and f.message_id = p_message_id
      )
  ),
  -- What entry_values says, word for word: called, it would cost a fifth of all this.
  due as materialized (
    select
      'kb_document' as source_kind,
      s.id as message_citation_id,
      null::uuid as message_caselaw_citation_id,
      null::uuid as message_tool_source_id,
      case when s.verified then s.verification_method else 'unverified' end
        as verification_status,
      case when s.verified then s.verification_confidence::double precision end as confidence,
      null::text as provider,
      null::timestamptz as retrieved_at
    from citeledger.message_citations as s
    where s.firm_id = p_firm_id and s.message_id = p_message_id
    union all
    select
      'caselaw', null, s.id, null,
      case when s.verified then s.verification_method else 'unverified' end,
      case when s.verified then s.verification_confidence end,
      'courtlistener',
      s.created_at
    from citeledger.message_caselaw_citations as s
    where s.firm_id = p_firm_id and s.message_id = p_message_id
    union all
    select s.source_kind, null, null, s.id, 'provenance', null, s.provider, s.created_at
    from citeledger.message_tool_sources as s
    where s.firm_id = p_firm_id and s.message_id = p_message_id
  ),
  written as (
    insert into citeledger.citation_ledger_entry (
      firm_id, id, project_id, chat_id, message_id,
      source_kind, message_citation_id, message_caselaw_citation_id, message_tool_source_id,
      verification_status, confidence, provider, retrieved_at
    )
    select
      p_firm_id, citeledger_private.entry_id(p_message_id, gen_random_uuid()),
      t.project_id, t.chat_id, p_message_id,
      d.source_kind, d.message_citation_id, d.message_caselaw_citation_id, d.message_tool_source_id,
      d.verification_status, d.confidence, d.provider, d.retrieved_at
    from turn as t
    cross join due as d
    returning verification_status, confidence
  ),
  counted as (
    select
      count(*) as entries,
      count(*) filter (where w.tier = 'pass')::integer as pass_count,
      count(*) filter (where w.tier = 'supported')::integer as supported_count,
      count(*) filter (where w.tier = 'fail')::integer as fail_count,
      count(*) filter (where w.tier is null)::integer as unrecognized_count,
      -- As numeric: a mean over double precision depends on the order of the rows.
      avg(w.confidence::numeric) filter (where w.tier in ('pass', 'supported', 'fail'))
        ::double precision as confidence
    from (
      select citeledger.verification_tier(w.verification_status) as tier, w.confidence
      from written as w
      offset 0
    ) as w
  ),
  recorded as (
    insert into citeledger.work_product_fiduciary_gate as g (
      firm_id, message_id, chat_id, project_id,
      gate_status,
      pass_count, supported_count, fail_count, total_assertions, unrecognized_count,
      confidence
    )
    select
      p_firm_id, p_message_id, t.chat_id, t.project_id,
      citeledger_private.gate_status(c.supported_count, c.fail_count, c.unrecognized_count),
      c.pass_count, c.supported_count, c.fail_count,
      c.pass_count + c.supported_count + c.fail_count,
      c.unrecognized_count,
      c.confidence
    -- A turn without sources has a verdict too. One whose entries were kept back, as a trigger of
    -- the installation may, has none here: others count what is missing.
    from turn as t
    join counted as c on c.entries = (select count(*) from due)
    -- A verdict that was there is for others to count again.
    on conflict (firm_id, message_id) do nothing
    returning g.unrecognized_count, to_jsonb(g) - 'firm_id' as gate
  )
  select
    (select c.entries from counted as c),
    r.gate,
    r.unrecognized_count
  into entries, gate, v_unrecognized
  from (select) as one
  left join recorded as r on true;

  if v_unrecognized > 0 then
    perform citeledger_private.warn_of_unrecognized(
      (
        select string_agg(distinct e.verification_status, ', ')
        from citeledger.citation_ledger_entry as e
        where e.firm_id = p_firm_id
          and e.message_id = p_message_id
          and citeledger.verification_tier(e.verification_status) is null
      )
    );
  end if;
  return next;
end
$$;

comment on function citeledger_private.settle_turn(uuid, uuid) is
  'Assembles the ledger and records the verdict of a turn of the assistant that has neither an '
  'entry nor a verdict nor a logged failure, in one statement; what it writes is what '
  'assemble_set and record_gates would. One row: how many entries it wrote, and the row of the '
  'verdict less firm_id, or null where the turn had something already, or an entry was kept back '
  'by a trigger. The caller holds the lock of the turn, acts for p_firm_id, and is under read '
  'committed: above it others may have written what the snapshot does not show. Raises the WARNING '
  'of warn_of_unrecognized. Errors: those of the constraints.';

revoke all on function citeledger_private.settle_turn(uuid, uuid) from public;

commit;
