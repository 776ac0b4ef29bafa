-- Deploy citeledger:ledger/entry_values to pg
-- requires: ledger/citation_ledger_entry

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.entry_values(
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
as $$
begin
  return query
  select
    c.project_id, m.chat_id, m.id, 'message_citations', s.id,
    s.id, null::uuid, null::uuid,
    'kb_document',
    case when s.verified then s.verification_method else 'unverified' end,
    case when s.verified then s.verification_confidence::double precision end,
    null::text,
    null::timestamptz
  from citeledger.messages as m
  join citeledger.chats as c on c.firm_id = p_firm_id and c.id = m.chat_id
  join citeledger.message_citations as s on s.firm_id = p_firm_id and s.message_id = m.id
  where m.firm_id = p_firm_id
    and m.id = any(p_message_ids)
    and m.role = 'assistant'
    and (p_source_ids is null or s.id = any(p_source_ids))
  union all
  select
    c.project_id, m.chat_id, m.id, 'message_caselaw_citations', s.id,
    null, s.id, null,
    'caselaw',
    case when s.verified then s.verification_method else 'unverified' end,
    case when s.verified then s.verification_confidence end,
    'courtlistener',
    s.created_at
  from citeledger.messages as m
  join citeledger.chats as c on c.firm_id = p_firm_id and c.id = m.chat_id
  join citeledger.message_caselaw_citations as s on s.firm_id = p_firm_id and s.message_id = m.id
  where m.firm_id = p_firm_id
    and m.id = any(p_message_ids)
    and m.role = 'assistant'
    and (p_source_ids is null or s.id = any(p_source_ids))
  union all
  select
    c.project_id, m.chat_id, m.id, 'message_tool_sources', s.id,
    null, null, s.id,
    s.source_kind,
    'provenance',
    null,
    s.provider,
    s.created_at
  from citeledger.messages as m
  join citeledger.chats as c on c.firm_id = p_firm_id and c.id = m.chat_id
  join citeledger.message_tool_sources as s on s.firm_id = p_firm_id and s.message_id = m.id
  where m.firm_id = p_firm_id
    and m.id = any(p_message_ids)
    and m.role = 'assistant'
    and (p_source_ids is null or s.id = any(p_source_ids));
end
$$;

comment on function citeledger_private.entry_values(uuid, uuid[], uuid[]) is
  'What the ledger must say of the sources of the given turns: the one place that maps a source '
  'row to an entry. p_source_ids limits it to those sources; null means all of them. A message '
  'that is unknown, or not the assistant''s, has none.';

revoke all on function citeledger_private.entry_values(uuid, uuid[], uuid[]) from public;

commit;
