-- Deploy citeledger:graph/graph_stage to pg
-- requires: graph/get_citations
-- requires: graph/kg_entity_mentions
-- requires: graph/kg_relationships

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.scope_fault(
  p_scope jsonb
)
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_key text;
begin
  if p_scope is null or jsonb_typeof(p_scope) <> 'object' then
    return 'p_scope: not an object';
  end if;
  if p_scope - array[
      'license_classes', 'sources', 'year_min', 'year_max', 'exclude_document_ids'
    ] <> '{}'
  then
    return 'p_scope: it has a key that is not one of a scope''s';
  end if;
  foreach v_key in array array['license_classes', 'sources', 'exclude_document_ids'] loop
    if p_scope ? v_key
      and (
        jsonb_typeof(p_scope -> v_key) <> 'array'
        or jsonb_path_exists(p_scope -> v_key, 'strict $[*] ? (@.type() != "string")')
      )
    then
      return format('%s: not a list of texts', v_key);
    end if;
  end loop;
  if exists (
    select
    from jsonb_array_elements_text(coalesce(p_scope -> 'exclude_document_ids', '[]')) as e (id)
    where e.id !~ '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'
  ) then
    return 'exclude_document_ids: not a list of uuids';
  end if;
  foreach v_key in array array['year_min', 'year_max'] loop
    if p_scope ? v_key
      and not citeledger_private.is_whole_number(p_scope -> v_key, -2147483648)
    then
      return format('%s: not a whole number', v_key);
    end if;
  end loop;
  return null;
end
$$;

create function citeledger_private.documents_in_scope(
  p_firm_id uuid,
  p_document_ids uuid[],
  p_scope jsonb
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
  -- An empty list allows nothing; a key that is absent allows everything.
  return query
  select d.id
  from citeledger_private.visible_documents(p_firm_id, p_document_ids) as v (id)
  join citeledger.documents as d on d.firm_id = p_firm_id and d.id = v.id
  where (not p_scope ? 'license_classes' or p_scope -> 'license_classes' ? d.license_class)
    and (not p_scope ? 'sources' or p_scope -> 'sources' ? d.source)
    and (
      not p_scope ? 'year_min'
      or d.publication_year >= (p_scope ->> 'year_min')::numeric
    )
    and (
      not p_scope ? 'year_max'
      or d.publication_year <= (p_scope ->> 'year_max')::numeric
    )
    and not exists (
      select
      from jsonb_array_elements_text(coalesce(p_scope -> 'exclude_document_ids', '[]')) as e (id)
      where e.id::uuid = d.id
    );
end
$$;

create function citeledger.graph_stage(
  p_entity_names text[],
  p_max_hops integer default 2,
  p_include_citations boolean default false,
  p_scope jsonb default '{}',
  p_limit integer default 20
)
returns table (
  chunk_id uuid,
  hop integer,
  via text
)
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
  v_fault text;
  v_frontier uuid[];
  v_entity_ids uuid[];
  v_entity_hops integer[];
  v_hop integer := 0;
begin
  perform citeledger.require_permission('matters:read');
  v_fault := case
    when p_max_hops is null or p_max_hops < 0 then
      format('p_max_hops: %s is not a number from 0 up', coalesce(p_max_hops::text, 'null'))
    when p_limit is null or p_limit < 1 then
      format('p_limit: %s is not a number from 1 up', coalesce(p_limit::text, 'null'))
    when p_include_citations is null then 'p_include_citations: null is neither true nor false'
    else citeledger_private.scope_fault(p_scope)
  end;
  if v_fault is not null then
    raise exception using
      errcode = '22023',
      message = 'the graph stage cannot be asked like this',
      detail = format('%s.', v_fault),
      hint = 'A scope has license_classes, sources, exclude_document_ids (lists), year_min and '
        'year_max (numbers), each of which may be left out.';
  end if;

  -- The concept walk: entities by name, then along relationships in either direction.
  v_frontier := array(
    select e.id
    from citeledger.kg_entities as e
    where e.firm_id = v_firm_id
      and e.name_key = any(array(select lower(n.name) from unnest(p_entity_names) as n (name)))
  );
  v_entity_ids := v_frontier;
  v_entity_hops := array_fill(0, array[cardinality(v_frontier)]);
  while v_hop < p_max_hops and cardinality(v_frontier) > 0 loop
    v_hop := v_hop + 1;
    -- A relationship counts only where the document that says so may be seen.
    v_frontier := array(
      with said as materialized (
        select r.source_entity_id, r.target_entity_id, c.document_id
        from citeledger.kg_relationships as r
        join citeledger.chunks as c on c.firm_id = v_firm_id and c.id = r.chunk_id
        where r.firm_id = v_firm_id and r.source_entity_id = any(v_frontier)
        union
        select r.source_entity_id, r.target_entity_id, c.document_id
        from citeledger.kg_relationships as r
        join citeledger.chunks as c on c.firm_id = v_firm_id and c.id = r.chunk_id
        where r.firm_id = v_firm_id and r.target_entity_id = any(v_frontier)
      ),
      seen as materialized (
        select s.source_entity_id, s.target_entity_id
        from said as s
        where s.document_id in (
          select v.id
          from citeledger_private.visible_documents(
            v_firm_id, array(select distinct d.document_id from said as d)
          ) as v (id)
        )
      )
      (select s.target_entity_id from seen as s union select s.source_entity_id from seen as s)
      except
      select x.id from unnest(v_entity_ids) as x (id)
    );
    v_entity_ids := v_entity_ids || v_frontier;
    v_entity_hops := v_entity_hops || array_fill(v_hop, array[cardinality(v_frontier)]);
  end loop;

  return query
  with mentioned as materialized (
    select c.id, c.document_id, c.chunk_index, min(x.hop) as hop
    from unnest(v_entity_ids, v_entity_hops) as x (entity_id, hop)
    join citeledger.kg_entity_mentions as m
      on m.firm_id = v_firm_id and m.entity_id = x.entity_id
    join citeledger.chunks as c on c.firm_id = v_firm_id and c.id = m.chunk_id
    group by c.id, c.document_id, c.chunk_index
  ),
  concept as materialized (
    select m.*
    from mentioned as m
    where m.document_id in (
      select s.id
      from citeledger_private.documents_in_scope(
        v_firm_id, array(select distinct n.document_id from mentioned as n), p_scope
      ) as s (id)
    )
  ),
  -- An expansion of the walk, not a layer of its own: the documents one citation away.
  neighbour as materialized (
    select n.document_id, min(n.hop) + 1 as hop
    from (
      select e.cited_document_id as document_id, o.hop
      from concept as o
      join citeledger.document_citations as e
        on e.firm_id = v_firm_id and e.citing_document_id = o.document_id
      where p_include_citations and o.hop < p_max_hops
      union all
      select e.citing_document_id, o.hop
      from concept as o
      join citeledger.document_citations as e
        on e.firm_id = v_firm_id and e.cited_document_id = o.document_id
      where p_include_citations and o.hop < p_max_hops
    ) as n
    group by n.document_id
  ),
  candidate as (
    select o.id, o.document_id, o.chunk_index, o.hop, 'concept' as via
    from concept as o
    union all
    select c.id, c.document_id, c.chunk_index, n.hop, 'citation'
    from neighbour as n
    join citeledger_private.documents_in_scope(
      v_firm_id, array(select m.document_id from neighbour as m), p_scope
    ) as s (id) on s.id = n.document_id
    join citeledger.chunks as c on c.firm_id = v_firm_id and c.document_id = n.document_id
  ),
  best as (
    select distinct on (k.id) k.*
    from candidate as k
    order by k.id, k.hop, k.via desc
  )
  select b.id, b.hop, b.via
  from best as b
  order by b.hop, b.via desc, b.document_id, b.chunk_index
  limit p_limit;
end
$$;

comment on function citeledger_private.scope_fault(jsonb) is
  'What is wrong with a scope, as "key: problem"; null when it is well-formed.';
comment on function citeledger_private.documents_in_scope(uuid, uuid[], jsonb) is
  'Those of the documents that are visible, live and allowed by the scope. A document without a '
  'publication year is in no range of years.';
comment on function citeledger.graph_stage(text[], integer, boolean, jsonb, integer) is
  'A stage of retrieval: the chunks that mention the named entities (whatever the case) or '
  'entities within p_max_hops relationships of them, in either direction. With p_include_citations '
  'also, via citation, the chunks of documents one citation away, in either direction, at one hop '
  'more than the chunk they came from and still within p_max_hops. p_scope: {"license_classes", '
  '"sources", "year_min", "year_max", "exclude_document_ids"}, applied to the documents before '
  'anything is ranked; an empty list allows nothing. Rows by hop, concept before citation, '
  'document, place; a chunk once; at most p_limit. Documents that are not live, or in a matter '
  'that is hidden from the caller, are passed over. Needs matters:read. For citeledger_reader. '
  'Errors: 42501 without the permission; 22023 for hops, a limit or a scope that make no sense, '
  'naming the key.';

revoke all on function citeledger_private.scope_fault(jsonb) from public;
revoke all on function citeledger_private.documents_in_scope(uuid, uuid[], jsonb) from public;
revoke all on function citeledger.graph_stage(text[], integer, boolean, jsonb, integer)
  from public;
grant execute on function citeledger.graph_stage(text[], integer, boolean, jsonb, integer)
  to citeledger_reader;
grant execute on function citeledger.graph_stage(text[], integer, boolean, jsonb, integer)
  to citeledger_app;
grant execute on function citeledger.graph_stage(text[], integer, boolean, jsonb, integer)
  to citeledger_admin;

commit;
