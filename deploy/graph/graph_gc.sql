-- Deploy citeledger:graph/graph_gc to pg
-- requires: graph/lock_graph
-- requires: graph/document_citations
-- requires: graph/kg_entity_mentions
-- requires: graph/kg_relationships

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.graph_gc(
  p_dry_run boolean default true
)
returns jsonb
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_dry_run boolean := coalesce(p_dry_run, true);
  v_candidates uuid[];
  v_citations bigint;
  v_mentions bigint;
  v_relationships bigint;
  v_entities bigint;
begin
  perform citeledger_private.lock_graph(v_firm_id);

  -- What hangs in the air: foreign keys do not let it happen, but a load without triggers does.
  with hanging as materialized (
    select e.citing_document_id, e.cited_document_id
    from citeledger.document_citations as e
    where e.firm_id = v_firm_id
      and (
        not exists (
          select from citeledger.documents as d
          where d.firm_id = v_firm_id and d.id = e.citing_document_id
        )
        or not exists (
          select from citeledger.documents as d
          where d.firm_id = v_firm_id and d.id = e.cited_document_id
        )
      )
  ),
  swept as (
    delete from citeledger.document_citations as e
    using hanging as h
    where not v_dry_run
      and e.firm_id = v_firm_id
      and e.citing_document_id = h.citing_document_id
      and e.cited_document_id = h.cited_document_id
    returning e.cited_document_id
  )
  select count(*) into v_citations from hanging;

  with hanging as materialized (
    select m.entity_id, m.chunk_id
    from citeledger.kg_entity_mentions as m
    where m.firm_id = v_firm_id
      and (
        not exists (
          select from citeledger.kg_entities as k
          where k.firm_id = v_firm_id and k.id = m.entity_id
        )
        or not exists (
          select from citeledger.chunks as c
          where c.firm_id = v_firm_id and c.id = m.chunk_id
        )
      )
  ),
  swept as (
    delete from citeledger.kg_entity_mentions as m
    using hanging as h
    where not v_dry_run
      and m.firm_id = v_firm_id
      and m.entity_id = h.entity_id
      and m.chunk_id = h.chunk_id
    returning m.chunk_id
  )
  select count(*) into v_mentions from hanging;

  with hanging as materialized (
    select r.id
    from citeledger.kg_relationships as r
    where r.firm_id = v_firm_id
      and (
        not exists (
          select from citeledger.kg_entities as k
          where k.firm_id = v_firm_id and k.id = r.source_entity_id
        )
        or not exists (
          select from citeledger.kg_entities as k
          where k.firm_id = v_firm_id and k.id = r.target_entity_id
        )
        or not exists (
          select from citeledger.chunks as c
          where c.firm_id = v_firm_id and c.id = r.chunk_id
        )
      )
  ),
  swept as (
    delete from citeledger.kg_relationships as r
    using hanging as h
    where not v_dry_run and r.firm_id = v_firm_id and r.id = h.id
    returning r.id
  )
  select count(*) into v_relationships from hanging;

  -- Entities without evidence. An ingest may be giving one of them evidence at this moment: lock
  -- first, then look again in a new statement. One that somebody holds is in use and stays: waiting
  -- for it, with the graph locked, could be waiting in a circle.
  v_candidates := array(
    select k.id
    from citeledger.kg_entities as k
    where k.firm_id = v_firm_id
      and not exists (
        select
        from citeledger.kg_entity_mentions as m
        join citeledger.chunks as c on c.firm_id = v_firm_id and c.id = m.chunk_id
        where m.firm_id = v_firm_id and m.entity_id = k.id
      )
  );
  if not v_dry_run then
    v_candidates := array(
      select k.id
      from citeledger.kg_entities as k
      where k.firm_id = v_firm_id and k.id = any(v_candidates)
      order by k.id
      for update skip locked
    );
  end if;
  with bare as materialized (
    select k.id
    from citeledger.kg_entities as k
    where k.firm_id = v_firm_id
      and k.id = any(v_candidates)
      and not exists (
        select
        from citeledger.kg_entity_mentions as m
        join citeledger.chunks as c on c.firm_id = v_firm_id and c.id = m.chunk_id
        where m.firm_id = v_firm_id and m.entity_id = k.id
      )
  ),
  swept as (
    delete from citeledger.kg_entities as k
    using bare as b
    where not v_dry_run and k.firm_id = v_firm_id and k.id = b.id
    returning k.id
  )
  select count(*) into v_entities from bare;

  return jsonb_build_object(
    'entities', v_entities,
    'citations', v_citations,
    'mentions', v_mentions,
    'relationships', v_relationships,
    'dry_run', v_dry_run
  );
end
$$;

comment on function citeledger.graph_gc(boolean) is
  'Sweeps what nothing holds any more, and returns how many rows of each kind: {"entities" '
  '(without evidence), "citations", "mentions", "relationships" (with an endpoint that vanished by '
  'other means, such as a load without triggers), "dry_run"}. An entity to which an ingest gives '
  'evidence at that moment stays. A dry run, the default and what null means, changes nothing and '
  'counts what it would sweep. Relationships of a swept entity go with it. Locks the firm''s graph '
  'and the candidates until the transaction ends. For citeledger_admin. Errors: 25000 above read '
  'committed.';

revoke all on function citeledger.graph_gc(boolean) from public;
grant execute on function citeledger.graph_gc(boolean) to citeledger_admin;

commit;
