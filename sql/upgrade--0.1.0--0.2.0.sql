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
