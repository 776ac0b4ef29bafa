-- Deploy citeledger:graph/resolve_references to pg
-- requires: graph/reconcile_edges
-- requires: graph/lock_graph

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.resolve_references(
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
begin
  perform citeledger_private.lock_graph(v_firm_id);
  return citeledger_private.reconcile_edges(
    v_firm_id, null, null, p_dry_run => coalesce(p_dry_run, true)
  );
end
$$;

comment on function citeledger.resolve_references(boolean) is
  'Makes every edge of the context''s firm agree with every reference list, set-based; what '
  'record_references and the triggers of documents keep, this repairs. Returns '
  '{"documents_scanned" (live documents with a list), "references_found", "matched", "unmatched", '
  '"ambiguous", "self_citations_skipped", "rows_written", "rows_removed", "dry_run"}; the four '
  'fates add up to references_found, and several references may give one edge. A dry run, the '
  'default and what null means, writes nothing and counts what it would. Locks the firm''s graph '
  'until the transaction ends. For citeledger_admin. Errors: 25000 above read committed.';

revoke all on function citeledger.resolve_references(boolean) from public;
grant execute on function citeledger.resolve_references(boolean) to citeledger_admin;

commit;
