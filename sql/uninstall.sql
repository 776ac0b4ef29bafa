-- citeledger 0.2.0: takes the whole schema away, made from sqitch.plan by tools/build_sql.py.
-- Do not edit. EVERY FIRM'S DATA GOES WITH IT.
--
-- psql -X -v ON_ERROR_STOP=1 -1 -f sql/uninstall.sql
--
-- A role stays, with a notice, while another database or another role depends on it.

savepoint citeledger_needs_one_transaction;
release savepoint citeledger_needs_one_transaction;

-- ops/version

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.version()
returns text
language sql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
  select '0.1.0'::text
$$;

comment on function citeledger.version() is
  'The version of the installed schema, MAJOR.MINOR.PATCH. A client refuses one that it does not '
  'know.';

revoke all on function citeledger.version() from public;
grant execute on function citeledger.version() to citeledger_reader;
grant execute on function citeledger.version() to citeledger_app;
grant execute on function citeledger.version() to citeledger_admin;

reset role;

-- ops/jit_off

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

alter function citeledger_private.source_inserted() reset jit;
alter function citeledger_private.source_deleted() reset jit;
alter function citeledger_private.seal_message() reset jit;
alter function citeledger_private.keep_replaced_values() reset jit;
alter function citeledger_private.keep_deleted_values() reset jit;
alter function citeledger_private.finalize_updated() reset jit;
alter function citeledger_private.finalize_inserted() reset jit;
alter function citeledger_private.documents_left() reset jit;
alter function citeledger_private.documents_changed() reset jit;
alter function citeledger_private.documents_arrived() reset jit;
alter function citeledger_private.citation_updated() reset jit;
alter function citeledger_private.before_ingest() reset jit;
alter function citeledger.walk_citations(uuid[], integer, text) reset jit;
alter function citeledger.suggest_spans(uuid, jsonb, integer) reset jit;
alter function citeledger.resolve_span(jsonb) reset jit;
alter function citeledger.resolve_references(boolean) reset jit;
alter function citeledger.replace_document_pages(uuid, jsonb) reset jit;
alter function citeledger.record_references(uuid, text[], text) reset jit;
alter function citeledger.record_crossref_work(uuid, jsonb) reset jit;
alter function citeledger.recheck_document(uuid) reset jit;
alter function citeledger.read_pages(uuid, uuid, integer) reset jit;
alter function citeledger.ledger_trace(uuid, uuid) reset jit;
alter function citeledger.graph_stage(text[], integer, boolean, jsonb, integer) reset jit;
alter function citeledger.graph_gc(boolean) reset jit;
alter function citeledger.get_citations(uuid) reset jit;
alter function citeledger.finalize_turns(uuid[]) reset jit;
alter function citeledger.finalize_turn(uuid) reset jit;
alter function citeledger.finalize_pending(integer) reset jit;
alter function citeledger.delete_firm(uuid) reset jit;
alter function citeledger.corpus_delete(uuid[]) reset jit;
alter function citeledger.compute_and_record_gate(uuid) reset jit;
alter function citeledger.cite_many(uuid, jsonb) reset jit;
alter function citeledger.cite_ledger_entry(uuid) reset jit;
alter function citeledger.cite(uuid, jsonb) reset jit;
alter function citeledger.check_integrity() reset jit;
alter function citeledger.assemble_ledger_entries(uuid) reset jit;

reset role;

-- ops/describe_function

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.describe_function(
  p_function regprocedure
)
returns setof text
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
-- What is compared must not depend on how the session has names quoted.
set quote_all_identifiers = off
as $$
begin
  return query
  select line.line
  from pg_proc as f
  join pg_language as l on l.oid = f.prolang
  cross join lateral (
    values
      (format('owner %s', pg_get_userbyid(f.proowner))),
      (format('arguments %s', coalesce(nullif(pg_get_function_arguments(f.oid), ''), 'none'))),
      (format('returns %s', pg_get_function_result(f.oid))),
      (format('language %s', l.lanname)),
      (case f.provolatile when 'i' then 'immutable' when 's' then 'stable' else 'volatile' end),
      (case f.proparallel
        when 's' then 'parallel safe'
        when 'r' then 'parallel restricted'
        else 'parallel unsafe'
      end),
      (case when f.prosecdef then 'security definer' else 'security invoker' end),
      (format('set %s', coalesce(array_to_string(f.proconfig, '; '), 'nothing'))),
      (case when f.proisstrict then 'strict' end)
  ) as line (line)
  where f.oid = p_function and line.line is not null
  union all
  -- Null is the built-in default, which lets PUBLIC execute.
  select format(
    'grant execute to %s',
    case when g.grantee = 0 then 'public' else quote_ident(pg_get_userbyid(g.grantee)) end
  )
  from pg_proc as f
  cross join lateral aclexplode(coalesce(f.proacl, acldefault('f', f.proowner))) as g
  where f.oid = p_function and g.grantee <> f.proowner
  union all
  select 'uncommented'
  where coalesce(obj_description(p_function, 'pg_proc'), '') !~ '[^[:space:]]';
end
$$;

comment on function citeledger_private.describe_function(regprocedure) is
  'What a function is, a line for each fact: owner, arguments, result, language, volatility, '
  'parallel label, security, settings, who else than the owner may execute it, and whether it has '
  'no comment. The same on every PostgreSQL version. Source: the system catalogs.';

revoke all on function citeledger_private.describe_function(regprocedure) from public;

reset role;

-- graph/record_references

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.record_references(
  p_document_id uuid,
  p_dois text[],
  p_source text default 'crossref'
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
  v_usable bigint;
begin
  if p_dois is null then
    raise exception using
      errcode = '22023',
      message = 'p_dois is not a list of DOIs',
      detail = 'p_dois is null.',
      hint = 'Pass an empty list to say that the document cites nothing.';
  end if;
  if p_source is null or p_source collate "C" !~ '^[a-z][a-z0-9_]{0,31}$' then
    raise exception using
      errcode = '22023',
      message = 'p_source is not a label',
      detail = 'A label is a lower-case letter, then at most 31 lower-case letters, digits or _.',
      hint = 'Pass for example crossref.';
  end if;

  perform citeledger_private.lock_graph(v_firm_id);
  perform
  from citeledger.documents as d
  where d.firm_id = v_firm_id and d.id = p_document_id
  for key share;
  if not found then
    raise exception using
      errcode = 'P0002',
      message = 'document not found',
      detail = 'No document of this id is in the firm of the context.',
      hint = 'Check the id and the firm of the context.';
  end if;

  delete from citeledger.document_references as r
  where r.firm_id = v_firm_id and r.document_id = p_document_id and r.source = p_source;

  with printed as materialized (
    select n.doi, n.position, citeledger.normalize_doi(n.doi) as doi_key
    from unnest(p_dois) with ordinality as n (doi, position)
  ),
  written as (
    insert into citeledger.document_references (
      firm_id, document_id, position, cited_doi, source
    )
    select distinct on (p.doi_key) v_firm_id, p_document_id, p.position, p.doi, p_source
    from printed as p
    where p.doi_key is not null
    order by p.doi_key, p.position
    on conflict do nothing
    returning id
  )
  select count(p.doi_key) into v_usable from printed as p;

  return citeledger_private.reconcile_edges(
      v_firm_id, array[p_document_id], '{}', p_source => p_source
    )
    || jsonb_build_object('unusable', cardinality(p_dois) - v_usable);
end
$$;

comment on function citeledger.record_references(uuid, text[], text) is
  'Replaces the reference list of the document p_document_id for the source p_source, and resolves '
  'it. p_dois: the DOIs as printed, in their order; repeats of one DOI are one reference, at its '
  'first place. Strings without a DOI and nulls are counted as unusable and not stored. Returns '
  'the keys of resolve_references, for this list, and "unusable". Locks the firm''s graph until '
  'the transaction ends. For citeledger_app. Errors: 22023 for a null list or a source that is no '
  'label; P0002 when the document is not in the firm; 25000 above read committed.';

revoke all on function citeledger.record_references(uuid, text[], text) from public;
grant execute on function citeledger.record_references(uuid, text[], text) to citeledger_app;
grant execute on function citeledger.record_references(uuid, text[], text) to citeledger_admin;

reset role;

-- gate/compute_and_record_gate

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.compute_and_record_gate(
  p_message_id uuid
)
returns citeledger.work_product_fiduciary_gate
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_gate citeledger.work_product_fiduciary_gate;
begin
  perform citeledger_private.lock_turns(v_firm_id, array[p_message_id]);

  if not exists (
    select
    from citeledger.messages as m
    where m.firm_id = v_firm_id and m.id = p_message_id and m.role = 'assistant'
  ) then
    return null;
  end if;

  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    perform citeledger_private.withdraw_gates(v_firm_id, array[p_message_id], 'isolation', '25000');
    return null;
  end if;

  -- Where an earlier attempt failed, the ledger may be behind its sources: it is caught up first.
  if exists (
    select
    from citeledger.finalize_failure as f
    where f.firm_id = v_firm_id and f.message_id = p_message_id
  ) then
    perform citeledger_private.assemble_turn(v_firm_id, p_message_id);
  end if;

  perform citeledger_private.record_gates(v_firm_id, array[p_message_id]);

  select g.*
  into v_gate
  from citeledger.work_product_fiduciary_gate as g
  where g.firm_id = v_firm_id and g.message_id = p_message_id;
  return v_gate;
end
$$;

comment on function citeledger.compute_and_record_gate(uuid) is
  'Computes the verdict of the turn p_message_id from its ledger entries, stores it, and returns '
  'the row; an unchanged verdict is not written again. A citation that has no entry counts as '
  'failed. A turn with logged failures is assembled first. An unrecognised status counts in no '
  'tier, flags the turn, and is named in one warning. Null, and no row, for an unknown message and '
  'for one that is not the assistant''s. Above read committed no verdict is recorded: null, logged '
  'in finalize_failure (stage isolation). What it cannot see is a citation that the application '
  'never recorded: record failed ones too, as verified = false, also for caselaw. Locks the '
  'message until the transaction ends. For citeledger_app.';

revoke all on function citeledger.compute_and_record_gate(uuid) from public;
grant execute on function citeledger.compute_and_record_gate(uuid) to citeledger_app;
grant execute on function citeledger.compute_and_record_gate(uuid) to citeledger_admin;

reset role;

-- ledger/entry_values

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
begin
  -- Laterally, an index look-up for each turn, whatever the planner knows of the tables: "offset 0"
  -- keeps it from turning this into a scan of the firm. All sources or the changed ones, each by a
  -- key of its own: an "or" would read the whole turn for one late source.
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
    where s.firm_id = p_firm_id and s.message_id = t.id and p_source_ids is null
    union all
    select s.*
    from citeledger.message_citations as s
    where s.firm_id = p_firm_id and s.message_id = t.id and s.id = any(p_source_ids)
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
    where s.firm_id = p_firm_id and s.message_id = t.id and p_source_ids is null
    union all
    select s.*
    from citeledger.message_caselaw_citations as s
    where s.firm_id = p_firm_id and s.message_id = t.id and s.id = any(p_source_ids)
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
    where s.firm_id = p_firm_id and s.message_id = t.id and p_source_ids is null
    union all
    select s.*
    from citeledger.message_tool_sources as s
    where s.firm_id = p_firm_id and s.message_id = t.id and s.id = any(p_source_ids)
    offset 0
  ) as s;
end
$$;

comment on function citeledger_private.entry_values(uuid, uuid[], uuid[]) is
  'What the ledger must say of the sources of the given turns: the one place that maps a source '
  'row to an entry. p_source_ids limits it to those sources; null means all of them. A message '
  'that is unknown, or not the assistant''s, has none.';

revoke all on function citeledger_private.entry_values(uuid, uuid[], uuid[]) from public;

reset role;

-- graph/document_triggers

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.documents_arrived()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm record;
  v_outer text;
begin
  for v_firm in
    select n.firm_id, array_agg(distinct n.doi_key) as keys
    from new_rows as n
    where n.doi_key is not null
    group by n.firm_id
    order by n.firm_id
  loop
    v_outer := citeledger_private.enter_firm(v_firm.firm_id);
    perform citeledger_private.lock_graph(v_firm.firm_id);
    -- What just arrived has no list yet.
    perform citeledger_private.reconcile_edges(v_firm.firm_id, '{}', v_firm.keys);
    perform citeledger_private.leave_firm(v_outer);
  end loop;
  return null;
end
$$;

comment on function citeledger_private.documents_arrived() is
  'Trigger function: resolves the references that name the DOIs of inserted documents. Errors: '
  '25000 above read committed.';

revoke all on function citeledger_private.documents_arrived() from public;

reset role;

-- graph/walk_citations

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

reset role;

-- graph/documents_to_check

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop index citeledger.documents_in_matters_idx;
drop index citeledger.documents_withdrawn_idx;

reset role;

-- graph/get_citations

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.visible_documents(
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

comment on function citeledger_private.visible_documents(uuid, uuid[]) is
  'Those of the documents that are live and in no matter that is hidden from the caller.';

revoke all on function citeledger_private.visible_documents(uuid, uuid[]) from public;

reset role;

-- cite/cite_many

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.cite_many(
  p_matter_id uuid,
  p_spans jsonb
)
returns jsonb
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_matter_number text;
  v_faults text[];
  v_spans citeledger_private.span[];
  v_positions bigint[];
  v_result jsonb;
begin
  perform citeledger.require_permission('matters:read');
  if p_spans is null or jsonb_typeof(p_spans) <> 'array' then
    raise exception using
      errcode = '22023',
      message = 'p_spans is not a list of spans',
      detail = format('p_spans is %s.', coalesce(jsonb_typeof(p_spans), 'null')),
      hint = 'Pass a JSON array of spans; for a single one there is citeledger.cite.';
  end if;
  v_matter_number := citeledger_private.visible_matter_number(v_firm_id, p_matter_id);
  if v_matter_number is null then
    perform citeledger_private.refuse_as_not_found();
  end if;

  -- Each item is judged once, and each document asked for once. What can be looked at is
  -- well-formed, and of a record of the matter.
  with item as materialized (
    select i.item, i.position, citeledger_private.span_fault(i.item) as fault
    from jsonb_array_elements(p_spans) with ordinality as i (item, position)
  ),
  span as materialized (
    select i.position, citeledger_private.to_span(i.item) as span
    from item as i
    where i.fault is null
  ),
  document as materialized (
    select distinct (s.span).document_id as id from span as s
  ),
  held as materialized (
    select d.id
    from document as d
    where citeledger_private.holds_record(v_firm_id, p_matter_id, d.id)
  ),
  good as materialized (
    select s.position, s.span
    from span as s
    where (s.span).document_id in (select h.id from held as h)
  )
  select
    (select array_agg(i.fault order by i.position) from item as i),
    (select array_agg(g.span order by g.position) from good as g),
    (select array_agg(g.position order by g.position) from good as g)
  into v_faults, v_spans, v_positions;

  select coalesce(
    jsonb_agg(
      coalesce(
        checked.resolution,
        jsonb_build_object(
          'error',
          case
            when v_faults[i.position] is not null then jsonb_build_object(
              'sqlstate', '22023',
              'message', 'the span is malformed: ' || v_faults[i.position]
            )
            else jsonb_build_object('sqlstate', 'P0002', 'message', 'record not found')
          end
        )
      )
      order by i.position
    ),
    '[]'
  )
  into v_result
  from generate_series(1, jsonb_array_length(p_spans)) as i (position)
  left join (
    select
      v_positions[r.span_position] as position,
      citeledger_private.cite_resolution(
        v_matter_number, v_spans[r.span_position], r.reason
      ) as resolution
    from citeledger_private.resolve_spans(v_firm_id, v_spans) as r
  ) as checked on checked.position = i.position;
  return v_result;
end
$$;

comment on function citeledger.cite_many(uuid, jsonb) is
  'cite for a list of spans of one matter, set-based: a JSON array of CiteResolutions in the order '
  'of p_spans. Permission and matter are checked once. A bad item becomes {"error": {"sqlstate", '
  '"message"}} in its place and spoils no other: 22023 for a malformed span, with the offending '
  'key in the message, P0002 for a document that the matter does not hold as a live, '
  'non-privileged record. For citeledger_reader. Errors: 42501 without matters:read; 22023 when '
  'p_spans is no array; P0002 when the matter is not visible.';

revoke all on function citeledger.cite_many(uuid, jsonb) from public;
grant execute on function citeledger.cite_many(uuid, jsonb) to citeledger_reader;
grant execute on function citeledger.cite_many(uuid, jsonb) to citeledger_app;
grant execute on function citeledger.cite_many(uuid, jsonb) to citeledger_admin;

reset role;

-- cite/cite

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.cite_resolution(
  p_matter_number text,
  p_span citeledger_private.span,
  p_reason text
)
returns jsonb
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  return jsonb_build_object(
    'verified', p_reason is null,
    'reason', p_reason,
    'deep_link', case
      when p_reason is null then citeledger.deep_link(
        p_matter_number, p_span.document_id, p_span.page_number, p_span.block_index
      )
    end,
    'engine_state', 'live',
    'checked_at', statement_timestamp(),
    'span', citeledger_private.write_span(p_span)
  );
end
$$;

create or replace function citeledger.cite(
  p_matter_id uuid,
  p_span jsonb
)
returns jsonb
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_span citeledger_private.span;
  v_matter_number text;
  v_reason text;
begin
  perform citeledger.require_permission('matters:read');
  v_span := citeledger_private.read_span(p_span);

  v_matter_number := citeledger_private.visible_matter_number(v_firm_id, p_matter_id);
  if v_matter_number is null
    or not citeledger_private.holds_record(v_firm_id, p_matter_id, v_span.document_id)
  then
    perform citeledger_private.refuse_as_not_found();
  end if;

  select r.reason
  into strict v_reason
  from citeledger_private.resolve_spans(v_firm_id, array[v_span]) as r;
  return citeledger_private.cite_resolution(v_matter_number, v_span, v_reason);
end
$$;

comment on function citeledger_private.cite_resolution(text, citeledger_private.span, text) is
  'A CiteResolution as JSON; the link is there only when p_reason is null, which means verified.';
comment on function citeledger.cite(uuid, jsonb) is
  'Checks a span of a record of the matter p_matter_id against the live page, now, and gives the '
  'link to it when it holds: {"verified", "reason", "deep_link", "engine_state": "live", '
  '"checked_at", "span"}. The checks come in this order: the permission matters:read (42501), the '
  'form of the span (22023), the matter is visible and holds the document as a live, '
  'non-privileged record (P0002), the text. For the span and the reasons see resolve_span. '
  'deep_link is null unless verified. checked_at is when the statement began. For '
  'citeledger_reader. Errors: 42501; 22023 with the offending key in DETAIL; P0002, the same '
  'whatever is not there.';

revoke all on function citeledger_private.cite_resolution(text, citeledger_private.span, text)
  from public;
revoke all on function citeledger.cite(uuid, jsonb) from public;
grant execute on function citeledger.cite(uuid, jsonb) to citeledger_reader;
grant execute on function citeledger.cite(uuid, jsonb) to citeledger_app;
grant execute on function citeledger.cite(uuid, jsonb) to citeledger_admin;

reset role;

-- cite/record_in_matter

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.visible_matter_number(
  p_firm_id uuid,
  p_matter_id uuid
)
returns text
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
begin
  return (
    -- Row security decides, and the wall is asked for by name besides: inside the cascade of a
    -- foreign key, which anybody may set up on a temporary table, the owner passes row security.
    select p.matter_number
    from citeledger.projects as p
    where p.firm_id = p_firm_id
      and p.id = p_matter_id
      and not citeledger_private.is_behind_wall(p_firm_id, p_matter_id)
  );
end
$$;

create or replace function citeledger_private.holds_record(
  p_firm_id uuid,
  p_matter_id uuid,
  p_document_id uuid
)
returns boolean
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
begin
  return exists (
    select
    from citeledger.documents as d
    where d.firm_id = p_firm_id
      and d.id = p_document_id
      and d.project_id = p_matter_id
      and d.document_kind = 'record'
      and not d.is_privileged
      and d.deleted_at is null
  );
end
$$;

comment on function citeledger_private.visible_matter_number(uuid, uuid) is
  'The number of a matter that is visible in the context, else null.';
comment on function citeledger_private.holds_record(uuid, uuid, uuid) is
  'Whether the document is a live, non-privileged record of the matter: what may be cited.';

revoke all on function citeledger_private.visible_matter_number(uuid, uuid) from public;
revoke all on function citeledger_private.holds_record(uuid, uuid, uuid) from public;

reset role;

-- cite/resolve_spans

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.resolve_spans(
  p_firm_id uuid,
  p_spans citeledger_private.span[]
)
returns table (
  span_position bigint,
  reason text
)
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
  with span as materialized (
    select s.*
    from unnest(p_spans) with ordinality as s (
      document_id, page_number, block_index, char_start, char_end, quote, span_position
    )
  ),
  -- A page is put together once, however many spans are anchored in it.
  page as materialized (
    select a.document_id, a.page_number, t.content
    from (
      select distinct s.document_id, s.page_number from span as s where s.block_index is null
    ) as a
    join citeledger.document_pages as p
      on p.firm_id = p_firm_id
      and p.document_id = a.document_id
      and p.page_number = a.page_number
    cross join lateral (
      select coalesce(string_agg(b.content, E'\n' order by b.block_index), '') as content
      from citeledger.document_page_blocks as b
      where b.firm_id = p_firm_id
        and b.document_id = p.document_id
        and b.page_number = p.page_number
    ) as t
  ),
  unit as (
    select s.*, b.content
    from span as s
    left join citeledger.document_page_blocks as b
      on b.firm_id = p_firm_id
      and b.document_id = s.document_id
      and b.page_number = s.page_number
      and b.block_index = s.block_index
    where s.block_index is not null
    union all
    select s.*, p.content
    from span as s
    left join page as p on p.document_id = s.document_id and p.page_number = s.page_number
    where s.block_index is null
  )
  select
    u.span_position,
    case
      when u.content is null then
        case
          when not exists (
            select
            from citeledger.document_pages as p
            where p.firm_id = p_firm_id and p.document_id = u.document_id
          )
            then 'no_pages'
          when not exists (
            select
            from citeledger.document_pages as p
            where p.firm_id = p_firm_id
              and p.document_id = u.document_id
              and p.page_number = u.page_number
          )
            then 'page_missing'
          else 'block_out_of_range'
        end
      when u.char_start is null then
        case
          when strpos(u.content collate "C", u.quote collate "C") = 0
            or citeledger_private.is_blank(u.quote)
            then 'quote_absent'
        end
      -- Checked before the slice is cut: substring would clip to the text without a word.
      when u.char_end > char_length(u.content) then 'offsets_out_of_range'
      when substring(u.content from u.char_start + 1 for u.char_end - u.char_start) collate "C"
          <> u.quote collate "C"
        or citeledger_private.is_blank(u.quote)
        then 'text_mismatch'
    end
  from unit as u;
end
$$;

comment on function citeledger_private.resolve_spans(uuid, citeledger_private.span[]) is
  'Compares each span with the live page, byte for byte: one row a span, reason null where it '
  'verifies, else no_pages, page_missing, block_out_of_range, offsets_out_of_range, text_mismatch '
  'or quote_absent. span_position: the span''s place in the array, from 1. A blank quote verifies '
  'nowhere. The one place where a span is compared.';

revoke all on function citeledger_private.resolve_spans(uuid, citeledger_private.span[])
  from public;

reset role;

-- cite/cite_answer

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.cite_answer(text, uuid, integer, integer, jsonb, text);

reset role;

-- cite/deep_link

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.deep_link(
  p_matter_number text,
  p_document_id uuid,
  p_page_number integer,
  p_block_index integer default null
)
returns text
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_matter text := p_matter_number;
begin
  -- Percent-encoding of RFC 3986: every byte that is not unreserved. Most numbers have none.
  if translate(
    p_matter_number, 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~-', ''
  ) <> '' then
    select string_agg(
      case
        when c.letter collate "C" ~ '^[A-Za-z0-9._~-]$' then c.letter
        else regexp_replace(
          upper(encode(convert_to(c.letter, 'UTF8'), 'hex')), '(..)', E'%\\1', 'g'
        )
      end,
      ''
      order by c.position
    )
    into v_matter
    from string_to_table(p_matter_number, null) with ordinality as c (letter, position);
  end if;

  return format('/matters/%s/record/doc/%s?page=%s', v_matter, p_document_id, p_page_number)
    || coalesce('&block=' || p_block_index, '');
end
$$;

comment on function citeledger.deep_link(text, uuid, integer, integer) is
  'The link to a page of a document, with the block where p_block_index is given: '
  '/matters/{matter_number}/record/doc/{document_id}?page={page_number}[&block={block_index}], the '
  'matter number percent-encoded. Built here and nowhere else, and granted to nobody: no link '
  'exists for what did not verify.';

revoke all on function citeledger.deep_link(text, uuid, integer, integer) from public;

drop function citeledger_private.page_link(text, uuid, integer, integer);
drop function citeledger_private.matter_link(text);

reset role;

-- cite/quote_fault

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.quote_fault(text, integer, integer, text);

reset role;

-- cite/span

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.span_fault(
  p_span jsonb
)
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  -- Null for an optional key means that the key is absent.
  v_span jsonb;
  v_unknown text;
begin
  if p_span is null or jsonb_typeof(p_span) <> 'object' then
    return 'span: not an object';
  end if;
  v_span := p_span;
  if v_span -> 'block_index' = 'null' then
    v_span := v_span - 'block_index';
  end if;
  if v_span -> 'char_start' = 'null' then
    v_span := v_span - 'char_start';
  end if;
  if v_span -> 'char_end' = 'null' then
    v_span := v_span - 'char_end';
  end if;

  select min(k.key collate "C")
  into v_unknown
  from jsonb_object_keys(
    v_span - array[
      'document_id', 'page_number', 'block_index', 'char_start', 'char_end', 'quote'
    ]
  ) as k (key);
  if v_unknown is not null then
    -- Named only where it has the form of a name, which holds no content.
    return case
      when v_unknown ~ '^[A-Za-z_][A-Za-z0-9_]{0,31}$' then format('%s: unknown key', v_unknown)
      else 'span: it has an unknown key'
    end;
  end if;
  if not v_span ? 'document_id' then
    return 'document_id: missing';
  end if;
  if jsonb_typeof(v_span -> 'document_id') <> 'string'
    or v_span ->> 'document_id' !~ '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'
  then
    return 'document_id: not a uuid';
  end if;
  if not v_span ? 'page_number' then
    return 'page_number: missing';
  end if;
  if not citeledger_private.is_whole_number(v_span -> 'page_number', 1) then
    return 'page_number: not a whole number from 1 to 2147483647';
  end if;
  if v_span ? 'block_index'
    and not citeledger_private.is_whole_number(v_span -> 'block_index', 0)
  then
    return 'block_index: not a whole number from 0 to 2147483647';
  end if;
  if v_span ? 'char_start'
    and not citeledger_private.is_whole_number(v_span -> 'char_start', 0)
  then
    return 'char_start: not a whole number from 0 to 2147483647';
  end if;
  if v_span ? 'char_end'
    and not citeledger_private.is_whole_number(v_span -> 'char_end', 0)
  then
    return 'char_end: not a whole number from 0 to 2147483647';
  end if;
  if v_span ? 'char_start' and not v_span ? 'char_end' then
    return 'char_end: missing, for there is a char_start';
  end if;
  if v_span ? 'char_end' and not v_span ? 'char_start' then
    return 'char_start: missing, for there is a char_end';
  end if;
  if v_span ? 'char_start'
    and (v_span -> 'char_end')::numeric <= (v_span -> 'char_start')::numeric
  then
    return 'char_end: not after char_start';
  end if;
  if not v_span ? 'quote' then
    return 'quote: missing';
  end if;
  if jsonb_typeof(v_span -> 'quote') <> 'string' then
    return 'quote: not a text';
  end if;
  if citeledger_private.is_blank(v_span ->> 'quote') then
    return 'quote: empty, or nothing in it can be seen';
  end if;
  return null;
end
$$;

create or replace function citeledger_private.to_span(
  p_span jsonb
)
returns citeledger_private.span
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  return row(
    (p_span ->> 'document_id')::uuid,
    (p_span ->> 'page_number')::numeric::integer,
    (p_span ->> 'block_index')::numeric::integer,
    (p_span ->> 'char_start')::numeric::integer,
    (p_span ->> 'char_end')::numeric::integer,
    p_span ->> 'quote'
  );
end
$$;

create or replace function citeledger_private.read_span(
  p_span jsonb
)
returns citeledger_private.span
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fault text := citeledger_private.span_fault(p_span);
begin
  if v_fault is not null then
    raise exception using
      errcode = '22023',
      message = 'the span is malformed',
      detail = format('%s.', v_fault),
      hint = 'A span is {"document_id": uuid, "page_number": from 1, "block_index": from 0, '
        '"char_start": from 0, "char_end": exclusive, "quote": text}; block_index and the two '
        'offsets may be left out.';
  end if;
  return citeledger_private.to_span(p_span);
end
$$;

comment on function citeledger_private.span_fault(jsonb) is
  'What is wrong with a span, as "key: problem" without any of its text; null when it is '
  'well-formed.';
comment on function citeledger_private.to_span(jsonb) is
  'The span that a well-formed p_span is; whoever calls it has asked span_fault.';
comment on function citeledger_private.read_span(jsonb) is
  'A well-formed span as a row. Errors: 22023 with the offending key in DETAIL.';

revoke all on function citeledger_private.span_fault(jsonb) from public;
revoke all on function citeledger_private.to_span(jsonb) from public;
revoke all on function citeledger_private.read_span(jsonb) from public;

reset role;

-- cite/plain_span

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.is_plain_span(jsonb);

reset role;

-- ledger/ledger_trace

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

reset role;

-- gate/finalize_turns

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.finalize_turns(
  p_message_ids uuid[]
)
returns integer
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_again uuid[];
  v_verdicts integer;
begin
  perform
  from citeledger.messages as m
  where m.firm_id = v_firm_id and m.id = any(p_message_ids)
  order by m.id
  for no key update;

  -- Read before the update, which settles the others through the trigger of messages.
  v_again := array(
    select m.id
    from citeledger.messages as m
    where m.firm_id = v_firm_id
      and m.id = any(p_message_ids)
      and m.role = 'assistant'
      and m.finalized_at is not null
    order by m.id
  );

  update citeledger.messages as m
  set finalized_at = clock_timestamp()
  where m.firm_id = v_firm_id
    and m.id = any(p_message_ids)
    and m.role = 'assistant'
    and m.finalized_at is null;

  perform citeledger_private.settle(v_firm_id, v_again);

  begin
    select count(*)::integer
    into v_verdicts
    from citeledger.work_product_fiduciary_gate as g
    where g.firm_id = v_firm_id and g.message_id = any(p_message_ids);
  exception
    when others then
      v_verdicts := 0;
  end;
  return v_verdicts;
end
$$;

comment on function citeledger.finalize_turns(uuid[]) is
  'finalize_turn for many turns at once, set-based; returns how many of them have a verdict now. '
  'Messages that are unknown or not the assistant''s are passed over, nulls and repeats do no '
  'harm. One turn whose step fails spoils no other: it is logged in finalize_failure and has no '
  'verdict. Locks the messages in id order until the transaction ends. For citeledger_app. Errors '
  'that pass: as for finalize_turn, and 55P03 or 40P01 while it waits for its locks.';

revoke all on function citeledger.finalize_turns(uuid[]) from public;
grant execute on function citeledger.finalize_turns(uuid[]) to citeledger_app;
grant execute on function citeledger.finalize_turns(uuid[]) to citeledger_admin;

reset role;

-- gate/finalize_turn

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.finalize_turn(
  p_message_id uuid
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
  v_role text;
  v_finalized_at timestamptz;
  v_lock_error text;
  v_entries_before bigint;
  v_entries_written bigint;
  v_gate jsonb;
  v_failures jsonb := '[]'::jsonb;
begin
  begin
    -- The table first, where waiting has an end: a guard that takes no row lock costs no multixact.
    if current_setting('lock_timeout') <> '0' then
      lock table citeledger.messages in row exclusive mode;
    end if;
  exception
    when lock_not_available or deadlock_detected then
      v_lock_error := sqlstate;
  end;

  if v_lock_error is null then
    -- Nearly always the message is free. Waiting for it in a guard would cost every turn a
    -- multixact: a lock of a subtransaction, then an update of its parent.
    select m.role, m.finalized_at
    into v_role, v_finalized_at
    from citeledger.messages as m
    where m.firm_id = v_firm_id and m.id = p_message_id
    for no key update skip locked;

    if not found then
      begin
        select m.role, m.finalized_at
        into v_role, v_finalized_at
        from citeledger.messages as m
        where m.firm_id = v_firm_id and m.id = p_message_id
        for no key update;
      exception
        when lock_not_available or deadlock_detected then
          v_lock_error := sqlstate;
      end;
    end if;
  end if;

  if v_lock_error is not null then
    perform citeledger_private.log_failure(v_firm_id, array[p_message_id], 'lock', v_lock_error);
    v_failures := jsonb_build_array(
      jsonb_build_object('stage', 'lock', 'sqlstate', v_lock_error)
    );
  end if;
  -- A message that is busy, not there, or not the assistant's.
  if v_role is distinct from 'assistant' then
    return jsonb_build_object(
      'message_id', p_message_id,
      'finalized', false,
      'entries_written', 0,
      'gate', null,
      'failures', v_failures
    );
  end if;

  -- What is only read for the report has guards too: a broken table must not break the turn.
  begin
    v_entries_before := citeledger_private.count_entries(v_firm_id, p_message_id);
  exception
    when others then
      v_entries_before := 0;
  end;

  if v_finalized_at is null then
    -- The trigger of messages does the work, as for everybody else who sets finalized_at.
    update citeledger.messages as m
    set finalized_at = clock_timestamp()
    where m.firm_id = v_firm_id and m.id = p_message_id;
  else
    perform citeledger_private.settle(v_firm_id, array[p_message_id]);
  end if;

  begin
    select r.entries - v_entries_before, r.gate, r.failures
    into v_entries_written, v_gate, v_failures
    from citeledger_private.finalize_report(v_firm_id, p_message_id) as r;
  exception
    when others then
      v_failures := jsonb_build_array(
        jsonb_build_object('stage', 'report', 'sqlstate', sqlstate)
      );
  end;

  return jsonb_build_object(
    'message_id', p_message_id,
    'finalized', true,
    'entries_written', coalesce(v_entries_written, 0),
    'gate', v_gate,
    'failures', v_failures
  );
end
$$;

comment on function citeledger.finalize_turn(uuid) is
  'Finalizes the turn p_message_id: sets finalized_at if it is null, assembles its ledger, records '
  'its verdict. Called again, it assembles and counts again. Returns {"message_id", "finalized", '
  '"entries_written", "gate", "failures"}: finalized is false for a message that is unknown, not '
  'the assistant''s, or busy; gate is the verdict''s row less firm_id, or null; failures lists '
  '{"stage", "sqlstate"}. It never raises because a step failed: the failure is logged in '
  'finalize_failure and warned about, an old verdict is withdrawn, and finalize_pending tries '
  'again. Under repeatable read or serializable no verdict is recorded (stage isolation). Locks '
  'the message until the transaction ends. For citeledger_app. Errors that pass: 57014 (cancel, '
  'timeouts), 40001 (run the transaction again), 55P03 while DDL holds messages itself, and what a '
  'deferred constraint raises at commit. Call it in a savepoint, or in a transaction of its own, '
  'where the turn must survive those.';

revoke all on function citeledger.finalize_turn(uuid) from public;
grant execute on function citeledger.finalize_turn(uuid) to citeledger_app;
grant execute on function citeledger.finalize_turn(uuid) to citeledger_admin;

reset role;

-- gate/message_triggers

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace trigger messages_finalize_updated
  after update on citeledger.messages
  referencing old table as old_rows new table as new_rows
  for each statement
  execute function citeledger_private.finalize_updated();

comment on trigger messages_finalize_updated on citeledger.messages is
  'No call site can forget to finalize: setting finalized_at is enough.';

reset role;

-- gate/source_triggers

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.source_inserted()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm record;
  v_outer text;
begin
  for v_firm in
    select
      n.firm_id,
      array_agg(distinct n.message_id) as message_ids,
      array_agg(n.id) as source_ids
    from new_rows as n
    group by n.firm_id
    order by n.firm_id
  loop
    v_outer := citeledger_private.enter_firm(v_firm.firm_id);
    perform citeledger_private.settle(
      v_firm.firm_id,
      citeledger_private.lock_turns(v_firm.firm_id, v_firm.message_ids),
      v_firm.source_ids
    );
    perform citeledger_private.leave_firm(v_outer);
  end loop;
  return null;
end
$$;

create or replace function citeledger_private.citation_updated()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm record;
  v_outer text;
  v_followers uuid[];
  v_assembled uuid[];
begin
  -- Only where the verification changed: a document that goes sets its citations' reference to
  -- null, and that must not touch a single turn.
  for v_firm in
    select
      n.firm_id,
      array_agg(distinct n.message_id) as message_ids,
      array_agg(n.id) as source_ids
    from new_rows as n
    join old_rows as o on o.firm_id = n.firm_id and o.id = n.id
    where (o.verified, o.verification_method, o.verification_confidence)
      is distinct from
      (n.verified, n.verification_method, n.verification_confidence)
    group by n.firm_id
    order by n.firm_id
  loop
    v_outer := citeledger_private.enter_firm(v_firm.firm_id);
    v_followers := citeledger_private.lock_turns(v_firm.firm_id, v_firm.message_ids);
    -- A turn that was assembled and nothing more has entries too: they follow at once, or the gate
    -- would count what its sources no longer say.
    v_assembled := array(
      select distinct e.message_id
      from citeledger.citation_ledger_entry as e
      where e.firm_id = v_firm.firm_id
        and e.message_id = any(v_firm.message_ids)
        and e.message_id <> all(v_followers)
    );
    if cardinality(v_assembled) > 0 then
      perform citeledger_private.assemble_set(v_firm.firm_id, v_assembled, v_firm.source_ids);
    end if;
    perform citeledger_private.settle(v_firm.firm_id, v_followers, v_firm.source_ids);
    perform citeledger_private.leave_firm(v_outer);
  end loop;
  return null;
end
$$;

comment on function citeledger_private.source_inserted() is
  'Trigger function: locks the turns of the inserted sources and lets ledger and verdict follow, '
  'where the turn is finalized or has a verdict; only the new sources are assembled.';
comment on function citeledger_private.citation_updated() is
  'Trigger function: where the verification of a citation changed, locks its turn and lets its '
  'ledger entry follow, and the verdict too if the turn is finalized or has one.';

revoke all on function citeledger_private.source_inserted() from public;
revoke all on function citeledger_private.citation_updated() from public;

reset role;

-- gate/settle

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.settle(
  p_firm_id uuid,
  p_message_ids uuid[],
  p_source_ids uuid[] default null
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_source_ids uuid[] := p_source_ids;
  v_stage text := 'assemble';
  v_sqlstate text;
  v_message_id uuid;
begin
  if cardinality(p_message_ids) = 0 then
    return;
  end if;

  -- Above read committed a statement does not see what others committed while the lock was awaited,
  -- so a verdict could be stale: none is recorded, and finalize_pending does it later.
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    -- What the session itself changed it sees: those entries must not say what is past.
    if cardinality(v_source_ids) > 0 then
      begin
        perform citeledger_private.assemble_set(p_firm_id, p_message_ids, v_source_ids);
      exception
        when serialization_failure then
          raise;
        when others or assert_failure then
          perform citeledger_private.log_failure(p_firm_id, p_message_ids, 'assemble', sqlstate);
      end;
    end if;
    perform citeledger_private.withdraw_gates(p_firm_id, p_message_ids, 'isolation', '25000');
    return;
  end if;

  -- Nearly always a turn is new and all is well: one statement. Whatever goes wrong with it, the
  -- steps below find out which of them it is.
  if v_source_ids is null then
    begin
      perform citeledger_private.clear_failures(p_firm_id, p_message_ids);
      if citeledger_private.settle_new(p_firm_id, p_message_ids) then
        return;
      end if;
    exception
      when serialization_failure then
        raise;
      when others or assert_failure then
        null;
    end;
  end if;

  -- Each step has a guard of its own. 40001 passes: only the caller can run its transaction again.
  -- A query cancel or a timeout (57014) is not caught by "others"; nor would a failed assertion be.
  begin
    -- Where an earlier attempt failed, more than the changed sources may be missing.
    -- Nested, so that a whole turn is assembled even where the gate's table is broken.
    if v_source_ids is not null then
      if (
        select count(*)
        from citeledger.work_product_fiduciary_gate as g
        where g.firm_id = p_firm_id
          and g.message_id = any(p_message_ids)
          and not exists (
            select
            from citeledger.finalize_failure as f
            where f.firm_id = p_firm_id and f.message_id = g.message_id
          )
      ) < cardinality(p_message_ids) then
        v_source_ids := null;
      end if;
    end if;
    perform citeledger_private.clear_failures(p_firm_id, p_message_ids);
    perform citeledger_private.assemble_set(p_firm_id, p_message_ids, v_source_ids);
  exception
    when serialization_failure then
      raise;
    when others or assert_failure then
      v_sqlstate := sqlstate;
  end;

  -- The fault may lie in single rows of the one turn: try each.
  if left(v_sqlstate, 2) in ('22', '23') and cardinality(p_message_ids) = 1 then
    v_sqlstate := null;
    begin
      perform citeledger_private.clear_failures(p_firm_id, p_message_ids);
      perform citeledger_private.assemble_rows(p_firm_id, p_message_ids[1], v_source_ids);
    exception
      when serialization_failure then
        raise;
      when others or assert_failure then
        v_sqlstate := sqlstate;
    end;
  end if;

  if v_sqlstate is null then
    v_stage := 'gate';
    begin
      perform citeledger_private.record_gates(p_firm_id, p_message_ids);
    exception
      when serialization_failure then
        raise;
      when others or assert_failure then
        v_sqlstate := sqlstate;
    end;
  end if;

  if v_sqlstate is null then
    return;
  end if;

  if cardinality(p_message_ids) = 1 then
    perform citeledger_private.withdraw_gates(p_firm_id, p_message_ids, v_stage, v_sqlstate);
  else
    -- One bad turn spoils no other.
    foreach v_message_id in array p_message_ids loop
      perform citeledger_private.settle(p_firm_id, array[v_message_id], p_source_ids);
    end loop;
  end if;
end
$$;

comment on function citeledger_private.settle(uuid, uuid[], uuid[]) is
  'Assembles the ledger of the given turns of the assistant, then records their verdicts, each '
  'step in its own guard; p_source_ids limits the assembly to those sources, null means all of '
  'them. When a step fails, the turn has no verdict, the failure is logged and warned about, and '
  'nothing is raised. The caller holds the lock of every turn and acts for p_firm_id. Errors that '
  'pass: 40001, 57014.';

revoke all on function citeledger_private.settle(uuid, uuid[], uuid[]) from public;

drop function citeledger_private.all_were_settled(uuid, uuid[]);

reset role;

-- gate/settle_new

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- It returns something else than before.
drop function citeledger_private.settle_new(uuid, uuid[]);

create function citeledger_private.settle_new(
  p_firm_id uuid,
  p_message_ids uuid[]
)
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_unrecognized text;
begin
  -- The array through a sub-select, here and below: its length would else make each plan look worth
  -- making anew.
  if exists (
    select
    from unnest((select p_message_ids)) as t (id)
    where exists (
        select
        from citeledger.work_product_fiduciary_gate as g
        where g.firm_id = p_firm_id and g.message_id = t.id
        offset 0
      )
      or exists (
        select
        from citeledger.citation_ledger_entry as e
        where e.firm_id = p_firm_id and e.message_id = t.id
        offset 0
      )
  ) then
    return false;
  end if;

  -- The caller holds the messages, so nobody else writes what was not there: no conflict to look
  -- for in every unique key. What is counted is what was written, so nothing is read again; and as
  -- every source has just got its entry, no citation is without one.
  with turn as materialized (
    select m.id, m.chat_id, c.project_id
    from unnest((select p_message_ids)) as t (id)
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
  ),
  written as (
    insert into citeledger.citation_ledger_entry (
      firm_id, project_id, chat_id, message_id,
      source_kind, message_citation_id, message_caselaw_citation_id, message_tool_source_id,
      verification_status, confidence, provider, retrieved_at
    )
    select
      p_firm_id, t.project_id, t.chat_id, t.id,
      d.source_kind, d.message_citation_id, d.message_caselaw_citation_id, d.message_tool_source_id,
      d.verification_status, d.confidence, d.provider, d.retrieved_at
    from turn as t
    -- What entry_values says, word for word: called, it would cost a fifth of all this.
    cross join lateral (
      select
        'kb_document' as source_kind,
        s.id as message_citation_id,
        null::uuid as message_caselaw_citation_id,
        null::uuid as message_tool_source_id,
        case when s.verified then s.verification_method else 'unverified' end
          as verification_status,
        case when s.verified then s.verification_confidence::double precision end as confidence,
        null::text as provider,
        null::timestamptz as retrieved_at
      from citeledger.message_citations as s
      where s.firm_id = p_firm_id and s.message_id = t.id
      union all
      select
        'caselaw', null, s.id, null,
        case when s.verified then s.verification_method else 'unverified' end,
        case when s.verified then s.verification_confidence end,
        'courtlistener',
        s.created_at
      from citeledger.message_caselaw_citations as s
      where s.firm_id = p_firm_id and s.message_id = t.id
      union all
      select s.source_kind, null, null, s.id, 'provenance', null, s.provider, s.created_at
      from citeledger.message_tool_sources as s
      where s.firm_id = p_firm_id and s.message_id = t.id
      offset 0
    ) as d
    returning message_id, verification_status, confidence
  ),
  status as materialized (
    select
      w.message_id,
      w.verification_status,
      citeledger.verification_tier(w.verification_status) as tier,
      count(*) as entries,
      sum(w.confidence::numeric) as confidence,
      count(w.confidence) as confidences
    from written as w
    group by w.message_id, w.verification_status
  ),
  counted as (
    select
      t.id as message_id,
      t.chat_id,
      t.project_id,
      coalesce(sum(s.entries) filter (where s.tier = 'pass'), 0)::integer as pass_count,
      coalesce(sum(s.entries) filter (where s.tier = 'supported'), 0)::integer as supported_count,
      coalesce(sum(s.entries) filter (where s.tier = 'fail'), 0)::integer as fail_count,
      coalesce(sum(s.entries) filter (where s.tier is null), 0)::integer as unrecognized_count,
      (sum(s.confidence) filter (where s.tier in ('pass', 'supported', 'fail'))
        / nullif(sum(s.confidences) filter (where s.tier in ('pass', 'supported', 'fail')), 0)
      )::double precision as confidence
    from turn as t
    left join status as s on s.message_id = t.id
    group by t.id, t.chat_id, t.project_id
  ),
  recorded as (
    insert into citeledger.work_product_fiduciary_gate (
      firm_id, message_id, chat_id, project_id,
      gate_status,
      pass_count, supported_count, fail_count, total_assertions, unrecognized_count,
      confidence
    )
    select
      p_firm_id, c.message_id, c.chat_id, c.project_id,
      case
        when c.fail_count > 0 or c.unrecognized_count > 0 then 'flagged'
        when c.supported_count > 0 then 'supported_only'
        else 'fiduciary_grade'
      end,
      c.pass_count, c.supported_count, c.fail_count,
      c.pass_count + c.supported_count + c.fail_count,
      c.unrecognized_count,
      c.confidence
    from counted as c
    returning message_id
  )
  select string_agg(distinct s.verification_status, ', ')
  into v_unrecognized
  from status as s
  where s.tier is null;

  if v_unrecognized is not null then
    perform citeledger_private.warn_of_unrecognized(v_unrecognized);
  end if;
  return true;
end
$$;

comment on function citeledger_private.settle_new(uuid, uuid[]) is
  'Assembles the ledger and records the verdicts of turns of the assistant that have neither an '
  'entry nor a verdict yet, in one statement; what it writes is what assemble_set and record_gates '
  'would. False, and nothing is done, where a turn has something already. The caller holds the '
  'lock of every turn, acts for p_firm_id, and is under read committed: above it others may have '
  'written what the snapshot does not show. Raises the WARNING of warn_of_unrecognized. Errors: '
  'those of the constraints.';

revoke all on function citeledger_private.settle_new(uuid, uuid[]) from public;

reset role;

-- gate/settle_turn

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.settle_turn(uuid, uuid);

reset role;

-- ledger/assemble_set

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.assemble_set(
  p_firm_id uuid,
  p_message_ids uuid[],
  p_source_ids uuid[] default null
)
returns integer
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_due integer;
  v_written integer;
  v_stale_ids uuid[];
  v_kinds text[];
  v_statuses text[];
  v_confidences double precision[];
  v_providers text[];
  v_retrieved timestamptz[];
begin
  with due as materialized (
    select * from citeledger_private.entry_values(p_firm_id, p_message_ids, p_source_ids)
  ),
  written as (
    insert into citeledger.citation_ledger_entry (
      firm_id, project_id, chat_id, message_id,
      source_kind, message_citation_id, message_caselaw_citation_id, message_tool_source_id,
      verification_status, confidence, provider, retrieved_at
    )
    select
      p_firm_id, d.project_id, d.chat_id, d.message_id,
      d.source_kind, d.message_citation_id, d.message_caselaw_citation_id, d.message_tool_source_id,
      d.verification_status, d.confidence, d.provider, d.retrieved_at
    from due as d
    on conflict do nothing
    returning id
  )
  select (select count(*) from due)::integer, (select count(*) from written)::integer
  into v_due, v_written;

  -- All of them are new: nothing can be out of date.
  if v_written = v_due then
    return v_written;
  end if;

  -- What no longer mirrors its source. One indexed equality for each source, whatever the planner
  -- believes of tables without statistics: "offset 0" keeps it from turning this around. The
  -- replaced values are kept by the ledger's own trigger.
  select
    array_agg(e.id),
    array_agg(d.source_kind),
    array_agg(d.verification_status),
    array_agg(d.confidence),
    array_agg(d.provider),
    array_agg(d.retrieved_at)
  into v_stale_ids, v_kinds, v_statuses, v_confidences, v_providers, v_retrieved
  from citeledger_private.entry_values(p_firm_id, p_message_ids, p_source_ids) as d
  cross join lateral (
    select e.*
    from citeledger.citation_ledger_entry as e
    where e.firm_id = p_firm_id and e.message_citation_id = d.message_citation_id
    union all
    select e.*
    from citeledger.citation_ledger_entry as e
    where e.firm_id = p_firm_id and e.message_caselaw_citation_id = d.message_caselaw_citation_id
    union all
    select e.*
    from citeledger.citation_ledger_entry as e
    where e.firm_id = p_firm_id and e.message_tool_source_id = d.message_tool_source_id
    offset 0
  ) as e
  where (e.source_kind, e.verification_status, e.confidence, e.provider, e.retrieved_at)
    is distinct from
    (d.source_kind, d.verification_status, d.confidence, d.provider, d.retrieved_at);

  if v_stale_ids is not null then
    update citeledger.citation_ledger_entry as e
    set
      source_kind = d.source_kind,
      verification_status = d.verification_status,
      confidence = d.confidence,
      provider = d.provider,
      retrieved_at = d.retrieved_at
    from unnest(
      v_stale_ids, v_kinds, v_statuses, v_confidences, v_providers, v_retrieved
    ) as d (id, source_kind, verification_status, confidence, provider, retrieved_at)
    where e.firm_id = p_firm_id and e.id = d.id;
  end if;

  return v_written;
end
$$;

comment on function citeledger_private.assemble_set(uuid, uuid[], uuid[]) is
  'Writes the missing ledger entries of the given turns and refreshes those that no longer mirror '
  'their source, all at once; returns how many are new. p_source_ids limits it to those sources; '
  'null means all of them. The caller holds the lock of every turn.';

revoke all on function citeledger_private.assemble_set(uuid, uuid[], uuid[]) from public;

reset role;

-- ledger/entry_id

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.entry_id(uuid, uuid);

reset role;

-- gate/record_gates

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.record_gates(
  p_firm_id uuid,
  p_message_ids uuid[]
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_unrecognized text;
begin
  with counted as materialized (
    select * from citeledger_private.recount(p_firm_id, p_message_ids)
  ),
  recorded as (
    insert into citeledger.work_product_fiduciary_gate as g (
      firm_id, message_id, chat_id, project_id,
      gate_status,
      pass_count, supported_count, fail_count, total_assertions, unrecognized_count,
      confidence, computed_at
    )
    select
      p_firm_id, c.message_id, c.chat_id, c.project_id,
      case
        when c.fail_count > 0 or c.unrecognized_count > 0 then 'flagged'
        when c.supported_count > 0 then 'supported_only'
        else 'fiduciary_grade'
      end,
      c.pass_count, c.supported_count, c.fail_count,
      c.pass_count + c.supported_count + c.fail_count,
      c.unrecognized_count,
      c.confidence, clock_timestamp()
    from counted as c
    on conflict (firm_id, message_id) do update
    set
      project_id = excluded.project_id,
      gate_status = excluded.gate_status,
      pass_count = excluded.pass_count,
      supported_count = excluded.supported_count,
      fail_count = excluded.fail_count,
      total_assertions = excluded.total_assertions,
      unrecognized_count = excluded.unrecognized_count,
      confidence = excluded.confidence,
      computed_at = excluded.computed_at
    where (
        g.project_id, g.gate_status, g.pass_count, g.supported_count, g.fail_count,
        g.total_assertions, g.unrecognized_count, g.confidence
      ) is distinct from (
        excluded.project_id, excluded.gate_status, excluded.pass_count, excluded.supported_count,
        excluded.fail_count, excluded.total_assertions, excluded.unrecognized_count,
        excluded.confidence
      )
    returning g.message_id
  )
  select string_agg(distinct s.status, ', ')
  into v_unrecognized
  from counted as c
  cross join unnest(c.unrecognized_statuses) as s (status);

  if v_unrecognized is not null then
    perform citeledger_private.warn_of_unrecognized(v_unrecognized);
  end if;
end
$$;

comment on function citeledger_private.record_gates(uuid, uuid[]) is
  'Computes and stores the verdict of each of the given turns, in one statement; an unchanged '
  'verdict is not written. Warns once, naming the distinct unrecognised statuses. The caller holds '
  'the lock of every turn.';

revoke all on function citeledger_private.record_gates(uuid, uuid[]) from public;

reset role;

-- gate/gate_status

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.gate_status(integer, integer, integer);

reset role;

-- gate/recount

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.recount(
  p_firm_id uuid,
  p_message_ids uuid[]
)
returns table (
  message_id uuid,
  chat_id uuid,
  project_id uuid,
  pass_count integer,
  supported_count integer,
  fail_count integer,
  unrecognized_count integer,
  confidence double precision,
  unrecognized_statuses text[]
)
language plpgsql
stable
parallel safe
security invoker
rows 1
set search_path = pg_catalog, pg_temp
-- An array of one looks cheaper than the generic plan's ten, so each call would be planned anew.
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  select
    m.id,
    m.chat_id,
    c.project_id,
    counted.pass_count,
    counted.supported_count,
    -- A citation without an entry resolves to nothing. An entry's citation is of the same turn and
    -- has no other entry, so the difference of the counts is exactly those.
    (counted.fail_count
      + (
        select count(*)
        from citeledger.message_citations as s
        where s.firm_id = p_firm_id and s.message_id = m.id
      )
      + (
        select count(*)
        from citeledger.message_caselaw_citations as s
        where s.firm_id = p_firm_id and s.message_id = m.id
      )
      - counted.citation_entries)::integer,
    counted.unrecognized_count,
    counted.confidence,
    counted.unrecognized_statuses
  -- Laterally, an index look-up for each turn, whatever the planner knows of the tables.
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
  cross join lateral (
    select
      coalesce(sum(g.entries) filter (where g.tier = 'pass'), 0)::integer as pass_count,
      coalesce(sum(g.entries) filter (where g.tier = 'supported'), 0)::integer as supported_count,
      coalesce(sum(g.entries) filter (where g.tier = 'fail'), 0)::integer as fail_count,
      coalesce(sum(g.entries) filter (where g.tier is null), 0)::integer as unrecognized_count,
      coalesce(sum(g.citation_entries), 0) as citation_entries,
      -- As numeric: a mean over double precision depends on the order of the rows.
      (sum(g.confidence) filter (where g.tier in ('pass', 'supported', 'fail'))
        / nullif(sum(g.confidences) filter (where g.tier in ('pass', 'supported', 'fail')), 0)
      )::double precision as confidence,
      array_agg(g.verification_status order by g.verification_status collate "C")
        filter (where g.tier is null) as unrecognized_statuses
    from (
      select
        v.verification_status,
        citeledger.verification_tier(v.verification_status) as tier,
        sum(v.entries) as entries,
        sum(v.citation_entries) as citation_entries,
        sum(v.confidence::numeric * v.entries) as confidence,
        coalesce(sum(v.entries) filter (where v.confidence is not null), 0) as confidences
      from (
        -- A turn has few different confidences: each becomes a numeric once.
        select
          e.verification_status,
          e.confidence,
          count(*) as entries,
          count(*) filter (where e.message_tool_source_id is null) as citation_entries
        from citeledger.citation_ledger_entry as e
        where e.firm_id = p_firm_id and e.message_id = m.id
        group by e.verification_status, e.confidence
      ) as v
      group by v.verification_status
    ) as g
  ) as counted;
end
$$;

comment on function citeledger_private.recount(uuid, uuid[]) is
  'What the ledger of the given turns says now: one row for each message that is the assistant''s. '
  'fail_count includes the citations that have no entry. unrecognized_statuses: the distinct '
  'statuses that verification_tier does not know, or null.';

revoke all on function citeledger_private.recount(uuid, uuid[]) from public;

reset role;

-- gate/withdraw_gates

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.log_failure(
  p_firm_id uuid,
  p_message_ids uuid[],
  p_stage text,
  p_sqlstate text
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  -- A log that cannot be written must not break the turn: the warning still says it.
  begin
    delete from citeledger.finalize_failure as f
    where f.firm_id = p_firm_id and f.message_id = any(p_message_ids) and f.stage = p_stage;
    insert into citeledger.finalize_failure (firm_id, message_id, stage, sqlstate)
    select p_firm_id, m.id, p_stage, p_sqlstate
    from unnest(p_message_ids) as m (id)
    on conflict do nothing;
  exception
    when serialization_failure then
      raise;
    when others then
      raise warning using
        message = 'a failure of finalize could not be logged',
        detail = format('Writing the log failed with SQLSTATE %s.', sqlstate),
        hint = 'See whether citeledger.finalize_failure is whole.';
  end;
  raise warning using
    message = format('a turn could not be finalized: %s failed', p_stage),
    detail = format(
      'Stage %s failed with SQLSTATE %s for %s turn(s).',
      p_stage, p_sqlstate, cardinality(p_message_ids)
    ),
    hint = 'See citeledger.finalize_failure; citeledger.finalize_pending tries again.';
end
$$;

create or replace function citeledger_private.withdraw_gates(
  p_firm_id uuid,
  p_message_ids uuid[],
  p_stage text,
  p_sqlstate text
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stale boolean := false;
begin
  begin
    if p_stage = 'isolation' then
      perform citeledger_private.expose_hidden_gates(p_firm_id, p_message_ids);
    end if;
    delete from citeledger.work_product_fiduciary_gate as g
    where g.firm_id = p_firm_id and g.message_id = any(p_message_ids);
  exception
    when serialization_failure then
      raise;
    when others then
      perform citeledger_private.log_failure(p_firm_id, p_message_ids, 'withdraw', sqlstate);
      -- No verdict can be read from a broken table. But one that can be read, and is stale, must
      -- not be committed: then the turn fails rather than the promise.
      begin
        v_stale := exists (
          select
          from citeledger.work_product_fiduciary_gate as g
          where g.firm_id = p_firm_id and g.message_id = any(p_message_ids)
        );
      exception
        when others then
          v_stale := false;
      end;
      if v_stale then
        raise;
      end if;
  end;
  perform citeledger_private.log_failure(p_firm_id, p_message_ids, p_stage, p_sqlstate);
end
$$;

comment on function citeledger_private.log_failure(uuid, uuid[], text, text) is
  'Records in finalize_failure that p_stage failed with p_sqlstate for the given turns, in place '
  'of an earlier failure of that stage, and warns. Never raises, except for 40001.';
comment on function citeledger_private.withdraw_gates(uuid, uuid[], text, text) is
  'Removes the verdicts of turns whose stage p_stage failed with p_sqlstate, logs and warns: no '
  'ledger means no verdict, never an old one. Raises only when an old verdict can be read but not '
  'removed.';

revoke all on function citeledger_private.log_failure(uuid, uuid[], text, text) from public;
revoke all on function citeledger_private.withdraw_gates(uuid, uuid[], text, text) from public;

reset role;

-- gate/lock_turns

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.lock_turns(
  p_firm_id uuid,
  p_message_ids uuid[]
)
returns uuid[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
-- An array of one looks cheaper than the generic plan's ten, so each call would be planned anew.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_followers uuid[];
begin
  -- NO KEY UPDATE lets foreign keys to the message through: two sessions that both inserted sources
  -- and both finalize would deadlock under FOR UPDATE. In id order, whoever asks.
  perform
  from citeledger.messages as m
  where m.firm_id = p_firm_id and m.id = any(p_message_ids)
  order by m.id
  for no key update;

  begin
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
      perform citeledger_private.expose_hidden_gates(p_firm_id, p_message_ids);
    end if;

    -- A new statement, so that it sees what was committed while this one waited for the locks.
    v_followers := array(
      select m.id
      from citeledger.messages as m
      where m.firm_id = p_firm_id
        and m.id = any(p_message_ids)
        and m.role = 'assistant'
        and (
          m.finalized_at is not null
          or exists (
            select
            from citeledger.work_product_fiduciary_gate as g
            where g.firm_id = p_firm_id and g.message_id = m.id
          )
        )
      order by m.id
    );
  exception
    -- A verdict that nobody can read breaks no turn: those that should have one go on to fail in
    -- the guard of their step, where it is logged. One that cannot be read only now would be left
    -- stale: then the statement that changes a source fails.
    when undefined_table or undefined_column then
      v_followers := array(
        select m.id
        from citeledger.messages as m
        where m.firm_id = p_firm_id
          and m.id = any(p_message_ids)
          and m.role = 'assistant'
          and m.finalized_at is not null
        order by m.id
      );
  end;
  return v_followers;
end
$$;

comment on function citeledger_private.lock_turns(uuid, uuid[]) is
  'Locks the messages FOR NO KEY UPDATE in id order until the transaction ends: the one lock that '
  'every writer of a turn takes before it reads the turn''s state. Returns, in id order, those '
  'whose verdict must follow their sources: the assistant''s messages that are finalized or have a '
  'verdict.';

revoke all on function citeledger_private.lock_turns(uuid, uuid[]) from public;

reset role;

-- gate/verification_tier

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.verification_tier(
  p_status text
)
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  return case p_status collate "C"
    when 'exact_match' then 'pass'
    when 'tolerant_match' then 'pass'
    when 'paraphrase_judge' then 'supported'
    when 'ensemble_strict' then 'supported'
    when 'ensemble_majority' then 'supported'
    when 'unverified' then 'fail'
    when 'failed' then 'fail'
    when 'provenance' then 'provenance'
  end;
end
$$;

comment on function citeledger.verification_tier(text) is
  'The tier of a verification status: pass (exact_match, tolerant_match), supported '
  '(paraphrase_judge, ensemble_strict, ensemble_majority), fail (unverified, failed) or '
  'provenance. Null for any other status, compared exactly: no case is folded and no blank '
  'trimmed.';

revoke all on function citeledger.verification_tier(text) from public;
grant execute on function citeledger.verification_tier(text) to citeledger_reader;
grant execute on function citeledger.verification_tier(text) to citeledger_app;
grant execute on function citeledger.verification_tier(text) to citeledger_admin;

reset role;

-- tenancy/walls

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.is_behind_wall(
  p_firm_id uuid,
  p_project_id uuid
)
returns boolean
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (
      select
      from citeledger.project_members as m
      where m.firm_id = p_firm_id and m.project_id = p_project_id
    )
    and not exists (
      select
      from citeledger.project_members as m
      where m.firm_id = p_firm_id
        and m.project_id = p_project_id
        and m.user_id = citeledger.current_user_id()
    );
end
$$;

comment on function citeledger_private.is_behind_wall(uuid, uuid) is
  'Whether the matter p_project_id has members and the person of the context is none of them. '
  'Security definer: the members themselves are not for the querying role to read.';

revoke all on function citeledger_private.is_behind_wall(uuid, uuid) from public;
grant execute on function citeledger_private.is_behind_wall(uuid, uuid) to citeledger_admin;

reset role;

-- tenancy/set_context

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.set_context(
  p_firm_id uuid,
  p_user_id uuid default null,
  p_permissions text[] default '{}'
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_permissions text[] := coalesce(p_permissions, '{}');
begin
  -- Behind PostgREST the claims are the caller's identity; our settings would win over them.
  if current_setting('request.jwt.claims', true) <> '' then
    raise exception using
      errcode = '42501',
      message = 'the context comes from request.jwt.claims and cannot be set',
      detail = 'request.jwt.claims is set in this session.',
      hint = 'Put firm_id, sub and permissions into the claims instead.';
  end if;

  if array_ndims(v_permissions) > 1
    or exists (
      select
      from unnest(v_permissions) as p (permission)
      where p.permission is null or p.permission !~ '^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$'
    )
  then
    raise exception using
      errcode = '22023',
      message = 'p_permissions is not a list of permission names',
      detail = 'A permission is a letter or digit followed by at most 63 letters, digits or ._:- .',
      hint = 'Pass for example array[''matters:read''].';
  end if;

  -- SET LOCAL rather than set_config(): the settings end with the transaction either way, but only
  -- the statement is forwarded by a distributed database to its workers.
  execute format('set local citeledger.firm_id = %L', coalesce(p_firm_id::text, ''));
  execute format('set local citeledger.user_id = %L', coalesce(p_user_id::text, ''));
  execute format('set local citeledger.permissions = %L', v_permissions::text);
end
$$;

comment on function citeledger.set_context(uuid, uuid, text[]) is
  'Sets firm, person and permissions for the rest of the transaction, never longer. A null firm '
  'clears the context: no rows, no permission. Whoever may run SQL as an application role may set '
  'any context: the role is the trust boundary, the context is what it acts for. Settings written: '
  'citeledger.firm_id, citeledger.user_id, citeledger.permissions. Errors: 42501 while '
  'request.jwt.claims is set, so that a caller behind PostgREST cannot become another firm; 22023 '
  'for a permission that is null or not a name.';

revoke all on function citeledger.set_context(uuid, uuid, text[]) from public;
grant execute on function citeledger.set_context(uuid, uuid, text[]) to citeledger_reader;
grant execute on function citeledger.set_context(uuid, uuid, text[]) to citeledger_app;
grant execute on function citeledger.set_context(uuid, uuid, text[]) to citeledger_admin;

reset role;

-- tenancy/has_permission

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.has_permission(
  p_permission text
)
returns boolean
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm text := current_setting('citeledger.firm_id', true);
  v_setting text;
  v_claims jsonb;
begin
  -- Without a firm there is nothing that a permission could be for.
  if p_permission is null or citeledger.current_firm_id() is null then
    return false;
  end if;

  if v_firm is not null and v_firm <> '' then
    v_setting := current_setting('citeledger.permissions', true);
    -- Only the plain form of a text[] literal counts; anything else grants nothing. Splitting it by
    -- hand cannot fail, a cast could.
    if v_setting is null
      or v_setting !~ (
        '^[{](?:[A-Za-z0-9._:-]+|"[A-Za-z0-9._:-]+")'
        || '(?:,(?:[A-Za-z0-9._:-]+|"[A-Za-z0-9._:-]+"))*[}]$'
      )
    then
      return false;
    end if;
    return p_permission = any(
      string_to_array(replace(btrim(v_setting, '{}'), '"', ''), ',')
    );
  end if;

  v_claims := current_setting('request.jwt.claims', true)::jsonb -> 'permissions';
  if jsonb_typeof(v_claims) is distinct from 'array' then
    return false;
  end if;
  return v_claims ? p_permission;
end
$$;

comment on function citeledger.has_permission(text) is
  'Whether the current context holds the permission p_permission, compared exactly. False without '
  'a firm, for null, and for settings or claims that are malformed. Source: the setting '
  'citeledger.permissions (a text[] literal) when citeledger.firm_id is set, else the array '
  'permissions in request.jwt.claims. Errors: 22P02 when the claims are consulted and are no JSON.';

revoke all on function citeledger.has_permission(text) from public;
grant execute on function citeledger.has_permission(text) to citeledger_reader;
grant execute on function citeledger.has_permission(text) to citeledger_app;
grant execute on function citeledger.has_permission(text) to citeledger_admin;

reset role;

-- tenancy/current_user_id

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.current_user_id()
returns uuid
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm text := current_setting('citeledger.firm_id', true);
  v_setting text;
  v_claims text;
begin
  -- Which of the two sources holds is decided by the firm alone, so that they are never mixed.
  if v_firm is not null and v_firm <> '' then
    v_setting := current_setting('citeledger.user_id', true);
  else
    v_claims := current_setting('request.jwt.claims', true);
    if v_claims is null or v_claims = '' then
      return null;
    end if;
    v_setting := v_claims::jsonb ->> 'sub';
  end if;
  -- Dashes in their places and else nothing but digits, as in current_firm_id.
  if v_setting like '________-____-____-____-____________'
    and translate(v_setting, '0123456789abcdefABCDEF', '') = '----'
  then
    return v_setting::uuid;
  end if;
  return null;
end
$$;

comment on function citeledger.current_user_id() is
  'The person of the current context, or null when there is none; decides which walled matters are '
  'visible. Source: the setting citeledger.user_id when citeledger.firm_id is set, else sub of the '
  'JSON object in request.jwt.claims; never a mix of the two. A malformed uuid is nobody. Errors: '
  '22P02 when the claims are consulted and are no JSON.';

revoke all on function citeledger.current_user_id() from public;
grant execute on function citeledger.current_user_id() to citeledger_reader;
grant execute on function citeledger.current_user_id() to citeledger_app;
grant execute on function citeledger.current_user_id() to citeledger_admin;

reset role;

-- tenancy/current_firm_id

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.current_firm_id()
returns uuid
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_setting text := current_setting('citeledger.firm_id', true);
  v_claims text;
begin
  -- SET LOCAL leaves '' behind when its transaction ends, so '' means "not set", like null.
  if v_setting is null or v_setting = '' then
    v_claims := current_setting('request.jwt.claims', true);
    if v_claims is null or v_claims = '' then
      return null;
    end if;
    v_setting := v_claims::jsonb ->> 'firm_id';
  end if;
  -- The form is looked at before the cast: an exception block would rule out parallel plans.
  -- Dashes in their places and else nothing but digits: twice as fast as a regular expression, and
  -- row security calls this for every table of every statement.
  if v_setting like '________-____-____-____-____________'
    and translate(v_setting, '0123456789abcdefABCDEF', '') = '----'
  then
    return v_setting::uuid;
  end if;
  return null;
end
$$;

comment on function citeledger.current_firm_id() is
  'The firm (tenant) of the current context, or null when there is none. Source: the setting '
  'citeledger.firm_id (see set_context); only when that is unset or empty, firm_id of the JSON '
  'object in request.jwt.claims. A malformed uuid is no context, and a malformed setting does not '
  'fall back to the claims. Errors: 22P02 when the claims are consulted and are no JSON.';

revoke all on function citeledger.current_firm_id() from public;
grant execute on function citeledger.current_firm_id() to citeledger_app;
grant execute on function citeledger.current_firm_id() to citeledger_admin;

reset role;

-- ops/metadata_only_violations

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- As it was in 0.1.0.
create or replace function citeledger.metadata_only_violations()
returns table (
  table_name text,
  column_name text,
  reason text
)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
-- What is compared must not depend on how the session has names quoted.
set quote_all_identifiers = off
as $$
begin
  return query
  select found.table_name, found.column_name, found.reason
  from (
    select
      c.relname::text as table_name,
      a.attname::text as column_name,
      case
        when a.attname ~ '(content|text|quote|passage|excerpt|snippet|summary|abstract)'
          or a.attname ~ '(body|title|subject|payload|note|comment|reasoning|message)$'
          then 'its name speaks of content'
        when a.atttypid in (
            'uuid'::regtype, 'boolean'::regtype, 'smallint'::regtype, 'integer'::regtype,
            'bigint'::regtype, 'double precision'::regtype, 'numeric'::regtype,
            'date'::regtype, 'timestamptz'::regtype
          )
          then null
        when a.atttypid <> 'text'::regtype
          then format('its type %s could hold content', format_type(a.atttypid, a.atttypmod))
        when not exists (
            select
            from pg_constraint as k
            where k.conrelid = c.oid
              and k.contype = 'c'
              and k.convalidated
              and k.conkey = array[a.attnum]
              -- A label, a name, a SQLSTATE or a DOI, by exactly this check.
              and pg_get_expr(k.conbin, k.conrelid) in (
                format('(%I ~ %L::text)', a.attname, '^[a-z][a-z0-9_]{0,31}$'),
                format('(%I ~ %L::text)', a.attname, '^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$'),
                format('(%I ~ %L::text)', a.attname, '^[0-9A-Z]{5}$'),
                format('(citeledger.normalize_doi(%I) IS NOT NULL)', a.attname)
              )
          )
          then 'it is text, and no check makes it a label, a name, a SQLSTATE or a DOI'
      end as reason
    from pg_class as c
    join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where c.relnamespace = 'citeledger'::regnamespace
      and c.relname in (
        'citation_ledger_entry', 'citation_ledger_entry_revision', 'finalize_failure',
        'work_product_fiduciary_gate', 'document_citations'
      )
  ) as found
  where found.reason is not null
  order by found.table_name, found.column_name;
end
$$;

comment on function citeledger.metadata_only_violations() is
  'The columns of the metadata-only tables (ledger, revisions, gate, finalize failures, edges) '
  'that could hold content, with the reason: a name that speaks of content, a type that could hold '
  'it, or text that no validated CHECK makes a label, a name, a SQLSTATE or a DOI. No row on a '
  'healthy database. Source: the system catalogs. For citeledger_reader.';

revoke all on function citeledger.metadata_only_violations() from public;
grant execute on function citeledger.metadata_only_violations() to citeledger_reader;
grant execute on function citeledger.metadata_only_violations() to citeledger_app;
grant execute on function citeledger.metadata_only_violations() to citeledger_admin;

reset role;

-- graph/edge_doi_valid

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- Nothing forgets that a constraint was found to hold but dropping it. The DOIs stay as they are:
-- the lists have them as printed, and the next resolve_references gives them back to the edges.
alter table citeledger.document_citations drop constraint document_citations_cited_doi_is_short;

alter table citeledger.document_citations
  add constraint document_citations_cited_doi_is_short check (
    coalesce(
      octet_length(cited_doi) <= octet_length(citeledger.normalize_doi(cited_doi)) + 64, false
    )
  ) not valid;

comment on constraint document_citations_cited_doi_is_short on citeledger.document_citations is
  'At most 64 bytes longer than the key of the DOI: what surrounds a DOI is no content.';

reset role;

-- graph/edge_doi_check

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

alter table citeledger.document_citations drop constraint document_citations_cited_doi_is_short;

reset role;

-- graph/reconcile_edges

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

reset role;

-- graph/edge_doi

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.edge_doi(text);

reset role;

-- ops/metadata_only_violations@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.metadata_only_violations();

reset role;

-- ops/check_integrity

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.check_integrity();

reset role;

-- ops/version@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.version();

reset role;

-- graph/graph_gc

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.graph_gc(boolean);

reset role;

-- graph/corpus_delete

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.corpus_delete(uuid[]);

reset role;

-- graph/graph_stage

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.graph_stage(text[], integer, boolean, jsonb, integer);
drop function citeledger_private.documents_in_scope(uuid, uuid[], jsonb);
drop function citeledger_private.scope_fault(jsonb);

reset role;

-- graph/kg_relationships

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.kg_relationships;

reset role;

-- graph/kg_entity_mentions

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.kg_entity_mentions;

reset role;

-- graph/kg_entities

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.kg_entities;

reset role;

-- graph/kg_relation_types

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.kg_relation_types;

reset role;

-- graph/chunks

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.chunks;

reset role;

-- graph/walk_citations@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.walk_citations(uuid[], integer, text);

reset role;

-- graph/get_citations@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.get_citations(uuid);
drop function citeledger_private.visible_documents(uuid, uuid[]);

reset role;

-- graph/document_triggers@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop trigger documents_left on citeledger.documents;
drop trigger documents_changed on citeledger.documents;
drop trigger documents_arrived on citeledger.documents;
drop trigger projects_before_delete on citeledger.projects;
drop trigger documents_before_delete on citeledger.documents;
drop trigger documents_before_update on citeledger.documents;
drop trigger documents_before_insert on citeledger.documents;
drop function citeledger_private.documents_left();
drop function citeledger_private.documents_changed();
drop function citeledger_private.documents_arrived();

reset role;

-- graph/record_crossref_work

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.record_crossref_work(uuid, jsonb);

reset role;

-- graph/record_references@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.record_references(uuid, text[], text);

reset role;

-- graph/resolve_references

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.resolve_references(boolean);

reset role;

-- graph/reconcile_edges@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.reconcile_edges(uuid, uuid[], text[], text, boolean);
drop function citeledger_private.judged_references(uuid, uuid[], text[]);
drop type citeledger_private.reference_fate;

reset role;

-- graph/document_citations

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.document_citations;

reset role;

-- graph/document_references

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.document_references;

reset role;

-- cite/suggest_spans

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.suggest_spans(uuid, jsonb, integer);
drop function citeledger_private.occurrences(text, text);

reset role;

-- cite/read_pages

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.read_pages(uuid, uuid, integer);

reset role;

-- cite/recheck_document

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.recheck_document(uuid);

reset role;

-- cite/cite_ledger_entry

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.cite_ledger_entry(uuid);

reset role;

-- cite/cite_many@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.cite_many(uuid, jsonb);

reset role;

-- cite/cite@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.cite(uuid, jsonb);
drop function citeledger_private.cite_resolution(text, citeledger_private.span, text);

reset role;

-- cite/record_in_matter@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.refuse_as_not_found();
drop function citeledger_private.holds_record(uuid, uuid, uuid);
drop function citeledger_private.visible_matter_number(uuid, uuid);

reset role;

-- cite/resolve_span

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.resolve_span(jsonb);
drop type citeledger.span_resolution;

reset role;

-- cite/resolve_spans@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.resolve_spans(uuid, citeledger_private.span[]);

reset role;

-- cite/deep_link@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.deep_link(text, uuid, integer, integer);

reset role;

-- cite/replace_document_pages

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.replace_document_pages(uuid, jsonb);
drop function citeledger_private.pages_fault(jsonb);

reset role;

-- cite/document_pages

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.document_page_blocks;
drop table citeledger.document_pages;

reset role;

-- cite/span@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.write_span(citeledger_private.span);
drop function citeledger_private.read_span(jsonb);
drop function citeledger_private.to_span(jsonb);
drop function citeledger_private.span_fault(jsonb);
drop function citeledger_private.is_blank(text);
drop function citeledger_private.is_whole_number(jsonb, integer);
drop type citeledger_private.span;

reset role;

-- ledger/ledger_trace@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.ledger_trace(uuid, uuid);

reset role;

-- gate/finalize_pending

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.finalize_pending(integer);

reset role;

-- gate/finalize_turns@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.finalize_turns(uuid[]);

reset role;

-- gate/finalize_turn@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.finalize_turn(uuid);

reset role;

-- gate/finalize_report

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.finalize_report(uuid, uuid);
drop function citeledger_private.count_entries(uuid, uuid);

reset role;

-- gate/source_triggers@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop trigger message_tool_sources_deleted on citeledger.message_tool_sources;
drop trigger message_tool_sources_inserted on citeledger.message_tool_sources;
drop trigger message_caselaw_citations_deleted on citeledger.message_caselaw_citations;
drop trigger message_caselaw_citations_updated on citeledger.message_caselaw_citations;
drop trigger message_caselaw_citations_inserted on citeledger.message_caselaw_citations;
drop trigger message_citations_deleted on citeledger.message_citations;
drop trigger message_citations_updated on citeledger.message_citations;
drop trigger message_citations_inserted on citeledger.message_citations;
drop function citeledger_private.source_deleted();
drop function citeledger_private.citation_updated();
drop function citeledger_private.source_inserted();

reset role;

-- gate/message_triggers@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop trigger messages_finalize_updated on citeledger.messages;
drop trigger messages_finalize_inserted on citeledger.messages;
drop trigger messages_seal on citeledger.messages;
drop function citeledger_private.finalize_updated();
drop function citeledger_private.finalize_inserted();
drop function citeledger_private.seal_message();

reset role;

-- gate/compute_and_record_gate@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.compute_and_record_gate(uuid);

reset role;

-- ledger/assemble_ledger_entries

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.assemble_ledger_entries(uuid);

reset role;

-- gate/settle@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.settle(uuid, uuid[], uuid[]);

reset role;

-- gate/settle_new@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.settle_new(uuid, uuid[]);

reset role;

-- gate/withdraw_gates@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.withdraw_gates(uuid, uuid[], text, text);
drop function citeledger_private.clear_failures(uuid, uuid[]);
drop function citeledger_private.log_failure(uuid, uuid[], text, text);

reset role;

-- gate/lock_turns@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.lock_turns(uuid, uuid[]);
drop function citeledger_private.expose_hidden_gates(uuid, uuid[]);

reset role;

-- gate/record_gates@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.record_gates(uuid, uuid[]);
drop function citeledger_private.warn_of_unrecognized(text);

reset role;

-- gate/recount@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.recount(uuid, uuid[]);

reset role;

-- gate/work_product_fiduciary_gate

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.work_product_fiduciary_gate;

reset role;

-- gate/verification_tier@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.verification_tier(text);

reset role;

-- ledger/assemble_turn

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.assemble_turn(uuid, uuid);

reset role;

-- ledger/assemble_rows

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.assemble_rows(uuid, uuid, uuid[]);

reset role;

-- ledger/assemble_set@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.assemble_set(uuid, uuid[], uuid[]);

reset role;

-- ledger/entry_values@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.entry_values(uuid, uuid[], uuid[]);

reset role;

-- ledger/finalize_failure

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.finalize_failure;

reset role;

-- ledger/keep_revisions

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop trigger citation_ledger_entry_keep_deleted on citeledger.citation_ledger_entry;
drop trigger citation_ledger_entry_keep_replaced on citeledger.citation_ledger_entry;
drop function citeledger_private.keep_deleted_values();
drop function citeledger_private.keep_replaced_values();

reset role;

-- ledger/citation_ledger_entry_revision

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.citation_ledger_entry_revision;

reset role;

-- ledger/citation_ledger_entry

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.citation_ledger_entry;

reset role;

-- ledger/message_tool_sources

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.message_tool_sources;

reset role;

-- ledger/message_caselaw_citations

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.message_caselaw_citations;

reset role;

-- ledger/message_citations

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.message_citations;

reset role;

-- ledger/messages

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.messages;

reset role;

-- tenancy/delete_firm

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.delete_firm(uuid);

reset role;

-- graph/lock_graph

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.before_ingest();
drop function citeledger_private.queue_ingest(uuid);
drop function citeledger_private.lock_graph(uuid);

reset role;

-- ledger/chats

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.chats;

reset role;

-- cite/documents

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.documents;

reset role;

-- graph/normalize_doi

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.normalize_doi(text);
drop function citeledger_private.percent_decode(text);

reset role;

-- tenancy/walls@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop policy projects_behind_a_wall on citeledger.projects;
drop function citeledger_private.is_behind_wall(uuid, uuid);

reset role;

-- tenancy/project_members

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.project_members;

reset role;

-- tenancy/projects

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.projects;

reset role;

-- tenancy/create_firm

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.create_firm(text);

reset role;

-- tenancy/firm_ids

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.firm_ids();

reset role;

-- tenancy/firms

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop table citeledger.firms;

reset role;

-- tenancy/acting_firm

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.leave_firm(text);
drop function citeledger_private.enter_firm(uuid);

reset role;

-- tenancy/set_context@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.set_context(uuid, uuid, text[]);

reset role;

-- tenancy/require_permission

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.require_permission(text);

reset role;

-- tenancy/has_permission@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.has_permission(text);

reset role;

-- tenancy/current_user_id@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.current_user_id();

reset role;

-- tenancy/current_firm_id@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.current_firm_id();

reset role;

-- ops/verify_object

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.verify_function(regprocedure, text);
drop function citeledger_private.verify_parts(regclass, text);
drop function citeledger_private.verify_relation(regclass, text);
drop function citeledger_private.verify_lines(text, text[], text, text);

reset role;

-- ops/describe_function@v0.1.0

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.describe_function(regprocedure);

reset role;

-- ops/describe_relation

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.describe_relation(regclass);

reset role;

-- tenancy/schemas

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- Back to the built-in default, which removes the entries that would keep the role alive.
alter default privileges for role citeledger_owner grant execute on functions to public;
alter default privileges for role citeledger_owner grant usage on types to public;

drop schema citeledger_private;
drop schema citeledger;

reset role;

-- tenancy/roles

set local search_path = pg_catalog, pg_temp;

-- Another database of this cluster may still use a role, and people may be members of it: then the
-- role stays, and a notice says so. Dropping order: a role goes before the role it is a member of.
do $$
declare
  v_role text;
  v_reason text;
begin
  foreach v_role in array array[
    'citeledger_admin', 'citeledger_app', 'citeledger_reader', 'citeledger_owner'
  ] loop
    continue when not exists (select from pg_catalog.pg_roles as r where r.rolname = v_role);

    v_reason := null;
    if exists (
      select
      from pg_catalog.pg_shdepend as d
      where d.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass
        and d.refobjid = pg_catalog.to_regrole(v_role)
        and d.classid <> 'pg_catalog.pg_auth_members'::pg_catalog.regclass
    ) then
      v_reason := 'objects in this cluster depend on it';
    elsif exists (
      select
      from pg_catalog.pg_auth_members as m
      where m.roleid = pg_catalog.to_regrole(v_role)
        and m.member <> pg_catalog.to_regrole(pg_catalog.quote_ident(current_user))
    ) then
      v_reason := 'other roles are members of it';
    else
      begin
        execute pg_catalog.format('drop role %I', v_role);
      exception
        when insufficient_privilege then
          v_reason := 'the deployer may not drop it';
        when dependent_objects_still_exist then
          v_reason := 'objects in this cluster depend on it';
      end;
    end if;

    if v_reason is not null then
      raise notice 'role % stays: %', v_role, v_reason;
    end if;
  end loop;
end
$$;

reset role;
