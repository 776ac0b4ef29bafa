-- Deploy citeledger:graph/get_citations to pg
-- requires: tenancy/require_permission
-- requires: tenancy/walls
-- requires: graph/document_references
-- requires: graph/document_citations

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.visible_documents(
  p_firm_id uuid,
  p_document_ids uuid[]
)
returns setof uuid
language plpgsql
stable
parallel safe
security invoker
rows 10
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  select d.id
  from citeledger.documents as d
  where d.firm_id = p_firm_id
    and d.id = any(p_document_ids)
    and d.deleted_at is null
    and (
      d.project_id is null
      or exists (
        select
        -- The wall by name besides: a foreign key's cascade passes row security.
        from citeledger.projects as p
        where p.firm_id = p_firm_id
          and p.id = d.project_id
          and not citeledger_private.is_behind_wall(p_firm_id, p.id)
      )
    );
end
$$;

create function citeledger.get_citations(
  p_document_id uuid
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
  v_neighbour_ids uuid[];
  v_references jsonb;
  v_cited_by jsonb;
begin
  perform citeledger.require_permission('matters:read');
  if not exists (
    select from citeledger_private.visible_documents(v_firm_id, array[p_document_id])
  ) then
    raise exception using
      errcode = 'P0002',
      message = 'document not found',
      detail = 'No live document of this id is visible in the context.',
      hint = 'Check the id, the firm of the context, and who may see the matter.';
  end if;

  -- A document in a matter that is hidden from the caller is not named.
  v_neighbour_ids := array(
    select v.id
    from citeledger_private.visible_documents(
      v_firm_id,
      array(
        select e.cited_document_id
        from citeledger.document_citations as e
        where e.firm_id = v_firm_id and e.citing_document_id = p_document_id
        union
        select e.citing_document_id
        from citeledger.document_citations as e
        where e.firm_id = v_firm_id and e.cited_document_id = p_document_id
      )
    ) as v (id)
  );

  select coalesce(
    jsonb_agg(
      jsonb_build_object(
        'document_id', d.id,
        'title', d.title,
        'doi', r.cited_doi,
        'source', r.source,
        'resolved', d.id is not null
      )
      order by r.source collate "C", r.position
    ),
    '[]'
  )
  into v_references
  from citeledger.document_references as r
  left join (
    citeledger.document_citations as e
    join citeledger.documents as d
      on d.firm_id = v_firm_id and d.id = e.cited_document_id and d.id = any(v_neighbour_ids)
  )
    on e.firm_id = v_firm_id
    and e.citing_document_id = p_document_id
    and d.doi_key = r.doi_key
  where r.firm_id = v_firm_id and r.document_id = p_document_id;

  select coalesce(
    jsonb_agg(
      jsonb_build_object(
        'document_id', d.id,
        'title', d.title,
        'doi', d.doi,
        'source', e.source
      )
      order by d.title, d.id
    ),
    '[]'
  )
  into v_cited_by
  from citeledger.document_citations as e
  join citeledger.documents as d on d.firm_id = v_firm_id and d.id = e.citing_document_id
  where e.firm_id = v_firm_id
    and e.cited_document_id = p_document_id
    and d.id = any(v_neighbour_ids);

  return (
    select jsonb_build_object(
      'document_id', d.id,
      'title', d.title,
      'doi', d.doi,
      'references', v_references,
      'cited_by', v_cited_by
    )
    from citeledger.documents as d
    where d.firm_id = v_firm_id and d.id = p_document_id
  );
end
$$;

comment on function citeledger_private.visible_documents(uuid, uuid[]) is
  'Those of the documents that are live and in no matter that is hidden from the caller.';
comment on function citeledger.get_citations(uuid) is
  'What the document p_document_id cites and who cites it: {"document_id", "title", "doi", '
  '"references": [{"document_id", "title", "doi", "source", "resolved"}], "cited_by": '
  '[{"document_id", "title", "doi", "source"}]}. References in printed order, by source and place, '
  'with the DOI as printed; document_id and title are null where resolved is false. cited_by by '
  'title, each with its own DOI. A document in a matter that is hidden from the caller is not '
  'named. Needs matters:read. For citeledger_reader. Errors: 42501 without the permission; P0002 '
  'when the document is not there for the caller, or not live.';

revoke all on function citeledger_private.visible_documents(uuid, uuid[]) from public;
revoke all on function citeledger.get_citations(uuid) from public;
grant execute on function citeledger.get_citations(uuid) to citeledger_reader;
grant execute on function citeledger.get_citations(uuid) to citeledger_app;
grant execute on function citeledger.get_citations(uuid) to citeledger_admin;

commit;
