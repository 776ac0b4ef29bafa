-- Deploy citeledger:gate/recount to pg
-- requires: gate/recount@v0.1.0
-- requires: gate/verification_tier

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.recount(
  p_firm_id uuid,
  p_message_ids uuid[]
)
returns table (
  message_id uuid,
  chat_id uuid,
  project_id uuid,
  pass_count integer,
  supported_count integer,
  fail_count integer,
  unrecognized_count integer,
  confidence double precision,
  unrecognized_statuses text[]
)
language plpgsql
stable
parallel safe
security invoker
rows 1
set search_path = pg_catalog, pg_temp
-- An array of one looks cheaper than the generic plan's ten, so each call would be planned anew.
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  select
    m.id,
    m.chat_id,
    c.project_id,
    counted.pass_count,
    counted.supported_count,
    -- A citation without an entry resolves to nothing. An entry's citation is of the same turn and
    -- has no other entry, so the difference of the counts is exactly those.
    (counted.fail_count
      + (
        select count(*)
        from citeledger.message_citations as s
        where s.firm_id = p_firm_id and s.message_id = m.id
      )
      + (
        select count(*)
        from citeledger.message_caselaw_citations as s
        where s.firm_id = p_firm_id and s.message_id = m.id
      )
      - counted.citation_entries)::integer,
    counted.unrecognized_count,
    counted.confidence,
    counted.unrecognized_statuses
  -- Laterally, an index look-up for each turn, whatever the planner knows of the tables.
  from unnest(p_message_ids) as t (id)
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
  cross join lateral (
    select
      coalesce(sum(v.entries) filter (where v.tier = 'pass'), 0)::integer as pass_count,
      coalesce(sum(v.entries) filter (where v.tier = 'supported'), 0)::integer as supported_count,
      coalesce(sum(v.entries) filter (where v.tier = 'fail'), 0)::integer as fail_count,
      coalesce(sum(v.entries) filter (where v.tier is null), 0)::integer as unrecognized_count,
      -- A tool source is no citation, and its entry alone is provenance.
      coalesce(sum(v.entries) filter (where v.tier is distinct from 'provenance'), 0)
        as citation_entries,
      -- As numeric: a mean over double precision depends on the order of the rows.
      (sum(v.confidence::numeric * v.entries) filter (where v.tier in ('pass', 'supported', 'fail'))
        / nullif(
          sum(v.entries) filter (
            where v.tier in ('pass', 'supported', 'fail') and v.confidence is not null
          ),
          0
        )
      )::double precision as confidence,
      array_agg(v.verification_status) filter (where v.tier is null) as unrecognized_statuses
    from (
      -- A turn has few different confidences: each becomes a numeric once.
      select
        e.verification_status,
        citeledger.verification_tier(e.verification_status) as tier,
        e.confidence,
        count(*)::integer as entries
      from citeledger.citation_ledger_entry as e
      where e.firm_id = p_firm_id and e.message_id = m.id
      group by e.verification_status, e.confidence
    ) as v
  ) as counted;
end
$$;

comment on function citeledger_private.recount(uuid, uuid[]) is
  'What the ledger of the given turns says now: one row for each message that is the assistant''s. '
  'fail_count includes the citations that have no entry. unrecognized_statuses: those '
  'that verification_tier does not know, one of them perhaps more than once, or null.';

revoke all on function citeledger_private.recount(uuid, uuid[]) from public;

commit;
