-- Deploy citeledger:ops/metadata_only_violations to pg
-- requires: ops/metadata_only_violations@v0.1.0
-- requires: graph/edge_doi_valid

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
