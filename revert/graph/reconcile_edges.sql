-- Revert citeledger:graph/reconcile_edges from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- As they were in 0.1.0.
create or replace function citeledger_private.judged_references(
  p_firm_id uuid,
  p_document_ids uuid[],
  p_keys text[]
)
returns table (
  citing_document_id uuid,
  cited_document_id uuid,
  cited_doi text,
  source text,
  list_position integer,
  fate citeledger_private.reference_fate
)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
begin
  if p_document_ids is null and p_keys is null then
    -- The whole firm: every key is looked up in one pass over its live holders. A full join, for
    -- without statistics the planner would take a left one for a loop in a loop.
    return query
    with holder as materialized (
      select d.doi_key, count(*) as holders, (array_agg(d.id))[1] as document_id
      from citeledger.documents as d
      where d.firm_id = p_firm_id and d.doi_key is not null and d.deleted_at is null
      group by d.doi_key
    ),
    reference as materialized (
      select r.id, r.document_id, r.doi_key, r.cited_doi, r.source, r.position
      from citeledger.document_references as r
      where r.firm_id = p_firm_id
        and r.document_id in (
          select a.id from citeledger.documents as a
          where a.firm_id = p_firm_id and a.deleted_at is null
        )
    ),
    looked_up as materialized (
      select
        r.id, r.document_id, r.cited_doi, r.source, r.position,
        h.holders, h.document_id as holder_id
      from reference as r
      full join holder as h on h.doi_key = r.doi_key
    )
    select
      l.document_id, l.holder_id, l.cited_doi, l.source, l.position,
      case
        when l.holders is null then 'unmatched'
        when l.holders > 1 then 'ambiguous'
        when l.holder_id = l.document_id then 'self_citation'
        else 'matched'
      end::citeledger_private.reference_fate
    from looked_up as l
    where l.id is not null;
    return;
  end if;
  return query
  with reference as materialized (
    select r.id, r.document_id, r.doi_key, r.cited_doi, r.source, r.position
    from citeledger.document_references as r
    where r.firm_id = p_firm_id and r.document_id = any(p_document_ids)
    union all
    select r.id, r.document_id, r.doi_key, r.cited_doi, r.source, r.position
    from citeledger.document_references as r
    where r.firm_id = p_firm_id
      and r.doi_key = any(p_keys)
      and r.document_id <> all(p_document_ids)
  )
  -- Laterally, an index look-up for each: no plan without statistics makes it a loop in a loop.
  select
    r.document_id, h.document_id, r.cited_doi, r.source, r.position,
    case
      when h.holders = 0 then 'unmatched'
      when h.holders > 1 then 'ambiguous'
      when h.document_id = r.document_id then 'self_citation'
      else 'matched'
    end::citeledger_private.reference_fate
  from reference as r
  cross join lateral (
    select a.deleted_at
    from citeledger.documents as a
    where a.firm_id = p_firm_id and a.id = r.document_id
    offset 0
  ) as a
  cross join lateral (
    select count(*) as holders, (array_agg(d.id))[1] as document_id
    from citeledger.documents as d
    where d.firm_id = p_firm_id and d.doi_key = r.doi_key and d.deleted_at is null
  ) as h
  where a.deleted_at is null;
end
$$;

create or replace function citeledger_private.reconcile_edges(
  p_firm_id uuid,
  p_document_ids uuid[],
  p_keys text[],
  p_source text default null,
  p_dry_run boolean default false
)
returns jsonb
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_all boolean := p_document_ids is null and p_keys is null;
  v_holders uuid[];
  v_report jsonb;
begin
  -- Whose incoming edges are in question: whoever holds one of the keys, and the documents that may
  -- have held it until now. A list alone changes no incoming edge.
  v_holders := case
    when cardinality(p_keys) > 0 then
      p_document_ids || array(
        select d.id
        from citeledger.documents as d
        where d.firm_id = p_firm_id and d.doi_key = any(p_keys)
      )
  end;

  -- Materialized all along: right after a load there are no statistics to plan a join by.
  with judged as materialized (
    select * from citeledger_private.judged_references(p_firm_id, p_document_ids, p_keys)
  ),
  wanted as materialized (
    select distinct on (j.citing_document_id, j.cited_document_id)
      j.citing_document_id, j.cited_document_id, j.cited_doi, j.source
    from judged as j
    where j.fate = 'matched'
    order by j.citing_document_id, j.cited_document_id, j.source collate "C", j.list_position
  ),
  -- The edges in question: all, or those of the documents and those to whoever holds a key.
  present as materialized (
    select e.citing_document_id, e.cited_document_id, e.cited_doi, e.source
    from citeledger.document_citations as e
    where e.firm_id = p_firm_id and v_all
    union
    select e.citing_document_id, e.cited_document_id, e.cited_doi, e.source
    from citeledger.document_citations as e
    where e.firm_id = p_firm_id and e.citing_document_id = any(p_document_ids)
    union
    select e.citing_document_id, e.cited_document_id, e.cited_doi, e.source
    from citeledger.document_citations as e
    where e.firm_id = p_firm_id and e.cited_document_id = any(v_holders)
  ),
  -- Compared by a full join, which is never a loop in a loop, whatever the planner expects.
  compared as materialized (
    select
      w.citing_document_id, w.cited_document_id, w.cited_doi, w.source,
      p.citing_document_id as present_citing_id, p.cited_document_id as present_cited_id,
      p.cited_doi as present_doi, p.source as present_source
    from wanted as w
    full join present as p
      on p.citing_document_id = w.citing_document_id
      and p.cited_document_id = w.cited_document_id
  ),
  surplus as materialized (
    select c.present_citing_id as citing_document_id, c.present_cited_id as cited_document_id
    from compared as c
    where c.citing_document_id is null
  ),
  due as materialized (
    select c.citing_document_id, c.cited_document_id, c.cited_doi, c.source
    from compared as c
    where c.citing_document_id is not null
      and (c.cited_doi, c.source) is distinct from (c.present_doi, c.present_source)
  ),
  removed as (
    delete from citeledger.document_citations as e
    using surplus as s
    where not p_dry_run
      and e.firm_id = p_firm_id
      and e.citing_document_id = s.citing_document_id
      and e.cited_document_id = s.cited_document_id
    returning e.cited_document_id
  ),
  written as (
    insert into citeledger.document_citations (
      firm_id, citing_document_id, cited_document_id, cited_doi, source
    )
    select p_firm_id, d.citing_document_id, d.cited_document_id, d.cited_doi, d.source
    from due as d
    where not p_dry_run
    order by d.citing_document_id, d.cited_document_id
    on conflict (firm_id, citing_document_id, cited_document_id) do update
    set cited_doi = excluded.cited_doi, source = excluded.source
    returning cited_document_id
  )
  select jsonb_build_object(
    'documents_scanned', count(distinct j.citing_document_id),
    'references_found', count(*),
    'matched', count(*) filter (where j.fate = 'matched'),
    'unmatched', count(*) filter (where j.fate = 'unmatched'),
    'ambiguous', count(*) filter (where j.fate = 'ambiguous'),
    'self_citations_skipped', count(*) filter (where j.fate = 'self_citation'),
    -- In a dry run what would be written and removed.
    'rows_written', (select count(*) from due),
    'rows_removed', (select count(*) from surplus),
    'dry_run', p_dry_run
  )
  into v_report
  from judged as j
  where p_source is null or j.source = p_source;
  return v_report;
end
$$;

comment on function citeledger_private.reconcile_edges(uuid, uuid[], text[], text, boolean) is
  'Makes the edges of the documents p_document_ids, and those to whoever holds one of p_keys, '
  'agree with the lists; of the whole firm when both are null. Returns the report of '
  'resolve_references, its counts limited to the lists of p_source where that is given. The caller '
  'holds the lock of the graph.';

revoke all on function citeledger_private.reconcile_edges(uuid, uuid[], text[], text, boolean)
  from public;

drop function citeledger_private.edges_in_question(uuid, uuid[], uuid[]);

commit;
