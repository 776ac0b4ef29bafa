-- Revert citeledger:graph/walk_citations from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.walk_citations(
  p_document_ids uuid[],
  p_max_hops integer default 2,
  p_direction text default 'both'
)
returns table (
  document_id uuid,
  hop integer
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
  v_frontier uuid[];
  v_visited uuid[];
  v_hop integer := 0;
begin
  perform citeledger.require_permission('matters:read');
  if p_max_hops is null or p_max_hops < 0 then
    raise exception using
      errcode = '22023',
      message = 'p_max_hops is not a number of hops',
      detail = format('p_max_hops is %s.', coalesce(p_max_hops::text, 'null')),
      hint = 'Pass a number from 0 up; beyond the depth of the graph it does no harm.';
  end if;
  if p_direction is null or p_direction not in ('cites', 'cited_by', 'both') then
    raise exception using
      errcode = '22023',
      message = 'p_direction is not a direction',
      detail = 'It is none of cites, cited_by and both.',
      hint = 'Pass cites, cited_by or both.';
  end if;

  v_frontier := array(
    select v.id from citeledger_private.visible_documents(v_firm_id, p_document_ids) as v (id)
  );
  v_visited := v_frontier;

  -- Breadth first over an array: each document once, at its least hop, to the graph's own depth.
  loop
    return query select f.id, v_hop from unnest(v_frontier) as f (id) order by f.id;
    exit when v_hop >= p_max_hops or cardinality(v_frontier) = 0;
    v_hop := v_hop + 1;
    v_frontier := array(
      select v.id
      from citeledger_private.visible_documents(
        v_firm_id,
        array(
          (
            select e.cited_document_id
            from unnest(v_frontier) as f (id)
            cross join lateral (
              select c.cited_document_id
              from citeledger.document_citations as c
              where c.firm_id = v_firm_id and c.citing_document_id = f.id
            ) as e
            where p_direction in ('cites', 'both')
            union
            select e.citing_document_id
            from unnest(v_frontier) as f (id)
            cross join lateral (
              select c.citing_document_id
              from citeledger.document_citations as c
              where c.firm_id = v_firm_id and c.cited_document_id = f.id
            ) as e
            where p_direction in ('cited_by', 'both')
          )
          except
          select s.id from unnest(v_visited) as s (id)
        )
      ) as v (id)
    );
    v_visited := v_visited || v_frontier;
  end loop;
end
$$;

comment on function citeledger.walk_citations(uuid[], integer, text) is
  'The documents within p_max_hops citations of p_document_ids, each once, at its least hop; the '
  'given ones that are there at hop 0. p_direction: cites, cited_by or both. Rows by hop, then by '
  'id. A document that is not live, or in a matter that is hidden from the caller, is neither '
  'returned nor walked through. Needs matters:read. For citeledger_reader. Errors: 42501 without '
  'the permission; 22023 for hops that are null or negative, or another direction.';

revoke all on function citeledger.walk_citations(uuid[], integer, text) from public;
grant execute on function citeledger.walk_citations(uuid[], integer, text) to citeledger_reader;
grant execute on function citeledger.walk_citations(uuid[], integer, text) to citeledger_app;
grant execute on function citeledger.walk_citations(uuid[], integer, text) to citeledger_admin;

commit;
