-- Deploy citeledger:ledger/ledger_trace to pg
-- requires: tenancy/require_permission
-- requires: tenancy/walls
-- requires: gate/verification_tier
-- requires: gate/work_product_fiduciary_gate
-- requires: ledger/citation_ledger_entry

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.ledger_trace(
  p_chat_id uuid,
  p_message_id uuid default null
)
returns jsonb
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_entries jsonb;
  v_gates jsonb;
begin
  perform citeledger.require_permission('matters:read');

  -- A matter is reached through projects alone, where row security decides. The wall is asked for
  -- by name besides: inside the cascade of a foreign key, which anybody may set up on a temporary
  -- table, the owner passes row security.
  if not exists (
    select
    from citeledger.chats as c
    where c.firm_id = v_firm_id
      and c.id = p_chat_id
      and (
        c.project_id is null
        or exists (
          select
          from citeledger.projects as p
          where p.firm_id = v_firm_id
            and p.id = c.project_id
            and not citeledger_private.is_behind_wall(v_firm_id, p.id)
        )
      )
  ) then
    raise exception using
      errcode = 'P0002',
      message = 'chat not found',
      detail = 'No chat of this id is visible in the context.',
      hint = 'Check the id, the firm of the context, and who may see the matter.';
  end if;

  select coalesce(
    jsonb_agg(
      jsonb_build_object(
        'id', e.id,
        'message_id', e.message_id,
        'source_kind', e.source_kind,
        'verification_status', e.verification_status,
        'tier', citeledger.verification_tier(e.verification_status),
        'confidence', e.confidence,
        'provider', e.provider,
        'retrieved_at', e.retrieved_at,
        'treatment_id', e.treatment_id,
        'created_at', e.created_at,
        'source', case
          when k.id is not null then
            jsonb_build_object(
              'kind', 'kb_document',
              'document_id', k.source_document_id,
              'page', k.source_page,
              'block', k.source_block
            )
            || case
              when k.source_document_id is not null and d.id is null then
                jsonb_build_object('passages', null, 'withheld', true)
              else
                jsonb_build_object(
                  'passages', jsonb_build_array(
                    jsonb_build_object(
                      'text', k.source_text,
                      'offset_start', k.source_offset_start,
                      'offset_end', k.source_offset_end
                    )
                  )
                )
            end
          when l.id is not null then
            jsonb_build_object(
              'kind', 'caselaw',
              'opinion_id', l.opinion_id,
              'cluster_id', l.cluster_id,
              'partial', l.partial,
              'passages', jsonb_build_array(
                jsonb_build_object(
                  'text', l.source_text,
                  'offset_start', l.source_offset_start,
                  'offset_end', l.source_offset_end
                )
              )
            )
          else
            jsonb_build_object(
              'kind', t.source_kind,
              'label', t.label,
              'subtitle', t.subtitle,
              'url', t.url,
              'external_ref', t.external_ref,
              'tool', t.tool
            )
        end
      )
      order by coalesce(k.created_at, l.created_at, t.created_at), e.id
    ),
    '[]'
  )
  into v_entries
  from citeledger.citation_ledger_entry as e
  left join citeledger.message_citations as k
    on k.firm_id = v_firm_id and k.id = e.message_citation_id
  -- Only a document whose quotes may be shown: live, not privileged, in no matter that is hidden.
  left join citeledger.documents as d
    on d.firm_id = v_firm_id
    and d.id = k.source_document_id
    and not d.is_privileged
    and d.deleted_at is null
    and (
      d.project_id is null
      or exists (
        select
        from citeledger.projects as p
        where p.firm_id = v_firm_id
          and p.id = d.project_id
          and not citeledger_private.is_behind_wall(v_firm_id, p.id)
      )
    )
  left join citeledger.message_caselaw_citations as l
    on l.firm_id = v_firm_id and l.id = e.message_caselaw_citation_id
  left join citeledger.message_tool_sources as t
    on t.firm_id = v_firm_id and t.id = e.message_tool_source_id
  where e.firm_id = v_firm_id
    and e.chat_id = p_chat_id
    and (p_message_id is null or e.message_id = p_message_id);

  select coalesce(
    jsonb_agg(to_jsonb(g) - 'firm_id' order by m.created_at, m.id),
    '[]'
  )
  into v_gates
  from citeledger.work_product_fiduciary_gate as g
  join citeledger.messages as m on m.firm_id = v_firm_id and m.id = g.message_id
  where g.firm_id = v_firm_id
    and g.chat_id = p_chat_id
    and (p_message_id is null or g.message_id = p_message_id);

  return jsonb_build_object('chat_id', p_chat_id, 'entries', v_entries, 'gates', v_gates);
end
$$;

comment on function citeledger.ledger_trace(uuid, uuid) is
  'The ledger and the verdicts of the chat p_chat_id, or of its message p_message_id alone: '
  '{"chat_id", "entries", "gates"}. An entry: {"id", "message_id", "source_kind", '
  '"verification_status", "tier", "confidence", "provider", "retrieved_at", "treatment_id", '
  '"created_at", "source"}, in the order in which the sources were recorded, then by id. The '
  'source is read from the content tables now: {"kind": "kb_document", "document_id", "page", '
  '"block", "passages"}, {"kind": "caselaw", "opinion_id", "cluster_id", "partial", "passages"}, '
  'or for a tool {"kind": its source_kind, "label", "subtitle", "url", "external_ref", "tool"}; a '
  'passage is {"text", "offset_start", "offset_end"}, offsets in Unicode code points. Passages of '
  'a document that is privileged, withdrawn or in a matter hidden from the caller are null, with '
  '"withheld": true. A gate: the row of work_product_fiduciary_gate less firm_id. A p_message_id '
  'that is not of the chat gives empty lists. Needs matters:read. For citeledger_reader. Errors: '
  '42501 without the permission; P0002 when the chat is not there for the caller or belongs to a '
  'matter that is not.';

revoke all on function citeledger.ledger_trace(uuid, uuid) from public;
grant execute on function citeledger.ledger_trace(uuid, uuid) to citeledger_reader;
grant execute on function citeledger.ledger_trace(uuid, uuid) to citeledger_app;
grant execute on function citeledger.ledger_trace(uuid, uuid) to citeledger_admin;

commit;
