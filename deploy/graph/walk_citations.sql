-- Deploy citeledger:graph/walk_citations to pg
-- requires: graph/walk_citations@v0.1.0
-- requires: graph/get_citations
-- requires: graph/documents_to_check

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
  v_suspects uuid[];
  v_hop integer := 0;
  v_has_walls boolean;
  v_has_withdrawn boolean;
begin
  -- Asked as an expression first: to perform a function is a query, and this is a short call.
  if citeledger.has_permission('matters:read') is not true then
    perform citeledger.require_permission('matters:read');
  end if;
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

  -- Which of the given ones are there, and what the firm has of walls and of withdrawn documents:
  -- asked once and in one statement, for it is all one snapshot. By the first of an index, which
  -- costs the same whether there are many or none; whether any exists may be asked of the whole
  -- table. That a document is there its key says: no row is read for it.
  select
    array(
      select d.id
      from citeledger.documents as d
      where d.firm_id = v_firm_id and d.id = any(p_document_ids)
      order by d.id
    ),
    (
      select m.project_id
      from citeledger.project_members as m
      where m.firm_id = v_firm_id
      order by m.project_id
      limit 1
    ) is not null,
    (
      select d.id
      from citeledger.documents as d
      where d.firm_id = v_firm_id and d.deleted_at is not null
      order by d.id
      limit 1
    ) is not null
  into v_frontier, v_has_walls, v_has_withdrawn;

  -- Breadth first over an array: each document once, at its least hop, to the graph's own depth.
  loop
    -- All of these are documents of the firm, for an edge has foreign keys to both its ends. One
    -- that is live and of no matter is there for the whole firm, as is one of any matter where no
    -- wall stands: a matter that a document names is there, by its foreign key. So only the others
    -- are looked at; which they are two indexes know, without a row of any other.
    if v_has_walls or v_has_withdrawn then
      v_suspects := array(
        select d.id
        from citeledger.documents as d
        where v_has_withdrawn
          and d.firm_id = v_firm_id
          and d.id = any(v_frontier)
          and d.deleted_at is not null
        union all
        select d.id
        from citeledger.documents as d
        where v_has_walls
          and d.firm_id = v_firm_id
          and d.id = any(v_frontier)
          and num_nonnulls(d.project_id) = 1
      );
      if cardinality(v_suspects) > 0 then
        v_frontier := array(
          select f.id
          from (
            select r.id from unnest(v_frontier) as r (id)
            except
            (
              select s.id from unnest(v_suspects) as s (id)
              except
              select v.id from citeledger_private.visible_documents(v_firm_id, v_suspects) as v (id)
            )
          ) as f
          order by f.id
        );
      end if;
    end if;
    -- In the order of the array, which is that of the ids.
    return query select unnest(v_frontier), v_hop;
    exit when v_hop >= p_max_hops or cardinality(v_frontier) = 0;
    v_hop := v_hop + 1;
    v_visited := v_visited || v_frontier;
    -- The last hop is mostly most of the walk, and nothing starts from it: where there is nothing
    -- to look at either it goes straight out, through no array. Sorted inside as well, where a row
    -- is the id alone, which is the cheaper sort; the outer order then has nothing left to do.
    if v_hop = p_max_hops and not v_has_walls and not v_has_withdrawn then
      return query
      select e.id, v_hop
      from (
        (
          select c.cited_document_id
          from citeledger.document_citations as c
          where c.firm_id = v_firm_id
            and c.citing_document_id = any(v_frontier)
            and p_direction in ('cites', 'both')
          union all
          select c.citing_document_id
          from citeledger.document_citations as c
          where c.firm_id = v_firm_id
            and c.cited_document_id = any(v_frontier)
            and p_direction in ('cited_by', 'both')
        )
        except
        select unnest(v_visited)
        order by cited_document_id
      ) as e (id)
      order by e.id;
      exit;
    end if;
    v_frontier := array(
      select e.id
      from (
        (
          select c.cited_document_id
          from citeledger.document_citations as c
          where c.firm_id = v_firm_id
            and c.citing_document_id = any(v_frontier)
            and p_direction in ('cites', 'both')
          union all
          select c.citing_document_id
          from citeledger.document_citations as c
          where c.firm_id = v_firm_id
            and c.cited_document_id = any(v_frontier)
            and p_direction in ('cited_by', 'both')
        )
        except
        select unnest(v_visited)
      ) as e (id)
      order by e.id
    );
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
