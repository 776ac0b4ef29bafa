-- Revert citeledger:gate/settle_new from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- It returns something else than before.
drop function citeledger_private.settle_new(uuid, uuid[]);

create function citeledger_private.settle_new(
  p_firm_id uuid,
  p_message_ids uuid[]
)
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_unrecognized text;
begin
  -- The array through a sub-select, here and below: its length would else make each plan look worth
  -- making anew.
  if exists (
    select
    from unnest((select p_message_ids)) as t (id)
    where exists (
        select
        from citeledger.work_product_fiduciary_gate as g
        where g.firm_id = p_firm_id and g.message_id = t.id
        offset 0
      )
      or exists (
        select
        from citeledger.citation_ledger_entry as e
        where e.firm_id = p_firm_id and e.message_id = t.id
        offset 0
      )
  ) then
    return false;
  end if;

  -- The caller holds the messages, so nobody else writes what was not there: no conflict to look
  -- for in every unique key. What is counted is what was written, so nothing is read again; and as
  -- every source has just got its entry, no citation is without one.
  with turn as materialized (
    select m.id, m.chat_id, c.project_id
    from unnest((select p_message_ids)) as t (id)
    cross join lateral (
      select m.id, m.chat_id
      from citeledger.messages as m
      where m.firm_id = p_firm_id and m.id = t.id and m.role = 'assistant'
      offset 0
    ) as m
    cross join lateral (
      select c.project_id
      from citeledger.chats as c
      where c.firm_id = p_firm_id and c.id = m.chat_id
      offset 0
    ) as c
  ),
  written as (
    insert into citeledger.citation_ledger_entry (
      firm_id, project_id, chat_id, message_id,
      source_kind, message_citation_id, message_caselaw_citation_id, message_tool_source_id,
      verification_status, confidence, provider, retrieved_at
    )
    select
      p_firm_id, t.project_id, t.chat_id, t.id,
      d.source_kind, d.message_citation_id, d.message_caselaw_citation_id, d.message_tool_source_id,
      d.verification_status, d.confidence, d.provider, d.retrieved_at
    from turn as t
    -- What entry_values says, word for word: called, it would cost a fifth of all this.
    cross join lateral (
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
      where s.firm_id = p_firm_id and s.message_id = t.id
      union all
      select
        'caselaw', null, s.id, null,
        case when s.verified then s.verification_method else 'unverified' end,
        case when s.verified then s.verification_confidence end,
        'courtlistener',
        s.created_at
      from citeledger.message_caselaw_citations as s
      where s.firm_id = p_firm_id and s.message_id = t.id
      union all
      select s.source_kind, null, null, s.id, 'provenance', null, s.provider, s.created_at
      from citeledger.message_tool_sources as s
      where s.firm_id = p_firm_id and s.message_id = t.id
      offset 0
    ) as d
    returning message_id, verification_status, confidence
  ),
  status as materialized (
    select
      w.message_id,
      w.verification_status,
      citeledger.verification_tier(w.verification_status) as tier,
      count(*) as entries,
      sum(w.confidence::numeric) as confidence,
      count(w.confidence) as confidences
    from written as w
    group by w.message_id, w.verification_status
  ),
  counted as (
    select
      t.id as message_id,
      t.chat_id,
      t.project_id,
      coalesce(sum(s.entries) filter (where s.tier = 'pass'), 0)::integer as pass_count,
      coalesce(sum(s.entries) filter (where s.tier = 'supported'), 0)::integer as supported_count,
      coalesce(sum(s.entries) filter (where s.tier = 'fail'), 0)::integer as fail_count,
      coalesce(sum(s.entries) filter (where s.tier is null), 0)::integer as unrecognized_count,
      (sum(s.confidence) filter (where s.tier in ('pass', 'supported', 'fail'))
        / nullif(sum(s.confidences) filter (where s.tier in ('pass', 'supported', 'fail')), 0)
      )::double precision as confidence
    from turn as t
    left join status as s on s.message_id = t.id
    group by t.id, t.chat_id, t.project_id
  ),
  recorded as (
    insert into citeledger.work_product_fiduciary_gate (
      firm_id, message_id, chat_id, project_id,
      gate_status,
      pass_count, supported_count, fail_count, total_assertions, unrecognized_count,
      confidence
    )
    select
      p_firm_id, c.message_id, c.chat_id, c.project_id,
      case
        when c.fail_count > 0 or c.unrecognized_count > 0 then 'flagged'
        when c.supported_count > 0 then 'supported_only'
        else 'fiduciary_grade'
      end,
      c.pass_count, c.supported_count, c.fail_count,
      c.pass_count + c.supported_count + c.fail_count,
      c.unrecognized_count,
      c.confidence
    from counted as c
    returning message_id
  )
  select string_agg(distinct s.verification_status, ', ')
  into v_unrecognized
  from status as s
  where s.tier is null;

  if v_unrecognized is not null then
    perform citeledger_private.warn_of_unrecognized(v_unrecognized);
  end if;
  return true;
end
$$;

comment on function citeledger_private.settle_new(uuid, uuid[]) is
  'Assembles the ledger and records the verdicts of turns of the assistant that have neither an '
  'entry nor a verdict yet, in one statement; what it writes is what assemble_set and record_gates '
  'would. False, and nothing is done, where a turn has something already. The caller holds the '
  'lock of every turn, acts for p_firm_id, and is under read committed: above it others may have '
  'written what the snapshot does not show. Raises the WARNING of warn_of_unrecognized. Errors: '
  'those of the constraints.';

revoke all on function citeledger_private.settle_new(uuid, uuid[]) from public;

commit;
