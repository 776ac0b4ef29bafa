-- Deploy citeledger:gate/settle_new to pg
-- requires: gate/settle_new@v0.1.0
-- requires: gate/gate_status
-- requires: gate/settle_turn

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- It returns something else than before. Private, and called in a guard, so that what runs between
-- this and the new settle goes step by step.
-- squawk-ignore ban-drop-function
drop function citeledger_private.settle_new(uuid, uuid[]);

create function citeledger_private.settle_new(
  p_firm_id uuid,
  p_message_ids uuid[]
)
returns uuid[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_settled uuid[];
  v_unrecognized bigint;
begin
  -- Array and firm through sub-selects, here and below: the length of the one would else make each
  -- plan look worth making anew, and of another that the statistics do not know a row is expected,
  -- so that any index would do. The caller holds the messages, so nobody else writes what was not
  -- there: no conflict to look for in every unique key. What is counted is what was written, so
  -- nothing is read again; and where every source has just got its entry, no citation is without
  -- one.
  with turn as materialized (
    select m.id, m.chat_id, c.project_id
    from unnest((select p_message_ids)) as t (id)
    cross join lateral (
      select m.id, m.chat_id
      from citeledger.messages as m
      where m.firm_id = (select p_firm_id)
        and m.id = t.id
        and m.role = 'assistant'
        and not exists (
          select
          from citeledger.citation_ledger_entry as e
          where e.firm_id = (select p_firm_id) and e.message_id = t.id
        )
        and not exists (
          select
          from citeledger.finalize_failure as f
          where f.firm_id = (select p_firm_id) and f.message_id = t.id
        )
      offset 0
    ) as m
    cross join lateral (
      select c.project_id
      from citeledger.chats as c
      where c.firm_id = (select p_firm_id) and c.id = m.chat_id
      offset 0
    ) as c
  ),
  due as materialized (
    select *
    from citeledger_private.entry_values(p_firm_id, array(select t.id from turn as t), null)
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
    returning message_id, verification_status, confidence
  ),
  counted as (
    select
      w.message_id,
      (array_agg(w.chat_id) filter (where w.chat_id is not null))[1] as chat_id,
      (array_agg(w.project_id) filter (where w.chat_id is not null))[1] as project_id,
      count(*) filter (where w.tier = 'pass')::integer as pass_count,
      count(*) filter (where w.tier = 'supported')::integer as supported_count,
      count(*) filter (where w.tier = 'fail')::integer as fail_count,
      count(*) filter (where w.tier is null)::integer as unrecognized_count,
      -- As numeric: a mean over double precision depends on the order of the rows.
      avg(w.confidence::numeric) filter (where w.tier in ('pass', 'supported', 'fail'))
        ::double precision as confidence
    from (
      select
        w.message_id,
        null::uuid as chat_id,
        null::uuid as project_id,
        citeledger.verification_tier(w.verification_status) as tier,
        w.confidence
      from written as w
      union all
      -- A turn without sources has a verdict too. What is no assertion counts in nothing. Where a
      -- turn belongs its message says; a trigger of the installation may have changed an entry.
      select t.id, t.chat_id, t.project_id, 'provenance', null
      from turn as t
      offset 0
    ) as w
    group by w.message_id
  ),
  recorded as (
    insert into citeledger.work_product_fiduciary_gate as g (
      firm_id, message_id, chat_id, project_id,
      gate_status,
      pass_count, supported_count, fail_count, total_assertions, unrecognized_count,
      confidence
    )
    select
      p_firm_id, c.message_id, c.chat_id, c.project_id,
      citeledger_private.gate_status(c.supported_count, c.fail_count, c.unrecognized_count),
      c.pass_count, c.supported_count, c.fail_count,
      c.pass_count + c.supported_count + c.fail_count,
      c.unrecognized_count,
      c.confidence
    from counted as c
    -- Where entries were kept back, as such a trigger may, others count what is missing.
    where (select count(*) from written) = (select count(*) from due)
    -- A verdict that was there is for others to count again.
    on conflict (firm_id, message_id) do nothing
    returning g.message_id, g.unrecognized_count
  )
  select array_agg(r.message_id), sum(r.unrecognized_count)
  into v_settled, v_unrecognized
  from recorded as r;

  if v_unrecognized > 0 then
    perform citeledger_private.warn_of_unrecognized(
      (
        select string_agg(distinct e.verification_status, ', ')
        from citeledger.citation_ledger_entry as e
        where e.firm_id = (select p_firm_id)
          and e.message_id = any(v_settled)
          and citeledger.verification_tier(e.verification_status) is null
      )
    );
  end if;
  return v_settled;
end
$$;

comment on function citeledger_private.settle_new(uuid, uuid[]) is
  'settle_turn for many turns: of those that are new it assembles the ledgers and records the '
  'verdicts, in one statement, and returns which they are, null for none. The caller holds the '
  'lock of every turn, acts for p_firm_id, and is under read committed. Raises the WARNING of '
  'warn_of_unrecognized. Errors: those of the constraints.';

revoke all on function citeledger_private.settle_new(uuid, uuid[]) from public;

commit;
