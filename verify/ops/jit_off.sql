-- Verify citeledger:ops/jit_off on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

do $$
declare
  v_expected regprocedure[] := array[
    'citeledger.assemble_ledger_entries(uuid)',
    'citeledger.check_integrity()',
    'citeledger.cite(uuid, jsonb)',
    'citeledger.cite_ledger_entry(uuid)',
    'citeledger.cite_many(uuid, jsonb)',
    'citeledger.compute_and_record_gate(uuid)',
    'citeledger.corpus_delete(uuid[])',
    'citeledger.delete_firm(uuid)',
    'citeledger.finalize_pending(integer)',
    'citeledger.finalize_turn(uuid)',
    'citeledger.finalize_turns(uuid[])',
    'citeledger.get_citations(uuid)',
    'citeledger.graph_gc(boolean)',
    'citeledger.graph_stage(text[], integer, boolean, jsonb, integer)',
    'citeledger.ledger_trace(uuid, uuid)',
    'citeledger.read_pages(uuid, uuid, integer)',
    'citeledger.recheck_document(uuid)',
    'citeledger.record_crossref_work(uuid, jsonb)',
    'citeledger.record_references(uuid, text[], text)',
    'citeledger.replace_document_pages(uuid, jsonb)',
    'citeledger.resolve_references(boolean)',
    'citeledger.resolve_span(jsonb)',
    'citeledger.suggest_spans(uuid, jsonb, integer)',
    'citeledger.walk_citations(uuid[], integer, text)',
    'citeledger_private.before_ingest()',
    'citeledger_private.citation_updated()',
    'citeledger_private.documents_arrived()',
    'citeledger_private.documents_changed()',
    'citeledger_private.documents_left()',
    'citeledger_private.finalize_inserted()',
    'citeledger_private.finalize_updated()',
    'citeledger_private.keep_deleted_values()',
    'citeledger_private.keep_replaced_values()',
    'citeledger_private.seal_message()',
    'citeledger_private.source_deleted()',
    'citeledger_private.source_inserted()'
  ]::regprocedure[];
  v_differing text;
begin
  select string_agg(f.oid::regprocedure::text, ', ' order by f.oid::regprocedure::text)
  into v_differing
  from pg_proc as f
  where f.pronamespace in ('citeledger'::regnamespace, 'citeledger_private'::regnamespace)
    and coalesce('jit=off' = any(f.proconfig), false) <> (f.oid = any(v_expected));
  if v_differing is not null then
    raise exception using
      errcode = '55000',
      message = 'functions of citeledger are not as they were deployed',
      detail = format('With or without jit = off, and not so deployed: %s.', v_differing),
      hint = 'Somebody changed them by hand: put it back, or revert and deploy the change.';
  end if;
end
$$;

rollback;
