-- Revert citeledger:ops/jit_off from pg

begin;

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

commit;
