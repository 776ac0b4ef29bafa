-- citeledger 0.1.0 to 0.2.0, made from sqitch.plan by tools/build_sql.py. Do not edit.
--
-- psql -X -v ON_ERROR_STOP=1 -f sql/upgrade--0.1.0--0.2.0.sql
--
-- For a database that was installed without Sqitch; run it as who installed it. Each part is a
-- transaction of its own, so that locks are short, and applications may go on meanwhile. When a
-- part fails, mend what it names and run the file again: the parts that were done do no harm.

do $$
begin
  -- A statement of its own begins its transaction.
  if now() <> statement_timestamp() then
    raise exception using
      errcode = '25001',
      message = 'this file cannot run within one transaction',
      detail = 'Its parts would keep all their locks until the end.',
      hint = 'Run psql without -1 (--single-transaction) and outside of begin and commit.';
  end if;
end
$$;

-- An application never waits long behind this: rather fail, and be run again.
set lock_timeout = '30s';
set statement_timeout = '1h';

begin;

do $$
declare
  v_is_kept boolean := false;
begin
  if to_regclass('sqitch.changes') is not null then
    execute 'select exists (select from sqitch.changes as c where c.project = $1)'
    into v_is_kept
    using 'citeledger';
  end if;
  if v_is_kept then
    raise exception using
      errcode = '55000',
      message = 'this database is kept by Sqitch',
      detail = 'Its registry, the schema sqitch, names the project citeledger.',
      hint = 'Run sqitch deploy instead.';
  end if;
end
$$;

set local role citeledger_owner;

do $$
begin
  if citeledger.version() not in ('0.1.0', '0.2.0') then
    raise exception using
      errcode = '55000',
      message = 'this file upgrades citeledger 0.1.0 to 0.2.0',
      detail = format('Installed is %s.', citeledger.version()),
      hint = 'Run the files of sql/ that lead from your version to this one, in turn.';
  end if;
end
$$;

commit;

-- graph/edge_doi

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.edge_doi(
  p_cited_doi text
)
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_key text := citeledger.normalize_doi(p_cited_doi);
begin
  -- 64 bytes are room for a resolver's address and what a sentence leaves behind. What is longer
  -- carries something that is no part of the DOI, such as the query of an address.
  if octet_length(p_cited_doi) <= octet_length(v_key) + 64 then
    return p_cited_doi;
  end if;
  return v_key;
end
$$;

comment on function citeledger_private.edge_doi(text) is
  'What an edge keeps of a DOI: the DOI as printed, or its key where what was printed is more than '
  '64 bytes longer than that. Null where there is no DOI.';

revoke all on function citeledger_private.edge_doi(text) from public;

commit;

-- graph/reconcile_edges

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

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
    -- without statistics the planner would take a left one for a loop in a loop. Each part is kept
    -- apart by its offset, which stores nothing, where a CTE would write every list to disk twice.
    return query
    with holder as materialized (
      select d.doi_key, count(*) as holders, (array_agg(d.id))[1] as document_id
      from citeledger.documents as d
      where d.firm_id = p_firm_id and d.doi_key is not null and d.deleted_at is null
      group by d.doi_key
    )
    select
      l.document_id, l.holder_id, l.cited_doi, l.source, l.position,
      case
        when l.holders is null then 'unmatched'
        when l.holders > 1 then 'ambiguous'
        when l.holder_id = l.document_id then 'self_citation'
        else 'matched'
      end::citeledger_private.reference_fate
    from (
      select
        r.id, r.document_id, r.cited_doi, r.source, r.position,
        h.holders, h.document_id as holder_id
      from (
        select r.id, r.document_id, r.doi_key, r.cited_doi, r.source, r.position
        from citeledger.document_references as r
        where r.firm_id = p_firm_id
          and r.document_id in (
            select a.id from citeledger.documents as a
            where a.firm_id = p_firm_id and a.deleted_at is null
          )
        offset 0
      ) as r
      full join holder as h on h.doi_key = r.doi_key
      offset 0
    ) as l
    where l.id is not null;
    return;
  end if;
  -- Laterally, an index look-up for each, of a key or a document as of what is found: whatever the
  -- tables held when the plan was made, it neither reads a firm's lists from end to end nor makes a
  -- loop in a loop.
  return query
  with reference as materialized (
    select r.document_id, r.doi_key, r.cited_doi, r.source, r.position
    from (select distinct i.id from unnest(p_document_ids) as i (id)) as i
    cross join lateral (
      select f.document_id, f.doi_key, f.cited_doi, f.source, f.position
      from citeledger.document_references as f
      where f.firm_id = p_firm_id and f.document_id = i.id
      offset 0
    ) as r
    union all
    select r.document_id, r.doi_key, r.cited_doi, r.source, r.position
    from (select distinct k.doi_key from unnest(p_keys) as k (doi_key)) as k
    cross join lateral (
      select f.document_id, f.doi_key, f.cited_doi, f.source, f.position
      from citeledger.document_references as f
      where f.firm_id = p_firm_id and f.doi_key = k.doi_key
      offset 0
    ) as r
    where r.document_id not in (select i.id from unnest(p_document_ids) as i (id))
  )
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

create or replace function citeledger_private.edges_in_question(
  p_firm_id uuid,
  p_document_ids uuid[],
  p_holder_ids uuid[]
)
returns table (
  citing_document_id uuid,
  cited_document_id uuid,
  cited_doi text,
  source text
)
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_document_ids is null and p_holder_ids is null then
    return query
    select e.citing_document_id, e.cited_document_id, e.cited_doi, e.source
    from citeledger.document_citations as e
    where e.firm_id = (select p_firm_id);
    return;
  end if;
  -- Laterally, an index look-up for each, and firm and arrays through sub-selects: what is known of
  -- them would else make the plan look worth making anew.
  return query
  select e.citing_document_id, e.cited_document_id, e.cited_doi, e.source
  from (select distinct i.id from unnest((select p_document_ids)) as i (id)) as i
  cross join lateral (
    select c.citing_document_id, c.cited_document_id, c.cited_doi, c.source
    from citeledger.document_citations as c
    where c.firm_id = (select p_firm_id) and c.citing_document_id = i.id
    offset 0
  ) as e
  union
  select e.citing_document_id, e.cited_document_id, e.cited_doi, e.source
  from (select distinct i.id from unnest((select p_holder_ids)) as i (id)) as i
  cross join lateral (
    select c.citing_document_id, c.cited_document_id, c.cited_doi, c.source
    from citeledger.document_citations as c
    where c.firm_id = (select p_firm_id) and c.cited_document_id = i.id
    offset 0
  ) as e;
end
$$;

comment on function citeledger_private.edges_in_question(uuid, uuid[], uuid[]) is
  'The edges from the documents p_document_ids and those to p_holder_ids, each once; every edge of '
  'the firm when both are null.';

revoke all on function citeledger_private.edges_in_question(uuid, uuid[], uuid[]) from public;

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
  -- Null with the keys: then all edges are in question.
  v_holders uuid[] := case when p_keys is not null then '{}'::uuid[] end;
  v_report jsonb;
begin
  -- Whose incoming edges are in question: whoever holds one of the keys, and the documents that may
  -- have held it until now. A list alone changes no incoming edge.
  if cardinality(p_keys) > 0 then
    v_holders := (select p_document_ids) || array(
      select d.id
      from unnest((select p_keys)) as k (doi_key)
      cross join lateral (
        select h.id
        from citeledger.documents as h
        where h.firm_id = (select p_firm_id) and h.doi_key = k.doi_key
        offset 0
      ) as d
    );
  end if;

  -- Materialized all along: right after a load there are no statistics to plan a join by.
  with judged as materialized (
    select * from citeledger_private.judged_references(p_firm_id, p_document_ids, p_keys)
  ),
  wanted as materialized (
    select distinct on (j.citing_document_id, j.cited_document_id)
      j.citing_document_id, j.cited_document_id, j.source,
      case
        -- Nearly every DOI: no need to ask what its key is.
        when octet_length(j.cited_doi) <= 64 then j.cited_doi
        else citeledger_private.edge_doi(j.cited_doi)
      end as cited_doi
    from judged as j
    where j.fate = 'matched'
    order by j.citing_document_id, j.cited_document_id, j.source collate "C", j.list_position
  ),
  present as materialized (
    select * from citeledger_private.edges_in_question(p_firm_id, p_document_ids, v_holders)
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
  -- Told apart twice, for the report: cheaper than to keep a copy of each.
  due as not materialized (
    select c.citing_document_id, c.cited_document_id, c.cited_doi, c.source
    from compared as c
    where c.citing_document_id is not null
      and (c.cited_doi, c.source) is distinct from (c.present_doi, c.present_source)
  ),
  -- By its key, not by the place it was seen at: above read committed a withdrawal or a deletion of
  -- documents updates edges without the lock of the graph.
  removed as (
    delete from citeledger.document_citations as e
    using surplus as s
    where not p_dry_run
      and e.firm_id = (select p_firm_id)
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
    'documents_scanned', (
      select count(*)
      from (
        select
        from judged as s
        where p_source is null or s.source = p_source
        group by s.citing_document_id
      ) as d
    ),
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
  'holds the lock of the graph. An edge''s DOI is as edge_doi gives it.';

revoke all on function citeledger_private.reconcile_edges(uuid, uuid[], text[], text, boolean)
  from public;

commit;

-- graph/edge_doi_check

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- A no-op but where an upgrade was interrupted and is run again; then it needs no notice.
set local client_min_messages = warning;
alter table citeledger.document_citations
  drop constraint if exists document_citations_cited_doi_is_short;

-- Not yet valid for the edges that are there, so that the table is locked for a moment only.
alter table citeledger.document_citations
  add constraint document_citations_cited_doi_is_short check (
    coalesce(
      octet_length(cited_doi) <= octet_length(citeledger.normalize_doi(cited_doi)) + 64, false
    )
  ) not valid;

comment on constraint document_citations_cited_doi_is_short on citeledger.document_citations is
  'At most 64 bytes longer than the key of the DOI: what surrounds a DOI is no content.';

commit;

-- graph/edge_doi_valid

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- Firm by firm, for row security holds for the owner too. A firm's ingests wait while its edges are
-- mended; nothing else does.
do $$
declare
  v_firm_id uuid;
  v_outer text;
begin
  for v_firm_id in select f.id from citeledger.firm_ids() as f (id) order by f.id loop
    v_outer := citeledger_private.enter_firm(v_firm_id);
    perform citeledger_private.lock_graph(v_firm_id);
    update citeledger.document_citations as e
    set cited_doi = citeledger_private.edge_doi(e.cited_doi)
    where e.firm_id = v_firm_id
      and octet_length(e.cited_doi) > 64
      and e.cited_doi <> citeledger_private.edge_doi(e.cited_doi);
    perform citeledger_private.leave_firm(v_outer);
  end loop;
end
$$;

alter table citeledger.document_citations
  validate constraint document_citations_cited_doi_is_short;

commit;

-- ops/metadata_only_violations

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

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
                format(
                  'COALESCE((octet_length(%1$I) <= '
                  '(octet_length(citeledger.normalize_doi(%1$I)) + 64)), false)',
                  a.attname
                )
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

commit;

-- tenancy/current_firm_id

begin;

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
  -- Dashes in their places, nowhere else, and the rest digits: four times as fast as a pattern that
  -- counts, or as translate, and row security calls this for every table of every statement.
  if v_setting collate "C" like '________-____-____-____-____________'
    and v_setting collate "C" not like '%-%-%-%-%-%'
    and v_setting collate "C" !~ '[^0-9a-fA-F-]'
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

commit;

-- tenancy/current_user_id

begin;

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
  -- Dashes in their places, nowhere else, and the rest digits, as in current_firm_id.
  if v_setting collate "C" like '________-____-____-____-____________'
    and v_setting collate "C" not like '%-%-%-%-%-%'
    and v_setting collate "C" !~ '[^0-9a-fA-F-]'
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

commit;

-- tenancy/has_permission

begin;

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
    -- The one permission that most contexts hold, if its name is one: no list to take apart.
    if v_setting = '{' || p_permission || '}' and p_permission collate "C" ~ '^[A-Za-z0-9._:-]+$'
    then
      return true;
    end if;
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

commit;

-- tenancy/set_context

begin;

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
  v_list text := v_permissions::text;
begin
  -- Behind PostgREST the claims are the caller's identity; our settings would win over them.
  if current_setting('request.jwt.claims', true) <> '' then
    raise exception using
      errcode = '42501',
      message = 'the context comes from request.jwt.claims and cannot be set',
      detail = 'request.jwt.claims is set in this session.',
      hint = 'Put firm_id, sub and permissions into the claims instead.';
  end if;

  -- Mostly a few short names: looked at all at once, since to look into the list is a query. Such a
  -- name is written without quotes, and so is a null.
  if octet_length(v_list) <= 64
    and strpos(v_list, 'NULL') = 0
    and v_list collate "C" ~ (
      '^[{](?:[A-Za-z0-9][A-Za-z0-9._:-]*(?:,[A-Za-z0-9][A-Za-z0-9._:-]*)*)?[}]$'
    )
  then
    null;
  elsif array_ndims(v_permissions) > 1
    or exists (
      select
      from unnest(v_permissions) as p (permission)
      -- The length apart: a pattern that counts costs more than all the rest.
      where p.permission is null
        or octet_length(p.permission) > 64
        or p.permission !~ '^[A-Za-z0-9][A-Za-z0-9._:-]*$'
    )
  then
    raise exception using
      errcode = '22023',
      message = 'p_permissions is not a list of permission names',
      detail = 'A permission is a letter or digit followed by at most 63 letters, digits or ._:- .',
      hint = 'Pass for example array[''matters:read''].';
  end if;

  -- SET LOCAL rather than set_config(): the settings end with the transaction either way, but only
  -- the statement is forwarded by a distributed database to its workers. Three in one go: to parse
  -- them is most of what this costs.
  execute format(
    'set local citeledger.firm_id = %L; '
    'set local citeledger.user_id = %L; '
    'set local citeledger.permissions = %L',
    coalesce(p_firm_id::text, ''), coalesce(p_user_id::text, ''), v_list
  );
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

commit;

-- tenancy/walls

begin;

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
  -- Most matters have no members; for them the second question is not even prepared.
  perform
  from citeledger.project_members as m
  where m.firm_id = p_firm_id and m.project_id = p_project_id
  limit 1;
  if not found then
    return false;
  end if;
  return not exists (
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

commit;

-- gate/verification_tier

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- In place of a call the planner puts what is below, for every entry of a ledger: that takes a body
-- that is bound when the function is made, and no setting of its own.
create or replace function citeledger.verification_tier(
  p_status text
)
returns text
language sql
immutable
parallel safe
security invoker
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

comment on function citeledger.verification_tier(text) is
  'The tier of a verification status: pass (exact_match, tolerant_match), supported '
  '(paraphrase_judge, ensemble_strict, ensemble_majority), fail (unverified, failed) or '
  'provenance. Null for any other status, compared exactly: no case is folded and no blank '
  'trimmed.';

revoke all on function citeledger.verification_tier(text) from public;
grant execute on function citeledger.verification_tier(text) to citeledger_reader;
grant execute on function citeledger.verification_tier(text) to citeledger_app;
grant execute on function citeledger.verification_tier(text) to citeledger_admin;

commit;

-- gate/lock_turns

begin;

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
            -- Or the verdicts of the whole firm might be read once rather than one by its key.
            offset 0
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

commit;

-- gate/withdraw_gates

begin;

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
    -- Not where the session itself shut the log: then nothing of what it did may stay unsaid.
    when serialization_failure or read_only_sql_transaction then
      raise;
    when others then
      if current_setting('row_security') = 'off' then
        raise;
      end if;
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
      -- not be committed: then the turn fails rather than the promise. It fails too where that
      -- cannot be told for now, as with no memory left.
      begin
        v_stale := exists (
          select
          from citeledger.work_product_fiduciary_gate as g
          where g.firm_id = p_firm_id and g.message_id = any(p_message_ids)
        );
      exception
        -- Or locked: then whoever changed a source has read it before, or waited in vain.
        when undefined_table or undefined_column or insufficient_privilege or lock_not_available
        then
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
  'of an earlier failure of that stage, and warns. Raises 40001 alone, and what the session itself '
  'brought about: 25006, and anything under row_security = off.';
comment on function citeledger_private.withdraw_gates(uuid, uuid[], text, text) is
  'Removes the verdicts of turns whose stage p_stage failed with p_sqlstate, logs and warns: no '
  'ledger means no verdict, never an old one. Raises only when an old verdict can be read but not '
  'removed, or when that cannot be told for now.';

revoke all on function citeledger_private.log_failure(uuid, uuid[], text, text) from public;
revoke all on function citeledger_private.withdraw_gates(uuid, uuid[], text, text) from public;

commit;

-- gate/recount

begin;

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
      coalesce(sum(v.entries) filter (where v.tier = 'pass'), 0)::integer as pass_count,
      coalesce(sum(v.entries) filter (where v.tier = 'supported'), 0)::integer as supported_count,
      coalesce(sum(v.entries) filter (where v.tier = 'fail'), 0)::integer as fail_count,
      coalesce(sum(v.entries) filter (where v.tier is null), 0)::integer as unrecognized_count,
      -- A tool source is no citation, and its entry alone is provenance.
      coalesce(sum(v.entries) filter (where v.tier is distinct from 'provenance'), 0)
        as citation_entries,
      -- As numeric: a mean over double precision depends on the order of the rows.
      (sum(v.confidence::numeric * v.entries) filter (where v.tier in ('pass', 'supported', 'fail'))
        / nullif(
          sum(v.entries) filter (
            where v.tier in ('pass', 'supported', 'fail') and v.confidence is not null
          ),
          0
        )
      )::double precision as confidence,
      array_agg(v.verification_status) filter (where v.tier is null) as unrecognized_statuses
    from (
      -- A turn has few different confidences: each becomes a numeric once.
      select
        e.verification_status,
        citeledger.verification_tier(e.verification_status) as tier,
        e.confidence,
        count(*)::integer as entries
      from citeledger.citation_ledger_entry as e
      where e.firm_id = p_firm_id and e.message_id = m.id
      group by e.verification_status, e.confidence
    ) as v
  ) as counted;
end
$$;

comment on function citeledger_private.recount(uuid, uuid[]) is
  'What the ledger of the given turns says now: one row for each message that is the assistant''s. '
  'fail_count includes the citations that have no entry. unrecognized_statuses: those '
  'that verification_tier does not know, one of them perhaps more than once, or null.';

revoke all on function citeledger_private.recount(uuid, uuid[]) from public;

commit;

-- gate/gate_status

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- In place of a call the planner puts what is below, for every verdict: that takes a body that is
-- bound when the function is made, and no setting of its own.
create or replace function citeledger_private.gate_status(
  p_supported_count integer,
  p_fail_count integer,
  p_unrecognized_count integer
)
returns text
language sql
immutable
parallel safe
security invoker
return case
  when p_fail_count > 0 or p_unrecognized_count > 0 then 'flagged'
  when p_supported_count > 0 then 'supported_only'
  else 'fiduciary_grade'
end;

comment on function citeledger_private.gate_status(integer, integer, integer) is
  'The verdict of a turn with so many citations that are supported, that fail, and whose status is '
  'not known. A CHECK of work_product_fiduciary_gate holds the same rule against every row.';

revoke all on function citeledger_private.gate_status(integer, integer, integer) from public;

commit;

-- gate/record_gates

begin;

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
  -- A verdict that is there is updated, not upserted: the lock that an upsert takes in one guard
  -- would be carried from version to version by the next, each time in a new multixact. Found by
  -- its key and not by the place it was seen at: a matter that is deleted meanwhile moves it, and
  -- an update that waited for that must fail or be made, but not pass it by. Nobody else adds one
  -- to a turn that the caller holds; should a hidden one be there, the key raises, and the turn has
  -- none. The firm through a sub-select: of one that the statistics do not know a row is expected,
  -- and then any index would do.
  with counted as materialized (
    select
      c.*,
      citeledger_private.gate_status(
        c.supported_count, c.fail_count, c.unrecognized_count
      ) as gate_status,
      c.pass_count + c.supported_count + c.fail_count as total_assertions
    from citeledger_private.recount(p_firm_id, p_message_ids) as c
  ),
  changed as (
    update citeledger.work_product_fiduciary_gate as g
    set
      project_id = c.project_id,
      gate_status = c.gate_status,
      pass_count = c.pass_count,
      supported_count = c.supported_count,
      fail_count = c.fail_count,
      total_assertions = c.total_assertions,
      unrecognized_count = c.unrecognized_count,
      confidence = c.confidence,
      computed_at = clock_timestamp()
    from counted as c
    where g.firm_id = (select p_firm_id)
      and g.message_id = c.message_id
      and (
        g.project_id, g.gate_status, g.pass_count, g.supported_count, g.fail_count,
        g.total_assertions, g.unrecognized_count, g.confidence
      ) is distinct from (
        c.project_id, c.gate_status, c.pass_count, c.supported_count, c.fail_count,
        c.total_assertions, c.unrecognized_count, c.confidence
      )
    returning g.message_id
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
      c.gate_status,
      c.pass_count, c.supported_count, c.fail_count, c.total_assertions, c.unrecognized_count,
      c.confidence
    from counted as c
    -- What was just updated is not looked up again: in a transaction that brings a turn many late
    -- sources each look-up walks past as many versions.
    where case
      when c.message_id in (select u.message_id from changed as u) then false
      else not exists (
        select
        from citeledger.work_product_fiduciary_gate as g
        where g.firm_id = (select p_firm_id) and g.message_id = c.message_id
        -- Or the verdicts of the whole firm might be read once rather than one by its key.
        offset 0
      )
    end
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

commit;

-- ledger/entry_id

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- In place of a call the planner puts what is below, for every entry of a ledger: that takes a body
-- that is bound when the function is made, and no setting of its own.
create or replace function citeledger_private.entry_id(
  p_message_id uuid,
  p_random uuid
)
returns uuid
language sql
immutable
parallel safe
security invoker
return (left(p_message_id::text, 14) || substr(p_random::text, 15))::uuid;

comment on function citeledger_private.entry_id(uuid, uuid) is
  'The id of an entry of the turn p_message_id: 48 bits of the turn''s, then the rest of p_random, '
  'which is a random uuid made for it. So the entries of a turn lie side by side in the primary '
  'key: in a large ledger a turn reads, changes and logs one page of it, not one for each entry.';

revoke all on function citeledger_private.entry_id(uuid, uuid) from public;

commit;

-- ledger/assemble_set

begin;

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
      firm_id, id, project_id, chat_id, message_id,
      source_kind, message_citation_id, message_caselaw_citation_id, message_tool_source_id,
      verification_status, confidence, provider, retrieved_at
    )
    select
      p_firm_id, citeledger_private.entry_id(d.message_id, gen_random_uuid()),
      d.project_id, d.chat_id, d.message_id,
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
  -- believes of tables without statistics: "offset 0" keeps it from turning this around. The firm
  -- through a sub-select: of one that the statistics do not know a row is expected, and then any
  -- index would do. The replaced values are kept by the ledger's own trigger.
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
    where e.firm_id = (select p_firm_id) and e.message_citation_id = d.message_citation_id
    union all
    select e.*
    from citeledger.citation_ledger_entry as e
    where e.firm_id = (select p_firm_id)
      and e.message_caselaw_citation_id = d.message_caselaw_citation_id
    union all
    select e.*
    from citeledger.citation_ledger_entry as e
    where e.firm_id = (select p_firm_id) and e.message_tool_source_id = d.message_tool_source_id
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
    -- Through sub-selects: the length of an array would else make the plan look worth making anew.
    from unnest(
      (select v_stale_ids),
      (select v_kinds),
      (select v_statuses),
      (select v_confidences),
      (select v_providers),
      (select v_retrieved)
    ) as d (id, source_kind, verification_status, confidence, provider, retrieved_at)
    where e.firm_id = (select p_firm_id) and e.id = d.id;
  end if;

  return v_written;
end
$$;

comment on function citeledger_private.assemble_set(uuid, uuid[], uuid[]) is
  'Writes the missing ledger entries of the given turns and refreshes those that no longer mirror '
  'their source, all at once; returns how many are new. p_source_ids limits it to those sources; '
  'null means all of them. The caller holds the lock of every turn.';

revoke all on function citeledger_private.assemble_set(uuid, uuid[], uuid[]) from public;

commit;

-- gate/settle_turn

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.settle_turn(
  p_firm_id uuid,
  p_message_id uuid
)
returns table (
  entries bigint,
  gate jsonb
)
language plpgsql
volatile
parallel unsafe
security invoker
rows 1
set search_path = pg_catalog, pg_temp
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_unrecognized integer;
begin
  -- The caller holds the message, so nobody else writes what was not there: no conflict to look for
  -- in every unique key. What is counted is what was written, so nothing is read again; and where
  -- every source has just got its entry, no citation is without one.
  with turn as materialized (
    select m.chat_id, c.project_id
    from citeledger.messages as m
    cross join lateral (
      select c.project_id
      from citeledger.chats as c
      where c.firm_id = p_firm_id and c.id = m.chat_id
      offset 0
    ) as c
    where m.firm_id = p_firm_id
      and m.id = p_message_id
      and m.role = 'assistant'
      and not exists (
        select
        from citeledger.citation_ledger_entry as e
        where e.firm_id = p_firm_id and e.message_id = p_message_id
      )
      and not exists (
        select
        from citeledger.finalize_failure as f
        where f.firm_id = p_firm_id and f.message_id = p_message_id
      )
  ),
  -- What entry_values says, word for word: called, it would cost a fifth of all this.
  due as materialized (
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
    where s.firm_id = p_firm_id and s.message_id = p_message_id
    union all
    select
      'caselaw', null, s.id, null,
      case when s.verified then s.verification_method else 'unverified' end,
      case when s.verified then s.verification_confidence end,
      'courtlistener',
      s.created_at
    from citeledger.message_caselaw_citations as s
    where s.firm_id = p_firm_id and s.message_id = p_message_id
    union all
    select s.source_kind, null, null, s.id, 'provenance', null, s.provider, s.created_at
    from citeledger.message_tool_sources as s
    where s.firm_id = p_firm_id and s.message_id = p_message_id
  ),
  written as (
    insert into citeledger.citation_ledger_entry (
      firm_id, id, project_id, chat_id, message_id,
      source_kind, message_citation_id, message_caselaw_citation_id, message_tool_source_id,
      verification_status, confidence, provider, retrieved_at
    )
    select
      p_firm_id, citeledger_private.entry_id(p_message_id, gen_random_uuid()),
      t.project_id, t.chat_id, p_message_id,
      d.source_kind, d.message_citation_id, d.message_caselaw_citation_id, d.message_tool_source_id,
      d.verification_status, d.confidence, d.provider, d.retrieved_at
    from turn as t
    cross join due as d
    returning verification_status, confidence
  ),
  counted as (
    select
      count(*) as entries,
      count(*) filter (where w.tier = 'pass')::integer as pass_count,
      count(*) filter (where w.tier = 'supported')::integer as supported_count,
      count(*) filter (where w.tier = 'fail')::integer as fail_count,
      count(*) filter (where w.tier is null)::integer as unrecognized_count,
      -- As numeric: a mean over double precision depends on the order of the rows.
      avg(w.confidence::numeric) filter (where w.tier in ('pass', 'supported', 'fail'))
        ::double precision as confidence
    from (
      select citeledger.verification_tier(w.verification_status) as tier, w.confidence
      from written as w
      offset 0
    ) as w
  ),
  recorded as (
    insert into citeledger.work_product_fiduciary_gate as g (
      firm_id, message_id, chat_id, project_id,
      gate_status,
      pass_count, supported_count, fail_count, total_assertions, unrecognized_count,
      confidence
    )
    select
      p_firm_id, p_message_id, t.chat_id, t.project_id,
      citeledger_private.gate_status(c.supported_count, c.fail_count, c.unrecognized_count),
      c.pass_count, c.supported_count, c.fail_count,
      c.pass_count + c.supported_count + c.fail_count,
      c.unrecognized_count,
      c.confidence
    -- A turn without sources has a verdict too. One whose entries were kept back, as a trigger of
    -- the installation may, has none here: others count what is missing.
    from turn as t
    join counted as c on c.entries = (select count(*) from due)
    -- A verdict that was there is for others to count again.
    on conflict (firm_id, message_id) do nothing
    returning g.unrecognized_count, to_jsonb(g) - 'firm_id' as gate
  )
  select
    (select c.entries from counted as c),
    r.gate,
    r.unrecognized_count
  into entries, gate, v_unrecognized
  from (select) as one
  left join recorded as r on true;

  if v_unrecognized > 0 then
    perform citeledger_private.warn_of_unrecognized(
      (
        select string_agg(distinct e.verification_status, ', ')
        from citeledger.citation_ledger_entry as e
        where e.firm_id = p_firm_id
          and e.message_id = p_message_id
          and citeledger.verification_tier(e.verification_status) is null
      )
    );
  end if;
  return next;
end
$$;

comment on function citeledger_private.settle_turn(uuid, uuid) is
  'Assembles the ledger and records the verdict of a turn of the assistant that has neither an '
  'entry nor a verdict nor a logged failure, in one statement; what it writes is what '
  'assemble_set and record_gates would. One row: how many entries it wrote, and the row of the '
  'verdict less firm_id, or null where the turn had something already, or an entry was kept back '
  'by a trigger. The caller holds the lock of the turn, acts for p_firm_id, and is under read '
  'committed: above it others may have written what the snapshot does not show. Raises the WARNING '
  'of warn_of_unrecognized. Errors: those of the constraints.';

revoke all on function citeledger_private.settle_turn(uuid, uuid) from public;

commit;

-- gate/settle_new

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- It returns something else than before. Private, and called in a guard, so that what runs between
-- this and the new settle goes step by step.
-- squawk-ignore ban-drop-function
drop function citeledger_private.settle_new(uuid, uuid[]);

create function citeledger_private.settle_new(
  p_firm_id uuid,
  p_message_ids uuid[]
)
returns uuid[]
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_settled uuid[];
  v_unrecognized bigint;
begin
  -- Array and firm through sub-selects, here and below: the length of the one would else make each
  -- plan look worth making anew, and of another that the statistics do not know a row is expected,
  -- so that any index would do. The caller holds the messages, so nobody else writes what was not
  -- there: no conflict to look for in every unique key. What is counted is what was written, so
  -- nothing is read again; and where every source has just got its entry, no citation is without
  -- one.
  with turn as materialized (
    select m.id, m.chat_id, c.project_id
    from unnest((select p_message_ids)) as t (id)
    cross join lateral (
      select m.id, m.chat_id
      from citeledger.messages as m
      where m.firm_id = (select p_firm_id)
        and m.id = t.id
        and m.role = 'assistant'
        and not exists (
          select
          from citeledger.citation_ledger_entry as e
          where e.firm_id = (select p_firm_id) and e.message_id = t.id
        )
        and not exists (
          select
          from citeledger.finalize_failure as f
          where f.firm_id = (select p_firm_id) and f.message_id = t.id
        )
      offset 0
    ) as m
    cross join lateral (
      select c.project_id
      from citeledger.chats as c
      where c.firm_id = (select p_firm_id) and c.id = m.chat_id
      offset 0
    ) as c
  ),
  due as materialized (
    select *
    from citeledger_private.entry_values(p_firm_id, array(select t.id from turn as t), null)
  ),
  written as (
    insert into citeledger.citation_ledger_entry (
      firm_id, id, project_id, chat_id, message_id,
      source_kind, message_citation_id, message_caselaw_citation_id, message_tool_source_id,
      verification_status, confidence, provider, retrieved_at
    )
    select
      p_firm_id, citeledger_private.entry_id(d.message_id, gen_random_uuid()),
      d.project_id, d.chat_id, d.message_id,
      d.source_kind, d.message_citation_id, d.message_caselaw_citation_id, d.message_tool_source_id,
      d.verification_status, d.confidence, d.provider, d.retrieved_at
    from due as d
    returning message_id, verification_status, confidence
  ),
  counted as (
    select
      w.message_id,
      (array_agg(w.chat_id) filter (where w.chat_id is not null))[1] as chat_id,
      (array_agg(w.project_id) filter (where w.chat_id is not null))[1] as project_id,
      count(*) filter (where w.tier = 'pass')::integer as pass_count,
      count(*) filter (where w.tier = 'supported')::integer as supported_count,
      count(*) filter (where w.tier = 'fail')::integer as fail_count,
      count(*) filter (where w.tier is null)::integer as unrecognized_count,
      -- As numeric: a mean over double precision depends on the order of the rows.
      avg(w.confidence::numeric) filter (where w.tier in ('pass', 'supported', 'fail'))
        ::double precision as confidence
    from (
      select
        w.message_id,
        null::uuid as chat_id,
        null::uuid as project_id,
        citeledger.verification_tier(w.verification_status) as tier,
        w.confidence
      from written as w
      union all
      -- A turn without sources has a verdict too. What is no assertion counts in nothing. Where a
      -- turn belongs its message says; a trigger of the installation may have changed an entry.
      select t.id, t.chat_id, t.project_id, 'provenance', null
      from turn as t
      offset 0
    ) as w
    group by w.message_id
  ),
  recorded as (
    insert into citeledger.work_product_fiduciary_gate as g (
      firm_id, message_id, chat_id, project_id,
      gate_status,
      pass_count, supported_count, fail_count, total_assertions, unrecognized_count,
      confidence
    )
    select
      p_firm_id, c.message_id, c.chat_id, c.project_id,
      citeledger_private.gate_status(c.supported_count, c.fail_count, c.unrecognized_count),
      c.pass_count, c.supported_count, c.fail_count,
      c.pass_count + c.supported_count + c.fail_count,
      c.unrecognized_count,
      c.confidence
    from counted as c
    -- Where entries were kept back, as such a trigger may, others count what is missing.
    where (select count(*) from written) = (select count(*) from due)
    -- A verdict that was there is for others to count again.
    on conflict (firm_id, message_id) do nothing
    returning g.message_id, g.unrecognized_count
  )
  select array_agg(r.message_id), sum(r.unrecognized_count)
  into v_settled, v_unrecognized
  from recorded as r;

  if v_unrecognized > 0 then
    perform citeledger_private.warn_of_unrecognized(
      (
        select string_agg(distinct e.verification_status, ', ')
        from citeledger.citation_ledger_entry as e
        where e.firm_id = (select p_firm_id)
          and e.message_id = any(v_settled)
          and citeledger.verification_tier(e.verification_status) is null
      )
    );
  end if;
  return v_settled;
end
$$;

comment on function citeledger_private.settle_new(uuid, uuid[]) is
  'settle_turn for many turns: of those that are new it assembles the ledgers and records the '
  'verdicts, in one statement, and returns which they are, null for none. The caller holds the '
  'lock of every turn, acts for p_firm_id, and is under read committed. Raises the WARNING of '
  'warn_of_unrecognized. Errors: those of the constraints.';

revoke all on function citeledger_private.settle_new(uuid, uuid[]) from public;

commit;

-- gate/settle

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.all_were_settled(
  p_firm_id uuid,
  p_message_ids uuid[]
)
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
-- An array of one looks cheaper than the generic plan's ten, so each call would be planned anew.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_settled bigint;
begin
  with cleared as (
    delete from citeledger.finalize_failure as f
    where f.firm_id = p_firm_id and f.message_id = any(p_message_ids)
    returning f.message_id
  )
  select count(*)
  into v_settled
  from citeledger.work_product_fiduciary_gate as g
  where g.firm_id = p_firm_id
    and g.message_id = any(p_message_ids)
    and not exists (select from cleared as c where c.message_id = g.message_id);
  return v_settled = cardinality(p_message_ids);
end
$$;

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
  v_message_ids uuid[] := p_message_ids;
  v_settled uuid[];
  v_source_ids uuid[] := p_source_ids;
  v_ignored boolean;
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
      if cardinality(v_message_ids) = 1 then
        select case when t.gate is not null then v_message_ids end
        into v_settled
        from citeledger_private.settle_turn(p_firm_id, v_message_ids[1]) as t;
      else
        v_settled := citeledger_private.settle_new(p_firm_id, v_message_ids);
      end if;
    exception
      when serialization_failure then
        raise;
      when others or assert_failure then
        null;
    end;
    if cardinality(v_settled) = cardinality(v_message_ids) then
      return;
    end if;
    if cardinality(v_settled) > 0 then
      v_message_ids := array(
        select t.id from unnest(v_message_ids) as t (id)
        except
        select t.id from unnest(v_settled) as t (id)
      );
    end if;
  end if;

  -- Each step has a guard of its own. 40001 passes: only the caller can run its transaction again.
  -- A query cancel or a timeout (57014) is not caught by "others"; nor would a failed assertion be.
  -- The steps are expressions: to perform a function is a query of its own.
  begin
    -- Where an earlier attempt failed, more than the changed sources may be missing.
    -- Nested, so that a whole turn is assembled even where the gate's table is broken.
    if v_source_ids is null then
      perform citeledger_private.clear_failures(p_firm_id, v_message_ids);
    else
      if not citeledger_private.all_were_settled(p_firm_id, v_message_ids) then
        v_source_ids := null;
      end if;
    end if;
    v_ignored :=
      citeledger_private.assemble_set(p_firm_id, v_message_ids, v_source_ids) is null;
  exception
    when serialization_failure then
      raise;
    when others or assert_failure then
      v_sqlstate := sqlstate;
  end;

  -- The fault may lie in single rows of the one turn: try each.
  if left(v_sqlstate, 2) in ('22', '23') and cardinality(v_message_ids) = 1 then
    v_sqlstate := null;
    begin
      perform citeledger_private.clear_failures(p_firm_id, v_message_ids);
      perform citeledger_private.assemble_rows(p_firm_id, v_message_ids[1], v_source_ids);
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
      v_ignored := citeledger_private.record_gates(p_firm_id, v_message_ids) is null;
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

  if cardinality(v_message_ids) = 1 then
    perform citeledger_private.withdraw_gates(p_firm_id, v_message_ids, v_stage, v_sqlstate);
  else
    -- One bad turn spoils no other.
    foreach v_message_id in array v_message_ids loop
      perform citeledger_private.settle(p_firm_id, array[v_message_id], p_source_ids);
    end loop;
  end if;
end
$$;

comment on function citeledger_private.all_were_settled(uuid, uuid[]) is
  'Removes what was logged of earlier attempts at the given turns; true where each of them has a '
  'verdict and none had failed. The caller holds the lock of every turn.';
comment on function citeledger_private.settle(uuid, uuid[], uuid[]) is
  'Assembles the ledger of the given turns of the assistant, then records their verdicts, each '
  'step in its own guard; p_source_ids limits the assembly to those sources, null means all of '
  'them. When a step fails, the turn has no verdict, the failure is logged and warned about, and '
  'nothing is raised. The caller holds the lock of every turn and acts for p_firm_id. Errors that '
  'pass: 40001, 57014.';

revoke all on function citeledger_private.all_were_settled(uuid, uuid[]) from public;
revoke all on function citeledger_private.settle(uuid, uuid[], uuid[]) from public;

commit;

-- gate/source_triggers

begin;

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
  v_ignored boolean;
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
    -- An expression, and every insert of a source is shorter: to perform a function is a query.
    v_ignored := citeledger_private.settle(
      v_firm.firm_id,
      citeledger_private.lock_turns(v_firm.firm_id, v_firm.message_ids),
      v_firm.source_ids
    ) is null;
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
    -- would count what its sources no longer say. The array through a sub-select: its length would
    -- else make the plan look worth making anew.
    v_assembled := array(
      select distinct e.message_id
      from citeledger.citation_ledger_entry as e
      where e.firm_id = (select v_firm.firm_id)
        and e.message_id = any((select v_firm.message_ids)::uuid[])
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

commit;

-- gate/message_triggers

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace trigger messages_finalize_updated
  after update on citeledger.messages
  referencing old table as old_rows new table as new_rows
  for each statement
  -- Whoever sets finalized_at, but for the functions that finalize themselves: they act as the
  -- owner, and say at which depth of triggers, so that what else their update sets off is seen.
  when (
    current_user <> 'citeledger_owner'
    or current_setting('citeledger.sealing', true) is distinct from pg_trigger_depth()::text
  )
  execute function citeledger_private.finalize_updated();

comment on trigger messages_finalize_updated on citeledger.messages is
  'No call site can forget to finalize: setting finalized_at is enough. It leaves alone the '
  'updates of finalize_turn and finalize_turns, which settle what they set: they act as the owner, '
  'and name their depth of triggers in the setting citeledger.sealing. From anybody else the '
  'setting means nothing.';

commit;

-- gate/finalize_turn

begin;

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
  v_sealed boolean := false;
  v_ignored boolean;
  v_lock_error text;
  v_entries_before bigint;
  v_entries_written bigint;
  v_gate jsonb;
  v_failures jsonb := '[]'::jsonb;
begin
  -- The table first, where waiting has an end: a guard that takes no row lock costs no multixact.
  if current_setting('lock_timeout') <> '0' then
    begin
      lock table citeledger.messages in row exclusive mode;
    exception
      when lock_not_available or deadlock_detected then
        v_lock_error := sqlstate;
    end;
  end if;

  if v_lock_error is null then
    -- The trigger of messages leaves this update to us. Others must not have said so for us. It is
    -- said in an expression: to perform a function is a query of its own.
    v_ignored := set_config('citeledger.sealing', pg_trigger_depth()::text, true) is null;
    -- Nearly always the message is free and open. Waiting for it in a guard would cost every turn a
    -- multixact: a lock of a subtransaction, then an update of its parent.
    update citeledger.messages as m
    set finalized_at = clock_timestamp()
    where m.firm_id = v_firm_id
      and m.id = (
        select l.id
        from citeledger.messages as l
        where l.firm_id = v_firm_id
          and l.id = p_message_id
          and l.role = 'assistant'
          and l.finalized_at is null
        for no key update skip locked
      )
    returning m.role into v_role;
    v_sealed := found;

    if not v_sealed then
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
      if v_role = 'assistant' and v_finalized_at is null then
        update citeledger.messages as m
        set finalized_at = clock_timestamp()
        where m.firm_id = v_firm_id and m.id = p_message_id;
        v_sealed := true;
      end if;
    end if;
    v_ignored := set_config('citeledger.sealing', '', true) is null;
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

  -- A turn that is new reports what it wrote: nothing is read again. Above read committed there is
  -- no verdict, which settle says; and it finds out what went wrong here.
  if v_sealed
    and current_setting('transaction_isolation') in ('read committed', 'read uncommitted')
  then
    begin
      select t.entries, t.gate
      into v_entries_written, v_gate
      from citeledger_private.settle_turn(v_firm_id, p_message_id) as t;
    exception
      when serialization_failure then
        raise;
      when others or assert_failure then
        null;
    end;
  end if;

  if v_gate is null then
    -- What is only read for the report has guards too: a broken table must not break the turn.
    -- Entries that were new beside a verdict that was not are written already.
    begin
      v_entries_before := citeledger_private.count_entries(v_firm_id, p_message_id)
        - coalesce(v_entries_written, 0);
    exception
      when others then
        v_entries_before := 0;
    end;

    perform citeledger_private.settle(v_firm_id, array[p_message_id]);

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
  end if;

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

commit;

-- gate/finalize_turns

begin;

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
  v_verdicts integer;
begin
  -- The firm through a sub-select: of one that the statistics do not know a row is expected, and
  -- then any index would do.
  perform
  from citeledger.messages as m
  where m.firm_id = (select v_firm_id) and m.id = any(p_message_ids)
  order by m.id
  for no key update;

  -- The trigger of messages leaves this update to us. Others must not have said so for us.
  perform set_config('citeledger.sealing', pg_trigger_depth()::text, true);
  update citeledger.messages as m
  set finalized_at = clock_timestamp()
  where m.firm_id = (select v_firm_id)
    and m.id = any(p_message_ids)
    and m.role = 'assistant'
    and m.finalized_at is null;
  perform set_config('citeledger.sealing', '', true);

  perform citeledger_private.settle(
    v_firm_id,
    array(
      select m.id
      from citeledger.messages as m
      where m.firm_id = (select v_firm_id) and m.id = any(p_message_ids) and m.role = 'assistant'
      order by m.id
    )
  );

  begin
    select count(*)::integer
    into v_verdicts
    from citeledger.work_product_fiduciary_gate as g
    where g.firm_id = (select v_firm_id) and g.message_id = any(p_message_ids);
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

commit;

-- ledger/ledger_trace

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

-- cite/plain_span

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- In place of a call the planner puts what is below, for every span of a list: that takes a body
-- that is bound when the function is made, and no setting of its own.
create or replace function citeledger_private.is_plain_span(
  p_span jsonb
)
returns boolean
language sql
immutable
parallel safe
security invoker
return (
  -- Whatever is null here is not plain.
  jsonb_typeof(p_span) = 'object'
  and p_span - array[
    'document_id', 'page_number', 'block_index', 'char_start', 'char_end', 'quote'
  ] = '{}'
  -- Numbers: a path finds nothing else less than a number. It would look into a list as well, but a
  -- list has more than digits, and so have a sign and a fraction. What most spans have comes first.
  and p_span @@ (
    '$.page_number >= 1 && $.page_number <= 2147483647'
    ' && ($.block_index <= 2147483647 || !exists($.block_index))'
    ' && ($.char_start < $.char_end && $.char_end <= 2147483647'
    '   || !exists($.char_start) && !exists($.char_end))'
    ' && $.quote.type() == "string"'
  )
  and (
    (p_span ->> 'page_number')
    || coalesce(p_span ->> 'block_index', '')
    || coalesce(p_span ->> 'char_start', '')
    || coalesce(p_span ->> 'char_end', '')
  ) collate "C" !~ '[^0-9]'
  -- Lower case with dashes in their places, nowhere else: as a uuid is written.
  and (p_span ->> 'document_id') collate "C" like '________-____-____-____-____________'
  and (p_span ->> 'document_id') collate "C" not like '%-%-%-%-%-%'
  and (p_span ->> 'document_id') collate "C" !~ '[^0-9a-f-]'
  -- Nearly always the first character is a letter, digit or sign of ASCII.
  and (
    ascii(p_span ->> 'quote') between 33 and 126
    or citeledger_private.is_blank(p_span ->> 'quote') is false
  )
) is true;

comment on function citeledger_private.is_plain_span(jsonb) is
  'Whether a span is well-formed and written as write_span writes it: no null, no 1.0 for 1, the '
  'document in lower case. A shortcut for the many: where it is false, span_fault says what is '
  'wrong, if anything is.';

revoke all on function citeledger_private.is_plain_span(jsonb) from public;

commit;

-- cite/span

begin;

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
  v_rest jsonb;
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

  v_rest := v_span - array[
    'document_id', 'page_number', 'block_index', 'char_start', 'char_end', 'quote'
  ];
  if v_rest <> '{}' then
    select min(k.key collate "C")
    into v_unknown
    from jsonb_object_keys(v_rest) as k (key);
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
    (p_span -> 'page_number')::integer,
    -- Null has no number in it.
    nullif(p_span -> 'block_index', 'null')::integer,
    nullif(p_span -> 'char_start', 'null')::integer,
    nullif(p_span -> 'char_end', 'null')::integer,
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
  v_fault text;
begin
  if not citeledger_private.is_plain_span(p_span) then
    v_fault := citeledger_private.span_fault(p_span);
    if v_fault is not null then
      raise exception using
        errcode = '22023',
        message = 'the span is malformed',
        detail = format('%s.', v_fault),
        hint = 'A span is {"document_id": uuid, "page_number": from 1, "block_index": from 0, '
          '"char_start": from 0, "char_end": exclusive, "quote": text}; block_index and the two '
          'offsets may be left out.';
    end if;
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

commit;

-- cite/quote_fault

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- In place of a call the planner puts what is below, for every span of a list: that takes a body
-- that is bound when the function is made, and no setting of its own.
create or replace function citeledger_private.quote_fault(
  p_content text,
  p_char_start integer,
  p_char_end integer,
  p_quote text
)
returns text
language sql
immutable
parallel safe
security invoker
return case
  -- Mostly the first place of the quote is the one that is asked for. If it is as long as it should
  -- be, it is what the offsets cut out, and the characters of the whole text need not be counted.
  -- Looking for a quote can take its length times the text's, cutting it out never does: where
  -- either is long it is cut out at once.
  when p_char_start is not null
    and octet_length(p_content) <= 16384
    and octet_length(p_quote) <= 256
    and strpos(p_content collate "C", p_quote collate "C") = p_char_start + 1
    and char_length(p_quote) = p_char_end - p_char_start
    -- Nearly always the first character is a letter, digit or sign of ASCII.
    and (ascii(p_quote) between 33 and 126 or citeledger_private.is_blank(p_quote) is false)
    then null
  when p_char_start is null then case
    when strpos(p_content collate "C", p_quote collate "C") > 0
      and not citeledger_private.is_blank(p_quote)
      then null
    else 'quote_absent'
  end
  -- Checked before the slice is cut: substring would clip to the text without a word.
  when p_char_end > char_length(p_content) then 'offsets_out_of_range'
  when substring(p_content from p_char_start + 1 for p_char_end - p_char_start) collate "C"
      = p_quote collate "C"
    and not citeledger_private.is_blank(p_quote)
    then null
  else 'text_mismatch'
end;

comment on function citeledger_private.quote_fault(text, integer, integer, text) is
  'Compares a quote with the live text of its unit, byte for byte: null where it verifies, else '
  'offsets_out_of_range, text_mismatch or, without offsets, quote_absent. A blank quote verifies '
  'nowhere, nor does anything in a text that is null. The one place where a quote is compared.';

revoke all on function citeledger_private.quote_fault(text, integer, integer, text) from public;

commit;

-- cite/deep_link

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.matter_link(
  p_matter_number text
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
  if p_matter_number collate "C" ~ '[^A-Za-z0-9._~-]' then
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
  return '/matters/' || coalesce(v_matter, '') || '/record/doc/';
end
$$;

-- In place of a call the planner puts what is below, for every span of a list: that takes a body
-- that is bound when the function is made, and no setting of its own.
create or replace function citeledger_private.page_link(
  p_matter_link text,
  p_document_id uuid,
  p_page_number integer,
  p_block_index integer
)
returns text
language sql
immutable
parallel safe
security invoker
return p_matter_link
  || coalesce(p_document_id::text, '')
  || '?page='
  || coalesce(p_page_number::text, '')
  || coalesce('&block=' || p_block_index::text, '');

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
begin
  return citeledger_private.page_link(
    citeledger_private.matter_link(p_matter_number), p_document_id, p_page_number, p_block_index
  );
end
$$;

comment on function citeledger_private.matter_link(text) is
  'What the links to the pages of a matter begin with: /matters/{matter_number}/record/doc/, the '
  'matter number percent-encoded.';
comment on function citeledger_private.page_link(text, uuid, integer, integer) is
  'The link to a page, behind the beginning that matter_link gives: what deep_link returns, for '
  'many pages of one matter.';
comment on function citeledger.deep_link(text, uuid, integer, integer) is
  'The link to a page of a document, with the block where p_block_index is given: '
  '/matters/{matter_number}/record/doc/{document_id}?page={page_number}[&block={block_index}], the '
  'matter number percent-encoded. Built here and nowhere else, and granted to nobody: no link '
  'exists for what did not verify.';

revoke all on function citeledger_private.matter_link(text) from public;
revoke all on function citeledger_private.page_link(text, uuid, integer, integer) from public;
revoke all on function citeledger.deep_link(text, uuid, integer, integer) from public;

commit;

-- cite/cite_answer

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.cite_answer(
  p_matter_number text,
  p_document_id uuid,
  p_page_number integer,
  p_block_index integer,
  p_span jsonb,
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
  -- The keys as jsonb keeps them, so that it need not sort them.
  return jsonb_build_object(
    'span', p_span,
    'reason', p_reason,
    'verified', p_reason is null,
    'deep_link', case
      when p_reason is null
        then citeledger.deep_link(p_matter_number, p_document_id, p_page_number, p_block_index)
    end,
    'checked_at', statement_timestamp(),
    'engine_state', 'live'
  );
end
$$;

comment on function citeledger_private.cite_answer(text, uuid, integer, integer, jsonb, text) is
  'A CiteResolution as JSON; the link is there only when p_reason is null, which means verified. '
  'p_span: the span as write_span writes it.';

revoke all
  on function citeledger_private.cite_answer(text, uuid, integer, integer, jsonb, text)
  from public;

commit;

-- cite/resolve_spans

begin;

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
      else citeledger_private.quote_fault(u.content, u.char_start, u.char_end, u.quote)
    end
  from unit as u;
end
$$;

comment on function citeledger_private.resolve_spans(uuid, citeledger_private.span[]) is
  'Compares each span with the live page, byte for byte: one row a span, reason null where it '
  'verifies, else no_pages, page_missing, block_out_of_range, offsets_out_of_range, text_mismatch '
  'or quote_absent. span_position: the span''s place in the array, from 1. A blank quote verifies '
  'nowhere. It finds the text that a span is anchored in; quote_fault compares.';

revoke all on function citeledger_private.resolve_spans(uuid, citeledger_private.span[])
  from public;

commit;

-- cite/record_in_matter

begin;

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
declare
  v_matter_number text;
begin
  -- Row security decides, and the wall is asked for by name besides: inside the cascade of a
  -- foreign key, which anybody may set up on a temporary table, the owner passes row security.
  if citeledger_private.is_behind_wall(p_firm_id, p_matter_id) is not false then
    return null;
  end if;
  select p.matter_number
  into v_matter_number
  from citeledger.projects as p
  where p.firm_id = p_firm_id and p.id = p_matter_id;
  return v_matter_number;
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
  perform
  from citeledger.documents as d
  where d.firm_id = p_firm_id
    and d.id = p_document_id
    and d.project_id = p_matter_id
    and d.document_kind = 'record'
    and not d.is_privileged
    and d.deleted_at is null;
  return found;
end
$$;

comment on function citeledger_private.visible_matter_number(uuid, uuid) is
  'The number of a matter that is visible in the context, else null.';
comment on function citeledger_private.holds_record(uuid, uuid, uuid) is
  'Whether the document is a live, non-privileged record of the matter: what may be cited.';

revoke all on function citeledger_private.visible_matter_number(uuid, uuid) from public;
revoke all on function citeledger_private.holds_record(uuid, uuid, uuid) from public;

commit;

-- cite/cite

begin;

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
  return citeledger_private.cite_answer(
    p_matter_number,
    p_span.document_id,
    p_span.page_number,
    p_span.block_index,
    citeledger_private.write_span(p_span),
    p_reason
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
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_is_plain boolean;
  v_span citeledger_private.span;
  v_document_id uuid;
  v_page_number integer;
  v_block_index integer;
  v_char_start integer;
  v_char_end integer;
  v_quote text;
  v_matter_number text;
  v_is_held boolean;
  v_content text;
  v_reason text;
begin
  -- Asked as an expression first: to perform a function is a query, and this is a short call.
  if citeledger.has_permission('matters:read') is not true then
    perform citeledger.require_permission('matters:read');
  end if;

  v_is_plain := citeledger_private.is_plain_span(p_span);
  if v_is_plain then
    v_document_id := (p_span ->> 'document_id')::uuid;
    v_page_number := (p_span ->> 'page_number')::integer;
    v_block_index := (p_span ->> 'block_index')::integer;
  else
    v_span := citeledger_private.read_span(p_span);
    v_document_id := v_span.document_id;
  end if;

  -- One statement instead of three. Nothing is read of a document before its matter was seen, and
  -- no text before the document was. Row security decides on the matter, and the wall is asked for
  -- by name besides: inside the cascade of a foreign key, which anybody may set up on a temporary
  -- table, the owner passes row security, and a plan made there is used outside as well.
  select p.matter_number, d.id is not null, b.content
  into v_matter_number, v_is_held, v_content
  from citeledger.projects as p
  left join citeledger.documents as d
    on d.firm_id = v_firm_id
    and d.id = v_document_id
    and d.project_id = p.id
    and d.document_kind = 'record'
    and not d.is_privileged
    and d.deleted_at is null
  -- Mostly the block is named and there: then its text is all that is needed.
  left join citeledger.document_page_blocks as b
    on b.firm_id = v_firm_id
    and b.document_id = d.id
    and b.page_number = v_page_number
    and b.block_index = v_block_index
  where p.firm_id = v_firm_id
    and p.id = p_matter_id
    and citeledger_private.is_behind_wall(v_firm_id, p.id) is false;
  if v_is_held is not true then
    perform citeledger_private.refuse_as_not_found();
  end if;

  if v_content is not null then
    -- Each is read once: the planner puts what is passed wherever quote_fault looks at it.
    v_char_start := (p_span ->> 'char_start')::integer;
    v_char_end := (p_span ->> 'char_end')::integer;
    v_quote := p_span ->> 'quote';
    v_reason := citeledger_private.quote_fault(v_content, v_char_start, v_char_end, v_quote);
    return citeledger_private.cite_answer(
      v_matter_number, v_document_id, v_page_number, v_block_index, p_span, v_reason
    );
  end if;

  if v_is_plain then
    v_span := citeledger_private.to_span(p_span);
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

commit;

-- cite/cite_many

begin;

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
-- One plan for every firm: of a new one the statistics know nothing, and any index would do.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_matter_number text;
  v_matter_link text;
  v_result jsonb;
  -- The items that have no answer yet: where they are, what is wrong with each, and its span if
  -- the matter holds its document.
  v_positions bigint[];
  v_faults text[];
  v_spans jsonb[];
begin
  -- Asked as an expression first: to perform a function is a query, and this may be a short call.
  if citeledger.has_permission('matters:read') is not true then
    perform citeledger.require_permission('matters:read');
  end if;
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
  v_matter_link := citeledger_private.matter_link(v_matter_number);

  -- Each item is judged once, and each document asked for once: "offset 0" keeps what was found
  -- out, where to materialize would write each row once more. What can be looked at is well-formed,
  -- and of a record of the matter.
  with item as (
    select i.position, i.item, citeledger_private.is_plain_span(i.item) as is_plain
    from jsonb_array_elements(p_spans) with ordinality as i (item, position)
    offset 0
  ),
  judged as (
    select
      i.position,
      i.item,
      i.is_plain,
      case when not i.is_plain then citeledger_private.span_fault(i.item) end as fault
    from item as i
    offset 0
  ),
  -- No row is left out before the end, so that the planner joins as many as there are.
  written as (
    select
      j.position,
      j.fault,
      case
        when j.is_plain then j.item
        when j.fault is null
          then citeledger_private.write_span(citeledger_private.to_span(j.item))
      end as item
    from judged as j
    offset 0
  ),
  span as materialized (
    select
      w.position,
      w.fault,
      w.item,
      (w.item ->> 'document_id')::uuid as document_id,
      (w.item ->> 'page_number')::integer as page_number,
      (w.item ->> 'block_index')::integer as block_index,
      (w.item ->> 'char_start')::integer as char_start,
      (w.item ->> 'char_end')::integer as char_end,
      w.item ->> 'quote' as quote
    from written as w
  ),
  document as materialized (
    select distinct s.document_id as id from span as s
  ),
  held as materialized (
    select d.id
    from document as d
    where citeledger_private.holds_record(v_firm_id, p_matter_id, d.id)
  ),
  -- Mostly the block is named and there: then its text is all that is needed. Laterally, an index
  -- look-up for each span, whatever the planner knows of the table: "offset 0" keeps it so, and no
  -- plan reads every block of the firm.
  found as (
    select
      s.position,
      s.fault,
      s.item,
      h.id as document_id,
      s.page_number,
      s.block_index,
      b.content is not null as is_found,
      case
        when b.content is not null
          then citeledger_private.quote_fault(b.content, s.char_start, s.char_end, s.quote)
      end as reason
    from span as s
    left join held as h on h.id = s.document_id
    left join lateral (
      select b.content
      from citeledger.document_page_blocks as b
      where b.firm_id = v_firm_id
        and b.document_id = h.id
        and b.page_number = s.page_number
        and b.block_index = s.block_index
      offset 0
    ) as b on true
    offset 0
  )
  -- What cite_answer answers, as a row: of rows the list is made at once, of objects by making
  -- each of them twice. What was not compared stays null.
  select
    to_jsonb(array_agg(case when f.is_found then a end order by f.position)),
    array_agg(f.position order by f.position) filter (where not f.is_found),
    array_agg(f.fault order by f.position) filter (where not f.is_found),
    array_agg(case when f.document_id is not null then f.item end order by f.position)
      filter (where not f.is_found)
  into v_result, v_positions, v_faults, v_spans
  from found as f
  cross join lateral (
    select
      f.item as span,
      f.reason as reason,
      f.reason is null as verified,
      case
        when f.reason is null then citeledger_private.page_link(
          v_matter_link, f.document_id, f.page_number, f.block_index
        )
      end as deep_link,
      statement_timestamp() as checked_at,
      'live' as engine_state
  ) as a;
  if v_positions is null then
    return coalesce(v_result, '[]');
  end if;

  with rest as materialized (
    select
      r.position,
      r.fault,
      r.item is not null as is_held,
      case when r.item is not null then citeledger_private.to_span(r.item) end as span
    from unnest(v_positions, v_faults, v_spans) as r (position, fault, item)
  ),
  held as materialized (
    select
      array_agg(r.position order by r.position) as positions,
      array_agg(r.span order by r.position) as spans
    from rest as r
    where r.is_held
    having count(*) > 0
  ),
  checked as materialized (
    select h.positions[c.span_position] as position, c.reason
    from held as h
    cross join lateral citeledger_private.resolve_spans(v_firm_id, h.spans) as c
  )
  -- What neither way compared stays without a verdict, never with a good one.
  select jsonb_agg(
    case
      when r.position is null then i.item
      when r.fault is not null then jsonb_build_object(
        'error',
        jsonb_build_object('sqlstate', '22023', 'message', 'the span is malformed: ' || r.fault)
      )
      when c.position is not null
        then citeledger_private.cite_resolution(v_matter_number, r.span, c.reason)
      else jsonb_build_object(
        'error', jsonb_build_object('sqlstate', 'P0002', 'message', 'record not found')
      )
    end
    order by i.position
  )
  into v_result
  from jsonb_array_elements(v_result) with ordinality as i (item, position)
  left join rest as r on r.position = i.position
  left join checked as c on c.position = i.position;
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

commit;

-- graph/get_citations

begin;

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
  -- Each matter is asked about once, and only those that hold one of the documents: what a wall
  -- costs to see is then the same however many matters the firm has.
  return query
  with live as materialized (
    select d.id, d.project_id
    from citeledger.documents as d
    where d.firm_id = p_firm_id and d.id = any(p_document_ids) and d.deleted_at is null
  ),
  seen as materialized (
    select m.project_id
    from (select distinct l.project_id from live as l where l.project_id is not null) as m
    where (
      select p.id
      -- The wall by name besides: a foreign key's cascade passes row security.
      from citeledger.projects as p
      where p.firm_id = p_firm_id
        and p.id = m.project_id
        and not citeledger_private.is_behind_wall(p_firm_id, p.id)
    ) is not null
  )
  select l.id
  from live as l
  where l.project_id is null or l.project_id in (select s.project_id from seen as s);
end
$$;

comment on function citeledger_private.visible_documents(uuid, uuid[]) is
  'Those of the documents that are live and in no matter that is hidden from the caller.';

revoke all on function citeledger_private.visible_documents(uuid, uuid[]) from public;

commit;

-- graph/documents_to_check

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- Not concurrently, which no transaction can: writers of documents wait while they are read once.
-- A no-op but where an upgrade was interrupted and is run again; then it needs no notice.
set local client_min_messages = warning;
-- squawk-ignore require-concurrent-index-creation
create index if not exists documents_withdrawn_idx on citeledger.documents (firm_id, id)
  where deleted_at is not null;
-- Not "is not null": what looks for a document of a known matter would take it for the primary key.
-- squawk-ignore require-concurrent-index-creation
create index if not exists documents_in_matters_idx on citeledger.documents (firm_id, id)
  where num_nonnulls(project_id) = 1;

comment on index citeledger.documents_withdrawn_idx is
  'Which of some documents are withdrawn: asked at each hop of a walk, and mostly of few rows.';
comment on index citeledger.documents_in_matters_idx is
  'Which of some documents are in a matter, so that a wall may stand before them: asked at each '
  'hop of a walk where the firm has walls.';

commit;

-- graph/walk_citations

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

-- graph/document_triggers

begin;

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
  v_awaited text[];
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
    -- Under the lock, so that what was recorded before is seen, and what comes later will see these
    -- documents. What no list names gives no edge, and what just arrived has no list yet. Counted,
    -- for that is a look-up by index of each, whatever the planner expects; firm and keys through
    -- sub-selects, for what is known of them would else make the plan look worth making anew.
    v_awaited := array(
      select k.doi_key
      from unnest((select v_firm.keys)) as k (doi_key)
      where (
        select count(*)
        from citeledger.document_references as r
        where r.firm_id = (select v_firm.firm_id) and r.doi_key = k.doi_key
      ) > 0
    );
    if cardinality(v_awaited) > 0 then
      perform citeledger_private.reconcile_edges(v_firm.firm_id, '{}', v_awaited);
    end if;
    perform citeledger_private.leave_firm(v_outer);
  end loop;
  return null;
end
$$;

comment on function citeledger_private.documents_arrived() is
  'Trigger function: resolves the references that name the DOIs of inserted documents. Errors: '
  '25000 above read committed.';

revoke all on function citeledger_private.documents_arrived() from public;

commit;

-- ledger/entry_values

begin;

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
declare
  v_sorted uuid[];
  v_least uuid := uuid '00000000-0000-0000-0000-000000000000';
  v_greatest uuid := uuid 'ffffffff-ffff-ffff-ffff-ffffffffffff';
begin
  if p_source_ids is not null then
    v_sorted := case
      when cardinality(p_source_ids) > 1
        then array(select s.id from unnest(p_source_ids) as s (id) order by s.id)
      else p_source_ids
    end;
    v_least := v_sorted[1];
    v_greatest := v_sorted[cardinality(v_sorted)];
  end if;

  -- Laterally, an index look-up for each turn, whatever the planner knows of the tables: "offset 0"
  -- keeps it from turning this into a scan of the firm. All sources, or from the first of the
  -- changed ones to the last: an "or" alone would read the whole turn for one late source, and a
  -- branch for each case would be twice as much to prepare.
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
    where s.firm_id = p_firm_id
      and s.message_id = t.id
      and s.id between v_least and v_greatest
      and (p_source_ids is null or s.id = any(p_source_ids))
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
    where s.firm_id = p_firm_id
      and s.message_id = t.id
      and s.id between v_least and v_greatest
      and (p_source_ids is null or s.id = any(p_source_ids))
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
    where s.firm_id = p_firm_id
      and s.message_id = t.id
      and s.id between v_least and v_greatest
      and (p_source_ids is null or s.id = any(p_source_ids))
    offset 0
  ) as s;
end
$$;

comment on function citeledger_private.entry_values(uuid, uuid[], uuid[]) is
  'What the ledger must say of the sources of the given turns: the one place that maps a source '
  'row to an entry. p_source_ids limits it to those sources; null means all of them. A message '
  'that is unknown, or not the assistant''s, has none.';

revoke all on function citeledger_private.entry_values(uuid, uuid[], uuid[]) from public;

commit;

-- gate/compute_and_record_gate

begin;

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

  -- The firm through a sub-select: of one that the statistics do not know a row is expected, and
  -- then any index would do.
  if not exists (
    select
    from citeledger.messages as m
    where m.firm_id = (select v_firm_id) and m.id = p_message_id and m.role = 'assistant'
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
    where f.firm_id = (select v_firm_id) and f.message_id = p_message_id
  ) then
    perform citeledger_private.assemble_turn(v_firm_id, p_message_id);
  end if;

  perform citeledger_private.record_gates(v_firm_id, array[p_message_id]);

  select g.*
  into v_gate
  from citeledger.work_product_fiduciary_gate as g
  where g.firm_id = (select v_firm_id) and g.message_id = p_message_id;
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

commit;

-- graph/record_references

begin;

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
  -- The firm through a sub-select: of one that the statistics do not know a row is expected, and
  -- then any index would do.
  perform
  from citeledger.documents as d
  where d.firm_id = (select v_firm_id) and d.id = p_document_id
  for key share;
  if not found then
    raise exception using
      errcode = 'P0002',
      message = 'document not found',
      detail = 'No document of this id is in the firm of the context.',
      hint = 'Check the id and the firm of the context.';
  end if;

  delete from citeledger.document_references as r
  where r.firm_id = (select v_firm_id)
    and r.document_id = p_document_id
    and r.source = p_source;

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

commit;

-- ops/describe_function

begin;

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
      -- Less what ops/jit_off adds when all functions are there, and verifies.
      (format(
        'set %s',
        coalesce(
          nullif(array_to_string(array_remove(f.proconfig, 'jit=off'), '; '), ''), 'nothing'
        )
      )),
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
  'parallel label, security, settings but jit = off, who else than the owner may execute it, and '
  'whether it has no comment. The same on every PostgreSQL version. Source: the system catalogs.';

revoke all on function citeledger_private.describe_function(regprocedure) from public;

commit;

-- ops/jit_off

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- Whatever is called from outside, and so all that it calls, has its statements interpreted. A
-- server that can compile plans goes by their estimate, and that of a plan that is kept is high: it
-- counts on ten elements of each array, and on a firm of average size. To compile such a plan takes
-- a hundred times as long as to run it, and is done anew each time.
alter function citeledger.assemble_ledger_entries(uuid) set jit = off;
alter function citeledger.check_integrity() set jit = off;
alter function citeledger.cite(uuid, jsonb) set jit = off;
alter function citeledger.cite_ledger_entry(uuid) set jit = off;
alter function citeledger.cite_many(uuid, jsonb) set jit = off;
alter function citeledger.compute_and_record_gate(uuid) set jit = off;
alter function citeledger.corpus_delete(uuid[]) set jit = off;
alter function citeledger.delete_firm(uuid) set jit = off;
alter function citeledger.finalize_pending(integer) set jit = off;
alter function citeledger.finalize_turn(uuid) set jit = off;
alter function citeledger.finalize_turns(uuid[]) set jit = off;
alter function citeledger.get_citations(uuid) set jit = off;
alter function citeledger.graph_gc(boolean) set jit = off;
alter function citeledger.graph_stage(text[], integer, boolean, jsonb, integer) set jit = off;
alter function citeledger.ledger_trace(uuid, uuid) set jit = off;
alter function citeledger.read_pages(uuid, uuid, integer) set jit = off;
alter function citeledger.recheck_document(uuid) set jit = off;
alter function citeledger.record_crossref_work(uuid, jsonb) set jit = off;
alter function citeledger.record_references(uuid, text[], text) set jit = off;
alter function citeledger.replace_document_pages(uuid, jsonb) set jit = off;
alter function citeledger.resolve_references(boolean) set jit = off;
alter function citeledger.resolve_span(jsonb) set jit = off;
alter function citeledger.suggest_spans(uuid, jsonb, integer) set jit = off;
alter function citeledger.walk_citations(uuid[], integer, text) set jit = off;
alter function citeledger_private.before_ingest() set jit = off;
alter function citeledger_private.citation_updated() set jit = off;
alter function citeledger_private.documents_arrived() set jit = off;
alter function citeledger_private.documents_changed() set jit = off;
alter function citeledger_private.documents_left() set jit = off;
alter function citeledger_private.finalize_inserted() set jit = off;
alter function citeledger_private.finalize_updated() set jit = off;
alter function citeledger_private.keep_deleted_values() set jit = off;
alter function citeledger_private.keep_replaced_values() set jit = off;
alter function citeledger_private.seal_message() set jit = off;
alter function citeledger_private.source_deleted() set jit = off;
alter function citeledger_private.source_inserted() set jit = off;

commit;

-- ops/version

begin;

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
  select '0.2.0'::text
$$;

comment on function citeledger.version() is
  'The version of the installed schema, MAJOR.MINOR.PATCH. A client refuses one that it does not '
  'know.';

revoke all on function citeledger.version() from public;
grant execute on function citeledger.version() to citeledger_reader;
grant execute on function citeledger.version() to citeledger_app;
grant execute on function citeledger.version() to citeledger_admin;

commit;
