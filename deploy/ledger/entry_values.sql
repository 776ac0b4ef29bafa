-- Deploy citeledger:ledger/entry_values to pg
-- requires: ledger/entry_values@v0.1.0

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.entry_values(
  p_firm_id uuid,
  p_message_ids uuid[],
  p_source_ids uuid[]
)
returns table (
  project_id uuid,
  chat_id uuid,
  message_id uuid,
  source_table text,
  source_id uuid,
  message_citation_id uuid,
  message_caselaw_citation_id uuid,
  message_tool_source_id uuid,
  source_kind text,
  verification_status text,
  confidence double precision,
  provider text,
  retrieved_at timestamptz
)
language plpgsql
stable
parallel safe
security invoker
rows 10
set search_path = pg_catalog, pg_temp
-- An array of one looks cheaper than the generic plan's ten, so each call would be planned anew.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_sorted uuid[];
  v_least uuid := uuid '00000000-0000-0000-0000-000000000000';
  v_greatest uuid := uuid 'ffffffff-ffff-ffff-ffff-ffffffffffff';
begin
  if p_source_ids is not null then
    v_sorted := case
      when cardinality(p_source_ids) > 1
        then array(select s.id from unnest(p_source_ids) as s (id) order by s.id)
      else p_source_ids
    end;
    v_least := v_sorted[1];
    v_greatest := v_sorted[cardinality(v_sorted)];
  end if;

  -- Laterally, an index look-up for each turn, whatever the planner knows of the tables: "offset 0"
  -- keeps it from turning this into a scan of the firm. All sources, or from the first of the
  -- changed ones to the last: an "or" alone would read the whole turn for one late source, and a
  -- branch for each case would be twice as much to prepare.
  return query
  with turn as materialized (
    select m.id, m.chat_id, c.project_id
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
  )
  select
    t.project_id, t.chat_id, t.id, 'message_citations', s.id,
    s.id, null::uuid, null::uuid,
    'kb_document',
    case when s.verified then s.verification_method else 'unverified' end,
    case when s.verified then s.verification_confidence::double precision end,
    null::text,
    null::timestamptz
  from turn as t
  cross join lateral (
    select s.*
    from citeledger.message_citations as s
    where s.firm_id = p_firm_id
      and s.message_id = t.id
      and s.id between v_least and v_greatest
      and (p_source_ids is null or s.id = any(p_source_ids))
    offset 0
  ) as s
  union all
  select
    t.project_id, t.chat_id, t.id, 'message_caselaw_citations', s.id,
    null, s.id, null,
    'caselaw',
    case when s.verified then s.verification_method else 'unverified' end,
    case when s.verified then s.verification_confidence end,
    'courtlistener',
    s.created_at
  from turn as t
  cross join lateral (
    select s.*
    from citeledger.message_caselaw_citations as s
    where s.firm_id = p_firm_id
      and s.message_id = t.id
      and s.id between v_least and v_greatest
      and (p_source_ids is null or s.id = any(p_source_ids))
    offset 0
  ) as s
  union all
  select
    t.project_id, t.chat_id, t.id, 'message_tool_sources', s.id,
    null, null, s.id,
    s.source_kind,
    'provenance',
    null,
    s.provider,
    s.created_at
  from turn as t
  cross join lateral (
    select s.*
    from citeledger.message_tool_sources as s
    where s.firm_id = p_firm_id
      and s.message_id = t.id
      and s.id between v_least and v_greatest
      and (p_source_ids is null or s.id = any(p_source_ids))
    offset 0
  ) as s;
end
$$;

comment on function citeledger_private.entry_values(uuid, uuid[], uuid[]) is
  'What the ledger must say of the sources of the given turns: the one place that maps a source '
  'row to an entry. p_source_ids limits it to those sources; null means all of them. A message '
  'that is unknown, or not the assistant''s, has none.';

revoke all on function citeledger_private.entry_values(uuid, uuid[], uuid[]) from public;

commit;
