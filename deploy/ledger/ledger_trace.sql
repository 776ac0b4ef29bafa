-- Deploy citeledger:ledger/ledger_trace to pg
-- requires: ledger/ledger_trace@v0.1.0
-- requires: tenancy/walls
-- requires: gate/verification_tier

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.ledger_trace(
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
  v_project_id uuid;
begin
  -- Asked as an expression first: to perform a function is a query, and this is a short call.
  if citeledger.has_permission('matters:read') is not true then
    perform citeledger.require_permission('matters:read');
  end if;

  -- A matter is reached through projects alone, where row security decides. The wall is asked for
  -- by name besides: inside the cascade of a foreign key, which anybody may set up on a temporary
  -- table, the owner passes row security.
  select c.project_id
  into v_project_id
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
    );
  if not found then
    raise exception using
      errcode = 'P0002',
      message = 'chat not found',
      detail = 'No chat of this id is visible in the context.',
      hint = 'Check the id, the firm of the context, and who may see the matter.';
  end if;

  -- One tree of records, whose columns are the keys, is made into jsonb once: a jsonb inside
  -- another is copied into it at each level. The columns stand in the order in which jsonb keeps
  -- keys (by length, then by bytes), which leaves it nothing to sort.
  return (
    select to_jsonb(trace)
    from (
      select
        array(
          select gate
          from citeledger.work_product_fiduciary_gate as g
          join citeledger.messages as m on m.firm_id = v_firm_id and m.id = g.message_id
          cross join lateral (
            select
              g.id,
              g.chat_id,
              g.confidence,
              g.created_at,
              g.fail_count,
              g.message_id,
              g.pass_count,
              g.project_id,
              g.computed_at,
              g.gate_status,
              g.supported_count,
              g.total_assertions,
              g.unrecognized_count
          ) as gate
          where g.firm_id = v_firm_id
            and g.chat_id = p_chat_id
            and (p_message_id is null or g.message_id = p_message_id)
          order by m.created_at, m.id
        ) as gates,
        p_chat_id as chat_id,
        array(
          select entry
          from citeledger.citation_ledger_entry as e
          left join citeledger.message_citations as k
            on k.firm_id = v_firm_id and k.id = e.message_citation_id
          -- Only a document whose quotes may be shown: live, not privileged, in no matter that is
          -- hidden. That of the chat is not: it was asked for above, and is not again for each.
          left join citeledger.documents as d
            on d.firm_id = v_firm_id
            and d.id = k.source_document_id
            and not d.is_privileged
            and d.deleted_at is null
            and (
              d.project_id is null
              or d.project_id = v_project_id
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
          cross join lateral (
            select
              k.source_text as text,
              k.source_offset_end as offset_end,
              k.source_offset_start as offset_start
          ) as quote
          cross join lateral (
            select
              'kb_document' as kind,
              k.source_page as page,
              k.source_block as block,
              array[quote] as passages,
              k.source_document_id as document_id
          ) as kb_document
          cross join lateral (
            select
              'kb_document' as kind,
              k.source_page as page,
              k.source_block as block,
              null as passages,
              true as withheld,
              k.source_document_id as document_id
          ) as kb_withheld
          cross join lateral (
            select
              l.source_text as text,
              l.source_offset_end as offset_end,
              l.source_offset_start as offset_start
          ) as holding
          cross join lateral (
            select
              'caselaw' as kind,
              l.partial,
              array[holding] as passages,
              l.cluster_id,
              l.opinion_id
          ) as opinion
          cross join lateral (
            select
              t.url,
              t.source_kind as kind,
              t.tool,
              t.label,
              t.subtitle,
              t.external_ref
          ) as tool_source
          cross join lateral (
            select
              e.id,
              citeledger.verification_tier(e.verification_status) as tier,
              case
                when k.id is not null and k.source_document_id is not null and d.id is null
                  then kb_withheld
                when k.id is not null then kb_document
                when l.id is not null then opinion
                else tool_source
              end as source,
              e.provider,
              e.confidence,
              e.created_at,
              e.message_id,
              e.source_kind,
              e.retrieved_at,
              e.treatment_id,
              e.verification_status
          ) as entry
          where e.firm_id = v_firm_id
            and e.chat_id = p_chat_id
            and (p_message_id is null or e.message_id = p_message_id)
          order by coalesce(k.created_at, l.created_at, t.created_at), e.id
        ) as entries
    ) as trace
  );
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
